"""Everything that a turn shows, collected before it is written down: the words of the user without
the client's additions, messages of the agent, and files, commands and research of its tools; the
passages of its texts, which may be kept; and the steps that its last message announces."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from claude_mem.language.prompt import PLACEHOLDER, parse_prompt, tag_content
from claude_mem.observer.local import cues
from claude_mem.observer.local.markdown import (
    MessagePassage,
    heading_of,
    sentences,
    split_passages,
    without_markup,
)
from claude_mem.observer.local.tool_uses import (
    CommandLog,
    FileWork,
    file_name,
    files_changed,
    files_read,
    read_commands,
)
from claude_mem.text import QUESTION_MARKS, one_line, shorten
from claude_mem.types import RecordKind, Turn, TurnEvent

LONGEST_LINE = 600  # of a paste
LONGEST_ERROR, LONGEST_NOTICE = 240, 300
LONGEST_PROMPT = 100_000
READ_CHARS = 300  # of a line, enough to recognise a log
MIN_PLAN_CHARS = 600
SHORTEST_PASSAGE = 15
MAX_PASSAGES = 600  # of a turn; what comes later is read from the last message only

_PLAN = re.compile(r"^\s*implement the following plan:\s*", re.IGNORECASE)
_ANSWER = "\nAnswer: "
_TRAILER = re.compile(r"(?:Co-Authored-By|Signed-off-by|Generated with|🤖)", re.IGNORECASE)

_ERROR = re.compile(
    r"(?:Error|Exception)\b|\b(?:error|fail(?:ed|ure)|fatal|panic|panicked|cannot)\b"
    r"|\bexit(?:ed)?(?: with)? code\b",
    re.IGNORECASE,
)
# An exception by name; the last of a trace is the one to report.
_EXCEPTION = re.compile(
    r"(?:Caused by: )?[\w.$]{2,120}?(?:Error|Exception|\.[A-Z]\w{1,60})(?:: |$)|panic: "
)
_NAME_BEFORE = re.compile(r"[\w.]{1,80}$")
RESEARCH_TOOLS = ("Task", "Agent", "WebSearch", "WebFetch")
MAX_TOPICS, LONGEST_TOPIC = 4, 120
_TOPICS = (("description", "{}"), ("query", "the web for “{}”"), ("url", "{}"))
Origin = Literal[
    "request", "paste", "statement", "final", "plan", "question", "report", "notice", "compaction",
    "commit", "pull_request",
]  # fmt: skip

PROMPT = "UserPromptSubmit"  # has words only where the client sent it: a background task reports
SHORT_REQUEST = 120
LONG_STATEMENT = 200  # characters: longer statements count as sources of the memories
LONGEST_REQUEST = 1_500  # a longer prompt is pasted, at least in part
# Of a text that describes more than this turn, or as much as a message, the start is enough.
_LIMITS: dict[Origin, int] = {
    "report": 3_000,  # what matters of it, the agent repeats
    "notice": 6_000,
    "compaction": 4_000,
    "plan": 12_000,
}
_WRITTEN: dict[RecordKind, Origin] = {
    "plan": "plan",
    "question": "question",
    "report": "report",
    "compaction": "compaction",
    "commit": "commit",
    "pull_request": "pull_request",
}


# The user's own words in a prompt


@dataclass(frozen=True, slots=True)
class UserRequest:
    """The user's own text; for a pasted plan, its text and title instead."""

    text: str
    plan: str = ""
    plan_title: str = ""
    error: str = ""  # the error line of a pasted log


def parse_request(prompt: str) -> UserRequest:
    parsed = parse_prompt(prompt)
    if parsed.sender != "user":
        report = without_markup(tag_content(parsed.notice, "summary") or parsed.notice)
        return UserRequest(f"(a background task reported) {shorten(report, LONGEST_NOTICE)}")
    pasted = PLACEHOLDER.sub("", parsed.pasted[:LONGEST_PROMPT]).strip()
    if _is_plan(pasted):
        body = _PLAN.sub("", pasted, count=1)
        is_lead = _PLAN.match(parsed.typed) is not None
        title = next(iter(_headings(body)), "")
        return UserRequest("" if is_lead else parsed.typed, body, title)
    error = _error_of(pasted.splitlines())
    own = PLACEHOLDER.sub("", parsed.own).strip()
    return UserRequest(parsed.typed or error or shorten(own, LONGEST_LINE), error=error)


def _is_plan(text: str) -> bool:
    if _PLAN.match(text):
        return True
    return text.startswith("#") and len(text) > MIN_PLAN_CHARS and len(_headings(text)) >= 2


