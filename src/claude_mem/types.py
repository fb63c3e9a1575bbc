"""The data that passes between layers: Event -> Turn -> Distillate -> stored memories."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from operator import attrgetter
from typing import Literal, TypeAlias

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

ObservationType = Literal["bugfix", "feature", "refactor", "change", "discovery", "decision"]
OBSERVATION_TYPES: tuple[ObservationType, ...] = (
    "bugfix", "feature", "refactor", "change", "discovery", "decision",
)  # fmt: skip

SessionStatus = Literal["active", "completed", "failed", "interrupted"]
SESSION_STATUSES: tuple[SessionStatus, ...] = ("active", "completed", "failed", "interrupted")


Verbosity = Literal["minimal", "normal", "verbose"]

# Kinds of events, by the names of Claude Code's hooks.
PROMPT, SESSION_START, SESSION_END = "UserPromptSubmit", "SessionStart", "SessionEnd"
TOOL, TOOL_FAILURE = "PostToolUse", "PostToolUseFailure"
CLOSING = ("Stop", "StopFailure")
WITHIN_TURN = (TOOL, TOOL_FAILURE, "SubagentStop", "PreCompact", "PostCompact")
STATEMENT, PULL_REQUEST, BRANCH = "Statement", "PullRequest", "Branch"
FROM_TRANSCRIPT = (STATEMENT, PULL_REQUEST, BRANCH)  # no hook reports them
_COUNTED = "counted-"


def counted_prompt_id(session_id: str, number: int) -> str:
    """Makes a prompt id for transcripts without any, though the hooks of their client have them."""
    return f"{_COUNTED}{number}-{session_id}"


def is_counted(prompt_id: str) -> bool:
    return prompt_id.startswith(_COUNTED)


@dataclass(frozen=True, slots=True)
class Project:
    """`key` identifies a project in any checkout or directory; `name` is displayed."""

    key: str
    name: str


RecordKind = Literal[
    "prompt", "statement", "plan", "question", "report", "compaction", "commit", "pull_request",
    "description", "task",
]  # fmt: skip
Speaker = Literal["user", "agent", "subagent"]


@dataclass(frozen=True, slots=True)
class RecordPart:
    """Something that was said in a turn, word for word."""

    kind: RecordKind
    speaker: Speaker
    text: str


@dataclass(frozen=True, slots=True)
class ClientMessage:
    """A message that the client sent in place of a prompt: a background task reported."""

    text: str
    task_id: str | None = None
    tool_use_id: str | None = None  # of the call that started the task


@dataclass(frozen=True, slots=True)
class Event:
    """An event of an agent's session, independent of the client's format."""

    kind: str
    session_id: str
    arrived_ms: int
    key: str
    project: Project
    project_dir: str
    dialect: str = "claude"
    cwd: str = ""
    transcript_path: str = ""
    is_dated: bool = False  # `arrived_ms` is the time that the client wrote into the payload
    prompt_id: str | None = None
    prompt_number: int | None = None  # as the client counts, where it has no prompt_id
    agent_id: str | None = None
    prompt: str | None = None  # of the end of a turn: the prompt as the client repeats it
    client_message: ClientMessage | None = None  # instead of a prompt
    tool_name: str | None = None
    tool_use_id: str | None = None
    tool_input: str | None = None
    tool_response: str | None = None
    text: str | None = None
    detail: Mapping[str, Json] = field(default_factory=dict)
    parts: tuple[RecordPart, ...] = ()  # what it adds to the record of its turn
    unstored_words: bytes = b""  # checksums of runs that the agent read and that are not stored
    is_skipped: bool = False  # of a tool that is not recorded: there is nothing but these
    is_private: bool = False  # a prompt of which nothing but private text was there

    def without_raw(self, *, keeps_text: bool) -> "Event":
        """What is stored of a past event: not its detail, and no text that is too old to keep."""
        if not keeps_text and (
            self.tool_input or self.tool_response or self.text or self.parts or self.unstored_words
        ):
            # Field by field: `replace` takes twice the time, for every event of an import.
            return Event(
                self.kind, self.session_id, self.arrived_ms, self.key, self.project,
                self.project_dir, self.dialect, self.cwd, self.transcript_path, self.is_dated,
                self.prompt_id, self.prompt_number, self.agent_id, self.prompt,
                self.client_message, self.tool_name, self.tool_use_id,
            )  # fmt: skip
        return replace(self, detail={}) if self.detail else self

    def __reduce__(self) -> tuple[type["Event"], tuple[object, ...]]:
        """Pickles in half the time of the default, which copies fields: an import pickles many."""
        return Event, _event_fields(self)


_event_fields: Callable[[Event], tuple[object, ...]] = attrgetter(
    *(of_event.name for of_event in fields(Event))
)


@dataclass(frozen=True, slots=True)
class TurnEvent:
    """A stored event of a turn, as observers get it."""

    id: int
    kind: str
    tool_name: str | None
    tool_input: Json
    tool_response: Json
    text: str | None
    agent_id: str | None
    parts: tuple[RecordPart, ...] = ()
    cwd: str = ""
    key: str = ""
    at_ms: int = 0  # 0: unknown
    unstored_words: bytes = b""


@dataclass(frozen=True, slots=True)
class Turn:
    """A prompt and the events that followed it: the unit that observers distil."""

    id: int
    session_db_id: int
    content_session_id: str
    memory_session_id: str
    project: Project
    project_dir: str
    transcript_path: str
    prompt_id: str
    prompt_number: int
    prompt: str | None
    started_ms: int
    events: tuple[TurnEvent, ...]
    recent_memories: tuple[str, ...] = ()  # texts of the memories of the session's previous turns
    earlier_output: str = ""  # what tools gave in the session's previous turns
    unstored_words: tuple[bytes, ...] = ()  # of these turns, and of tools that are not recorded
    is_client_message: bool = False  # a message of the client began it, so it has no prompt
    draft: "Distillate | None" = None  # its stored memories, for a model to revise


@dataclass(frozen=True, slots=True)
class Observation:
    type: ObservationType
    title: str | None = None
    subtitle: str | None = None
    narrative: str | None = None
    facts: tuple[str, ...] = ()
    concepts: tuple[str, ...] = ()
    files_read: tuple[str, ...] = ()
    files_modified: tuple[str, ...] = ()
    sources: tuple[int, ...] = ()  # ids of the events it was made from
    origin: "FactOrigin" = "agent"  # whose words; see also `Distillate.outside`

    @property
    def text(self) -> str:
        return "\n".join(filter(None, (self.title, self.subtitle, self.narrative, *self.facts)))


CommandPurpose = Literal["test", "check", "run", "release"]
COMMAND_PURPOSES: tuple[CommandPurpose, ...] = ("test", "check", "run", "release")
CommandOutcome = Literal["passed", "failed"]
COMMAND_OUTCOMES: tuple[CommandOutcome, ...] = ("passed", "failed")


@dataclass(frozen=True, slots=True)
class CommandRun:
    """A test, a check, or a start or release of the project, with the outcome of its last run."""

    command: str
    purpose: CommandPurpose
    outcome: CommandOutcome
    counts: str = ""  # "41 passed, 1 failed", where the output has counts
    sources: tuple[int, ...] = ()  # ids of the events of its runs
    scope: str = ""  # the folder it was run in, relative to the project's directory

    @property
    def text(self) -> str:
        label = "Tests" if self.purpose == "test" else self.purpose.capitalize()
        result = self.counts if self.outcome in self.counts else self.outcome
        return f"{label}: `{self.command}` ({result})."


@dataclass(frozen=True, slots=True)
class EnvironmentFault:
    """A command that fails in this environment, and the command that works instead."""

    command: str
    error: str
    alternative: str
    sources: tuple[int, ...] = ()

    @property
    def text(self) -> str:
        return f"`{self.command}` failed ({self.error}); `{self.alternative}` worked."


@dataclass(frozen=True, slots=True)
class OpenStep:
    """Work that a turn left to do."""

    text: str
    sources: tuple[int, ...] = ()
    evidence: str = ""  # what says that it is open, such as "announced"; empty: it only reads so


@dataclass(frozen=True, slots=True)
class Summary:
    """Models may rewrite the texts; `commands`, `faults` and `open_steps` come from events only."""

    request: str | None = None
    investigated: str | None = None
    learned: str | None = None
    completed: str | None = None
    next_steps: str | None = None
    files_read: tuple[str, ...] = ()
    files_edited: tuple[str, ...] = ()
    notes: str | None = None
    commands: tuple[CommandRun, ...] = ()
    faults: tuple[EnvironmentFault, ...] = ()
    open_steps: tuple[OpenStep, ...] = ()
    sources: tuple[int, ...] = ()

    @property
    def text(self) -> str:
        """All texts, and the facts as sentences; `next_steps` includes the open steps."""
        fields = (self.request, self.investigated, self.learned, self.completed,
                  self.next_steps, self.notes, *(run.text for run in self.commands),
                  *(fault.text for fault in self.faults))  # fmt: skip
        return "\n".join(filter(None, fields))


FactKind = Literal["rule", "decision", "command", "fault", "open", "place", "artifact"]
FACT_KINDS: tuple[FactKind, ...] = (
    "rule", "decision", "command", "fault", "open", "place", "artifact",
)  # fmt: skip
FactOrigin = Literal["person", "agent", "outside"]  # the user, the agent, or what it read
FACT_ORIGINS: tuple[FactOrigin, ...] = ("person", "agent", "outside")
FactStatus = Literal["candidate", "holds", "past", "wrong"]
FACT_STATUSES: tuple[FactStatus, ...] = ("candidate", "holds", "past", "wrong")


@dataclass(frozen=True, slots=True)
class ProposedFact:
    """Something that a turn reveals about its project.

    What `subject` and `value` are depends on the kind:
    rule: "", the user's sentence verbatim; decision: the question, the answer;
    command: its purpose, the command; fault: the command that fails, the one that works;
    open: the file it is about or "", the step; place: what is there, the host, port or path;
    artifact: "branch", "commit", "pull request" or "document", its name, hash, address or path.
    """

    kind: FactKind
    subject: str
    value: str
    scope: str = ""  # a folder relative to the project's directory; "": the whole project
    origin: FactOrigin = "agent"
    status: FactStatus = "holds"
    note: str = ""  # of this turn: a command's outcome, a fault's error, a commit's subject
    sources: tuple[int, ...] = ()  # ids of the events it comes from


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact of a project as stored: the same proposal of several turns, merged."""

    id: int
    project_id: int
    kind: FactKind
    subject: str
    value: str
    scope: str
    origin: FactOrigin
    status: FactStatus
    note: str  # of the latest turn
    count: int  # of the turns it comes from; 0: none, the user wrote it
    first_seen_ms: int
    last_seen_ms: int
    superseded_by: int | None
    is_pinned: bool