def _headings(text: str) -> list[str]:
    """Returns the headings of the first and second level."""
    lines = [line for line in text.splitlines() if line.startswith(("# ", "## "))]
    return [heading for line in lines if (heading := heading_of(line))]


def _error_of(lines: list[str]) -> str:
    """The last exception; else the first error message, from its name on."""
    exceptions = [line for line in lines if _EXCEPTION.match(line)]
    if exceptions:
        return _error(exceptions[-1].removeprefix("Caused by: "))
    for line in lines:
        if match := _ERROR.search(line[: 4 * READ_CHARS]):
            name = _NAME_BEFORE.search(line[: match.start()])
            return _error(line[name.start() if name else match.start() :])
    return ""


def _error(text: str) -> str:
    return shorten(without_markup(text[:READ_CHARS]), LONGEST_ERROR)


# What a turn looked into beyond the project's files: tasks of subagents, and the web


def research_topics(turn: Turn) -> str:
    """Returns the topics of research in the agent's own words; empty if it did none."""
    topics: dict[str, None] = {}
    for event in turn.events:
        is_research = event.kind == "PostToolUse" and event.tool_name in RESEARCH_TOOLS
        if is_research and not event.agent_id:
            topics.update(dict.fromkeys(_topic(event)))
    return "; ".join(list(topics)[:MAX_TOPICS])


def _topic(event: TurnEvent) -> Iterator[str]:
    params = event.tool_input if isinstance(event.tool_input, dict) else {}
    for name, template in _TOPICS:
        value = params.get(name)
        if isinstance(value, str) and value.strip():
            yield template.format(shorten(without_markup(value), LONGEST_TOPIC))
            return


# All of it


@dataclass(frozen=True, slots=True)
class SourceText:
    text: str
    origin: Origin
    sources: tuple[int, ...] = ()  # ids of its events
    messages_after: int = 0  # of the agent, in this turn


@dataclass(frozen=True, slots=True)
class TurnEvidence:
    request: UserRequest
    statements: tuple[TurnEvent, ...]  # the agent's messages before the last one
    final: str  # the agent's last message
    final_sources: tuple[int, ...]
    written: tuple[SourceText, ...]  # what models wrote for the tools: plans, reports, commits
    descriptions: tuple[str, ...]  # of the work of subagents
    tasks: tuple[str, ...]
    files: dict[str, FileWork]
    files_read: tuple[str, ...]  # and not edited
    edited_files_read: tuple[str, ...]
    research: str
    commands: CommandLog
    tools: tuple[str, ...]  # the name of each tool use
    failed_tools: int
    error: str  # the error that ended the turn
    sources: tuple[int, ...]  # the events of the messages that matter

    def texts(self) -> Iterator[SourceText]:
        """The request, then messages in their order, then what was written for tools."""
        request = self.request.text
        if self.request.error:
            request += f"\n\nError: {self.request.error}"
        yield SourceText(self.request.plan, "paste")
        yield SourceText(request, "paste" if len(request) > LONGEST_REQUEST else "request")
        for number, event in enumerate(self.statements):
            after = len(self.statements) - number
            yield SourceText(event.text or "", "statement", (event.id,), after)
        yield from self.written
        yield SourceText(self.final, "final", self.final_sources)

    @property
    def said(self) -> int:
        """The length of what the user and the agent said."""
        messages = (self.request.text, self.request.plan, self.final)
        return sum(map(len, messages)) + sum(len(event.text or "") for event in self.statements)

    def all_files_read(self, count: int) -> tuple[str, ...]:
        """Lists the files that were read; first those that were not edited, since the list of
        edited files has the others."""
        return (*self.files_read, *self.edited_files_read)[:count]

    @property
    def announced_steps(self) -> list[str]:
        """What the agent's last message names as open."""
        return list(dict.fromkeys(find_steps(self.final)))[:MAX_ANNOUNCED]

    def written_as(self, *origins: Origin) -> list[str]:
        return [source.text for source in self.written if source.origin in origins]

    @property
    def subjects(self) -> list[str]:
        """The first lines of commits and pull requests."""
        texts = self.written_as("commit", "pull_request") or self.commands.subjects
        lines = (next(iter(text.strip().splitlines()), "").strip() for text in texts)
        return list(dict.fromkeys(line for line in lines if line))


def collect_evidence(turn: Turn) -> TurnEvidence:
    messages = [
        event for event in turn.events if event.kind in ("Statement", "Stop") and event.text
    ]
    stops = [event for event in messages if event.kind == "Stop"]
    final = (stops or messages)[-1].text or "" if messages else ""
    files, read = files_changed(turn), files_read(turn)
    errors = [event.text or "" for event in turn.events if event.kind == "StopFailure"]
    tools = [event for event in turn.events if event.tool_name and not event.agent_id]
    return TurnEvidence(
        request=parse_request(turn.prompt or ""),
        statements=tuple(e for e in messages if e.kind == "Statement" and e.text != final),
        final=final,
        final_sources=tuple(event.id for event in messages if event.text == final),
        written=tuple(_written(turn)),
        descriptions=_texts_of(turn, "description", ("Task", "Agent")),
        tasks=_texts_of(turn, "task"),
        files=files,
        files_read=tuple(path for path in read if path not in files),
        edited_files_read=tuple(path for path in read if path in files),
        research=research_topics(turn),
        commands=read_commands(turn),
        tools=tuple(event.tool_name or "" for event in tools),
        failed_tools=sum(event.kind == "PostToolUseFailure" for event in tools),
        error=errors[-1] if errors else "",
        sources=_sources(messages, final),
    )


def _written(turn: Turn) -> Iterator[SourceText]:
    for event in turn.events:
        for part in event.parts:
            if (origin := _WRITTEN.get(part.kind)) is not None:
                if event.kind == PROMPT:
                    origin = "notice"
                text = part.text[: _LIMITS.get(origin, len(part.text))]
                yield SourceText(text, origin, (event.id,))


def _texts_of(turn: Turn, kind: RecordKind, tools: tuple[str, ...] = ()) -> tuple[str, ...]:
    texts = (
        part.text
        for event in turn.events
        if not tools or event.tool_name in tools
        for part in event.parts
        if part.kind == kind
    )
    return tuple(dict.fromkeys(texts))


def _sources(messages: list[TurnEvent], final: str) -> tuple[int, ...]:
    return tuple(
        event.id
        for event in messages
        if event.text == final or len(event.text or "") > LONG_STATEMENT
    )


def short_request(evidence: TurnEvidence) -> str:
    """The first sentences of what the user wrote."""
    text = one_line(evidence.request.text)
    request = ""
    for sentence in sentences(text):
        if len(request) + len(sentence) > SHORT_REQUEST:
            break
        request = f"{request} {sentence}".strip()
    return request or shorten(text, SHORT_REQUEST)


# Its passages


class Candidate(NamedTuple):
    """A passage of a turn that may be kept."""

    passage: MessagePassage
    origin: Origin
    sources: tuple[int, ...]
    position: int  # among all candidates
    number: int  # in its text
    passages: int  # in its text
    length: int  # of its text
    messages_after: int
    words: frozenset[str]
    says_what_is_left: bool  # by a heading or a phrase of the last message

    @property
    def text(self) -> str:
        return self.passage.text


def find_candidates(evidence: TurnEvidence) -> list[Candidate]:
    """All passages of some length, each once, in the order of `TurnEvidence.texts`."""
    short_names = _short_names(list(evidence.files))
    candidates: list[Candidate] = []
    texts: set[str] = set()
    for source in evidence.texts():
        if not source.text or (len(candidates) > MAX_PASSAGES and source.origin != "final"):
            continue
        text = _with_short_names(source.text, short_names)
        passages = list(_passages(text, source.origin))
        for number, passage in enumerate(passages):
            key = passage.text.lower()
            if (len(passage.text) < SHORTEST_PASSAGE and passage.text.isascii()) or key in texts:
                continue
            texts.add(key)
            candidates.append(
                Candidate(
                    passage, source.origin, source.sources, len(candidates), number, len(passages),
                    len(text), source.messages_after, cues.words(passage.text),
                    source.origin == "final" and _says_what_is_left(passage),
                )
            )  # fmt: skip
    return candidates


def _says_what_is_left(passage: MessagePassage) -> bool:
    above = passage.label or passage.heading
    return cues.is_next_heading(above) or cues.says_what_is_left(passage.text[:300])


def _passages(text: str, origin: Origin) -> Iterator[MessagePassage]:
    if origin == "question":
        yield from _answered(text)
        return
    for passage in split_passages(text):
        if origin not in ("commit", "pull_request") or not _TRAILER.match(passage.text):
            yield passage


def _answered(text: str) -> Iterator[MessagePassage]:
    """A question with its answer is one passage; without one it is nothing."""
    question, _, answer = text.partition(_ANSWER)
    if answer:
        yield MessagePassage(f"{one_line(question)} {one_line(answer)}")


def _short_names(paths: list[str]) -> dict[str, str]:
    """The name of each file by its path, where the name is unique: memories list the paths."""
    paths_by_name: dict[str, list[str]] = {}
    for path in paths:
        paths_by_name.setdefault(file_name(path), []).append(path)
    return {paths[0]: name for name, paths in paths_by_name.items() if len(paths) == 1 != len(name)}