@dataclass(frozen=True, slots=True)
class Distillate:
    """The memories of a turn, and the observer that wrote them."""

    summary: Summary
    observations: tuple[Observation, ...] = ()
    title: str | None = None  # for the session, if it has none yet
    subtitle: str | None = None
    observer: str = "local"
    model: str | None = None
    prompt_version: str | None = None
    facts: tuple[ProposedFact, ...] = ()  # besides those of the summary
    version: int = 0  # of the local observer
    outside: tuple[str, ...] = ()  # hashes of runs of words that came from outside
    outside_of_record: tuple[str, ...] = ()  # those that are only in the record


@dataclass(frozen=True, slots=True)
class SessionTitle:
    """A title that the client has for a session: the user's own, or one that a model made."""

    text: str
    by_user: bool = False


@dataclass(frozen=True, slots=True)
class PastTurn:
    """A turn read from a transcript. Sources of its memories are positions in `events`, starting
    at 1. Without a distillate it is private, or its session is distilled later."""

    prompt_id: str
    # None: a message of the client began it, or it was private and the turn has no events.
    prompt: str | None
    number: int
    started_ms: int
    events: tuple[Event, ...] = ()
    distillate: Distillate | None = None
    record: tuple[RecordPart, ...] = ()
    keeps_raw: bool = True  # whether its events are recent enough to store their raw texts
    is_client_message: bool = False
    parent_prompt_id: str | None = None  # of the turn whose task the message reports on

    @property
    def is_private(self) -> bool:
        """A prompt of which the user typed nothing is empty."""
        return self.prompt is None and not self.is_client_message


@dataclass(frozen=True, slots=True)
class TranscriptToDistil:
    """A transcript from which the memories of turns of a session are made."""

    session_db_id: int
    session_id: str
    path: str
    keep_raw_since: int
    project: Project


@dataclass(frozen=True, slots=True)
class PastSession:
    session_id: str
    project: Project
    project_dir: str
    transcript_path: str
    started_ms: int
    ended_ms: int
    turns: tuple[PastTurn, ...] = ()
    # Of all turns in the file so far, also those that are stored elsewhere or not at all.
    title: str | None = None
    subtitle: str | None = None
    user_prompt: str | None = None
    prompt_ids: tuple[str, ...] = ()
    client_title: SessionTitle | None = None
    dialect: str = "claude"
    is_distilled: bool = True
    keep_raw_since: int = 0  # raw texts of older events were dropped before it was distilled


@dataclass(frozen=True, slots=True)
class Job:
    """A claimed message: a turn to distil before the lease expires."""

    id: int
    turn_id: int
    revision: int
    attempts: int
    lease: str


@dataclass(frozen=True, slots=True)
class HookAnswer:
    """What a hook prints for the agent that runs it."""

    dialect: str  # of the agent
    event: str
    context: str  # for the agent
    message: str = ""  # for the user