def _with_short_names(text: str, short_names: dict[str, str]) -> str:
    for path, name in short_names.items():
        if path in text:
            text = text.replace(path, name)
    return text


# Work that the agent's last message names as open: "Next: …", and the items under "Next steps".
#
# Only what is announced as open counts, word for word. Questions and offers end with their
# session.

MAX_ANNOUNCED = 12
LONGEST_STEP = 300
LONGEST_MESSAGE = 40_000

_NAMES = "|".join((
    r"(?:what'?s |recommended |suggested |possible )?next(?: steps?| up)?",
    r"remaining(?: (?:work|steps?|tasks?|items?))?", r"follow[- ]?ups?(?: work| tasks?)?",
    r"to[- ]?dos?", "left (?:open|to do)", "still (?:open|to do|missing|left)",
    "open (?:items?|points?|tasks?|work)", "not (?:yet )?done(?: yet)?", "deferred", "outstanding",
    "nächste schritte", "noch offen", "prochaines étapes", "próximos pasos", "下一步",
    "次のステップ", "الخطوات التالية",
))  # fmt: skip
_EMPHASIS = r"[*_]{0,3}"
_ANNOUNCEMENT = re.compile(
    rf"\s{{0,8}}(?:#{{1,6}}\s+)?{_EMPHASIS}\W{{0,3}}(?:{_NAMES})(?:\s\([^)\n]{{1,40}}\))?{_EMPHASIS}"
    rf"\s?(?P<colon>[:：])?{_EMPHASIS}(?P<rest>.*)$",
    re.IGNORECASE,
)
_STEP_HEADING = re.compile(r"\s{0,3}#{1,6}\s")
_WITHIN_LINE = re.compile(
    rf"(?<=[.!?。！？])\s+{_EMPHASIS}(?:{_NAMES}){_EMPHASIS}[:：]{_EMPHASIS}\s+(?P<rest>\S.*)$",
    re.IGNORECASE,
)
_ITEM = re.compile(
    r"(?P<indent>\s*)(?:[-*+•‣–]|\d{1,2}[.)])\s+(?:\[(?P<box>[ xX])\]\s+)?(?P<text>.+)$"
)
_NO_STEP = re.compile(
    r"(?:none|nothing|n/?a|no (?:further|more|open|remaining)\b.*|-+|let me know\b.*|i can\b.*"
    r"|(?:if|when|once) you('d| would)? (?:like|want|prefer)\b.*|happy to\b.*)[.!]?$",
    re.IGNORECASE,
)
_FENCES = ("```", "~~~")


def find_steps(message: str) -> Iterator[str]:
    in_section = in_items = has_heading = False
    lines = _without_code(message[:LONGEST_MESSAGE])
    for line in lines:
        announcement = _ANNOUNCEMENT.match(line)
        if announcement and _is_announcement(announcement):
            in_section, in_items, has_heading = True, False, bool(_STEP_HEADING.match(line))
            yield from _steps_of(announcement["rest"])
        elif _STEP_HEADING.match(line):
            in_section = False
        elif in_section and (item := _ITEM.match(line)):
            in_items = True
            if (item["box"] or " ") == " ":
                yield from _step(item["text"])
        elif in_section and line.strip() and not (in_items and line[:2].isspace()):
            if has_heading and not in_items:
                yield from _steps_of(line)
            else:
                in_section = False
        if not in_section and (inline := _WITHIN_LINE.search(line)):
            yield from _steps_of(inline["rest"])


def _is_announcement(match: re.Match[str]) -> bool:
    """A label with a colon, or a line of its own: not a sentence that begins with "Next"."""
    rest = match["rest"].strip(" *_:：")
    return bool(match["colon"]) or not rest


def _without_code(message: str) -> Iterator[str]:
    fenced = False
    for line in message.expandtabs(4).splitlines():
        if line.strip().startswith(_FENCES):
            fenced = not fenced
        elif not fenced:
            yield line


def _steps_of(text: str) -> Iterator[str]:
    """Each sentence is a step."""
    for sentence in sentences(text.strip(" *_")):
        yield from _step(sentence)


def _step(text: str) -> Iterator[str]:
    step = without_markup(text).strip(" *_")
    is_step = (
        len(step) > 3 and not step.endswith((*QUESTION_MARKS, ":")) and not _NO_STEP.match(step)
    )
    if is_step and len(step) <= LONGEST_STEP:
        yield step[0].upper() + step[1:]
