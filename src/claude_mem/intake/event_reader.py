"""Payloads to `Event`s: parsed and validated once, here, then trusted. And the words in them, which
are the record of a turn.

Claude Code's hook payloads and the bodies of the HTTP API are two dialects of the same events.
Secrets are redacted before long values are truncated, so that no part of a secret survives.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain

from claude_mem.config import CaptureSettings
from claude_mem.errors import BadInput
from claude_mem.hook.private_text import MARK
from claude_mem.intake.projects import Exclusions, Projects
from claude_mem.json_objects import limit_work, shorten_json, strings_in
from claude_mem.language.prompt import parse_prompt, tag_content
from claude_mem.observer.local.here_documents import here_document_of, without_here_documents
from claude_mem.redaction import Redactor
from claude_mem.text import shorten_middle
from claude_mem.timestamps import EARLIEST_MS, LATEST_MS, milliseconds
from claude_mem.types import ClientMessage, Event, Json, RecordKind, RecordPart, Speaker
from claude_mem.word_runs import checksums_of

OWN_TOOLS = (  # as the agents name the tools of our server
    "mcp__plugin_claudemem_", "mcp__claude-mem__", "mcp__claude_mem__", "mcp_claude-mem_",
    "claude-mem_", "claude-mem-", "claude-mem__",
)  # fmt: skip
_IDENTITY_FIELDS = (
    "session_id", "transcript_path", "cwd", "prompt_id", "hook_event_name", "agent_id",
)  # fmt: skip
_TOOL_FIELDS = ("tool_name", "tool_use_id", "tool_input", "tool_response")
_NOT_REDACTED = frozenset((*_IDENTITY_FIELDS, "tool_use_id"))  # stored as they are
_TEXT_FIELDS = ("last_assistant_message", "compact_summary", "error", "statement")
_PROMPT_FIELDS = ("prompt", "last_user_message")
_TOOL_CALL_FIELDS = ("tool_input", "tool_response", *_TEXT_FIELDS, *_PROMPT_FIELDS, "timestamp")
_IGNORED_FIELDS = (
    "permission_mode", "effort", "background_tasks", "session_crons", "duration_ms", "timestamp",
)  # fmt: skip
_NOT_DETAIL = frozenset(
    (*_IDENTITY_FIELDS, *_TOOL_FIELDS, *_TEXT_FIELDS, *_PROMPT_FIELDS, *_IGNORED_FIELDS, MARK)
)
LONGEST_ID = 200
_READ_FIELDS = ("tool_response", "error")
_OF_AGENT = ("Statement", "Stop")
QUESTION_TOOL = "AskUserQuestion"
RECORDED_TOOLS = frozenset((QUESTION_TOOL, "TodoWrite"))
FIELD_BYTES = 8192  # longest field of a raw event
PROMPT_LIMIT_FACTOR = 4  # searches rely on prompts, so they may be longer than other fields

_MAX_SECONDS_VALUE = 100_000_000_000  # as milliseconds this is 1973; as seconds, the year 5138

Payload = Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class EventHeader:
    """What the spool header, or the HTTP request, says about a payload."""

    kind: str
    arrived_ms: int
    project_dir: str = ""
    dialect: str = "claude"
    is_short: bool = False  # the payload, as JSON, has at most SHORT_PAYLOAD bytes


@dataclass(slots=True)
class EventReader:
    redactor: Redactor
    projects: Projects
    field_bytes: int = FIELD_BYTES
    skip_tools: frozenset[str] = frozenset()
    unobserved_tools: frozenset[str] = frozenset()  # their words and the answers of the user count
    keeps_parts: bool = True
    redact_allow: tuple[str, ...] = ()
    exclusions: Exclusions = field(default_factory=Exclusions)

    def use(self, settings: CaptureSettings, *, keeps_parts: bool = True) -> None:
        """Reads later events with these settings."""
        self.redactor = Redactor(settings.redact_allow)
        self.redact_allow = settings.redact_allow
        self.exclusions = Exclusions(settings.excluded_projects, self.projects.home)
        self.skip_tools, self.unobserved_tools = split_skipped_tools(settings.skip_tools)
        self.keeps_parts = keeps_parts

    def skips(self, kind: str, payload: Payload) -> bool:
        name = payload.get("tool_name")
        if not isinstance(name, str):
            return False
        if name in self.unobserved_tools:
            return not (self.keeps_parts and event_parts(kind, payload))
        return name in self.skip_tools or name.startswith(OWN_TOOLS)

    def read_skipped(self, header: EventHeader, payload: Payload) -> Event | None:
        """Reads of a tool that is skipped only the checksums of its words; None if it brought none.
        What our own tools give is not the tool's."""
        fields = {name: payload[name] for name in _READ_FIELDS if payload.get(name) is not None}
        if not fields or str(payload.get("tool_name")).startswith(OWN_TOOLS):
            return None
        checksums = checksums_of(strings_in(self._redact(fields, is_short=header.is_short)))
        try:
            event = self.read_bare(header, payload)
        except BadInput:
            return None
        return replace(event, unstored_words=checksums, is_skipped=True) if checksums else None

    def read(self, header: EventHeader, payload: Payload) -> Event:
        try:
            return self._read(header, payload)
        except RecursionError:
            raise BadInput("the payload is nested too deeply") from None

    def read_bare(self, header: EventHeader, payload: Payload) -> Event:
        """A tool call of a past session without its texts: there is nothing to redact."""
        session_id, cwd = _identifier(payload, "session_id"), _text(payload, "cwd") or ""
        if session_id is None:
            raise BadInput("session_id is missing from the payload", "session_id")
        project_dir = header.project_dir or cwd
        return Event(
            kind=header.kind,
            session_id=session_id,
            arrived_ms=header.arrived_ms,
            key=content_key(header.kind, session_id, payload),
            project=self.projects.of(project_dir),
            project_dir=project_dir,
            dialect=header.dialect,
            cwd=cwd,
            transcript_path=_text(payload, "transcript_path") or "",
            is_dated=False,
            prompt_id=_identifier(payload, "prompt_id"),
            agent_id=_identifier(payload, "agent_id"),
            tool_name=_identifier(payload, "tool_name"),
            tool_use_id=_identifier(payload, "tool_use_id"),
        )

    def _read(self, header: EventHeader, payload: Payload) -> Event:
        session_id = _identifier(payload, "session_id")
        if session_id is None:
            raise BadInput("session_id is missing from the payload", "session_id")
        kind = header.kind or str(payload.get("hook_event_name") or "")
        if not kind:
            raise BadInput("hook_event_name is missing from the payload", "hook_event_name")
        cwd = _text(payload, "cwd") or ""
        project_dir = header.project_dir or cwd
        if kind == "SessionStart":
            self.projects.drop_cached(project_dir)
        redacted = self._redact(payload, is_short=header.is_short)
        parts = event_parts(kind, redacted) if self.keeps_parts else ()
        tool_name = _identifier(payload, "tool_name")
        message, prompt = self._prompt(redacted, kind)
        is_private = kind == "UserPromptSubmit" and prompt == "" and payload.get(MARK) is True
        at_ms = payload_time(payload.get("timestamp"), header.arrived_ms)
        if tool_name in self.unobserved_tools:
            redacted = _questions(redacted) if tool_name == QUESTION_TOOL else {}
        return Event(
            kind=kind,
            session_id=session_id,
            arrived_ms=header.arrived_ms if at_ms is None else at_ms,
            is_dated=at_ms is not None,
            key=content_key(kind, session_id, payload),
            project=self.projects.of(project_dir),
            project_dir=project_dir,
            dialect=header.dialect,
            cwd=cwd,
            transcript_path=_text(payload, "transcript_path") or "",
            prompt_id=_identifier(payload, "prompt_id"),
            agent_id=_identifier(payload, "agent_id"),
            prompt=prompt,
            client_message=message,
            tool_name=tool_name,
            tool_use_id=_identifier(payload, "tool_use_id"),
            tool_input=self._json_field(redacted.get("tool_input")),
            tool_response=self._json_field(redacted.get("tool_response")),
            text=message.text if message else self._event_text(redacted),
            detail=self._detail(redacted),
            parts=parts,
            unstored_words=self._unstored_words(kind, redacted),
            is_private=is_private,
        )

    def _unstored_words(self, kind: str, redacted: Payload) -> bytes:
        """Returns the checksums of what the agent read, if it is too long to be stored."""
        if kind in _OF_AGENT:
            return b""
        texts = list(strings_in([redacted.get(name) for name in _READ_FIELDS]))
        if sum(map(len, texts)) <= self.field_bytes // 2:  # JSON may escape each character
            return b""
        return checksums_of(texts)

    def _redact(self, payload: Payload, *, is_short: bool) -> dict[str, Json]:
        to_redact = {name: value for name, value in payload.items() if name not in _NOT_REDACTED}
        if "tool_response" in to_redact:
            to_redact["tool_response"] = _without_bulk(to_redact["tool_response"])
        redacted = self.redactor.redact_json(to_redact if is_short else limit_work(to_redact))
        assert isinstance(redacted, dict)
        return redacted

    def _prompt(self, payload: Payload, kind: str) -> tuple[ClientMessage | None, str | None]:
        """What the user typed and pasted, or the message that the client sent in its place."""
        name = {"UserPromptSubmit": "prompt", "Stop": "last_user_message"}.get(kind)
        if name is None:
            return None, None
        parsed = parse_prompt(_text(payload, name) or "")
        own = parsed.own if parsed.own.strip() else ""
        prompt = shorten_middle(own, self.field_bytes * PROMPT_LIMIT_FACTOR)
        if kind == "Stop":
            return None, prompt or None
        if parsed.sender != "user":
            message = _client_message_of(parsed.notice)
            return replace(message, text=shorten_middle(message.text, self.field_bytes)), None
        return None, prompt

    def _event_text(self, payload: Payload) -> str | None:
        texts = [text for name in _TEXT_FIELDS if (text := _text(payload, name))]
        return shorten_middle("\n".join(texts), self.field_bytes) if texts else None

    def _json_field(self, value: Json) -> str | None:
        return None if value is None else shorten_json(value, self.field_bytes)

    def _detail(self, payload: Payload) -> dict[str, Json]:
        """The fields that have no column of their own."""
        detail = {name: value for name, value in payload.items() if name not in _NOT_DETAIL}
        if not detail:
            return detail
        if len(json.dumps(detail, ensure_ascii=False)) > self.field_bytes:
            return {"cut": shorten_json(detail, self.field_bytes)}
        return detail


def is_bare(payload: Payload) -> bool:
    """Whether it is a tool call that has an id and time, and no texts."""
    return bool(payload.get("tool_use_id")) and not any(
        payload.get(name) is not None for name in _TOOL_CALL_FIELDS
    )


def split_skipped_tools(tools: Iterable[str]) -> tuple[frozenset[str], frozenset[str]]:
    """Tools that the user named are not recorded at all; of those on the default list, what the
    agent asked the user and which tasks it set itself belong to the record."""
    names = tuple(tools)
    if names == CaptureSettings().skip_tools:
        return frozenset(names) - RECORDED_TOOLS, frozenset(names) & RECORDED_TOOLS
    return frozenset(names), frozenset()


def _questions(payload: Payload) -> dict[str, Json]:
    """The questions and the user's answers, which are decisions, without the options."""
    tool_input, response = payload.get("tool_input"), payload.get("tool_response")
    questions = tool_input.get("questions") if isinstance(tool_input, dict) else None
    answers = response.get("answers") if isinstance(response, dict) else None
    texts: list[Json] = [
        {"question": item.get("question")}
        for item in (questions if isinstance(questions, list) else ())
        if isinstance(item, dict)
    ]
    return {"tool_input": {"questions": texts}, "tool_response": {"answers": answers}}


def content_key(kind: str, session_id: str, payload: Payload) -> str:
    """The same event has the same key, however often and by whatever route it arrives."""
    parts: list[str] = [session_id, kind, _identifier(payload, "agent_id") or ""]
    tool_use_id, prompt_id = _identifier(payload, "tool_use_id"), _identifier(payload, "prompt_id")
    if tool_use_id:
        parts.append(tool_use_id)
    elif kind == "UserPromptSubmit" and prompt_id:
        parts.append(prompt_id)
    else:
        parts += (prompt_id or "", json.dumps(payload, sort_keys=True, ensure_ascii=True))
    return hashlib.blake2b("\0".join(parts).encode("utf-8", "replace"), digest_size=16).hexdigest()


def with_prompt_number(event: Event, number: int) -> Event:
    """The prompt of a client that counts its prompts is the same if number and text are."""
    if event.kind != "UserPromptSubmit" or event.prompt_id is not None:
        return replace(event, prompt_number=number)
    key = content_key(event.kind, event.session_id, {"number": number, "prompt": event.prompt})
    return replace(event, prompt_number=number, key=key)


def _identifier(payload: Payload, name: str) -> str | None:
    value = payload.get(name)
    if value is None or value == "":
        return None
    if not isinstance(value, str) or len(value) > LONGEST_ID:
        raise BadInput(f"{name} must be a string of at most {LONGEST_ID} characters", name)
    return value


def _text(payload: Payload, name: str) -> str | None:
    value = payload.get(name)
    return value if isinstance(value, str) else None


def _without_bulk(value: Json) -> Json:
    """Removes whole files and images, which repeat what the patch or the path already says."""
    if not isinstance(value, dict):
        return value
    return {
        name: "[image]" if name == "base64" else inner
        for name, inner in value.items()
        if name != "originalFile"
    }


def payload_time(timestamp: Json, arrived_ms: int) -> int | None:
    """Reads a time in ISO 8601, or a Unix time in (milli)seconds; never later than the arrival."""
    ms = milliseconds(timestamp)
    if isinstance(timestamp, int | float) and not isinstance(timestamp, bool):
        ms = _from_number(timestamp)
    return None if ms is None else min(ms, arrived_ms)


def _from_number(value: float) -> int | None:
    if not EARLIEST_MS / 1000 <= value < LATEST_MS:  # also false for nan
        return None
    ms = round(value * 1000 if value < _MAX_SECONDS_VALUE else value)
    return ms if EARLIEST_MS <= ms < LATEST_MS else None


# The words in an event, of the user, the agent and its subagents
#
# Redacted, but not yet truncated. The observer distils them, and they are the record of the turn.
# Tool output is no part; what a model wrote about its tools is (plans, questions, reports, commit
# messages, descriptions, tasks).

LONGEST_PART = 32_768
_FIRST_WORDS = 8  # by which most parts of a turn differ
_NOTIFICATION_TAGS = ("summary", "result")
SUBAGENT_TOOLS = ("Task", "Agent")
_COMMIT = re.compile(r"\bgit\b[^|;&\n]{0,200}?\bcommit\b")
_COMMIT_WORD, _PULL_REQUEST_WORD = "commit", "gh"  # without them, the patterns do not match
_PULL_REQUEST = re.compile(r"\bgh\s+pr\s+(?:create|edit)\b")
# What the client writes around a compaction summary when it gives it to the agent.
_CONTINUED = "This session is being continued from a previous conversation"
_CONTINUED_SUMMARY = "\nSummary:\n"
_AFTER_SUMMARY = (
    "\nIf you need specific details from before compaction",
    "\nPlease continue the conversation from where we left",
    "\nContinue the conversation from where it left off",
    "\nRecent messages are preserved verbatim",
)
_QUOTED = r"""(?:"((?:[^"\\]|\\.){1,20000})"|'([^']{1,20000})')"""
_MESSAGE = re.compile(rf"(?:\s-[a-zA-Z]*m|\s--message)[\s=]+{_QUOTED}")
_TITLE = re.compile(rf"\s(?:--title|-t)[\s=]+{_QUOTED}")
_BODY = re.compile(rf"\s(?:--body|-b)[\s=]+{_QUOTED}")


def event_parts(kind: str, payload: Payload) -> tuple[RecordPart, ...]:
    """The parts of the record that an event of this kind holds.

    What a subagent does is not part of it: transcripts do not tell it. Its report is: it comes
    with the result of the tool that started it, or as a notification.
    """
    if payload.get("agent_id"):
        return ()
    reader = _TOOL_KINDS.get(kind) or _MESSAGE_KINDS.get(kind)
    return tuple(reader(payload)) if reader is not None else ()


def record_of(
    prompt: str | None, parts_of_events: Iterable[Iterable[RecordPart]]
) -> tuple[RecordPart, ...]:
    """The record of a turn: its prompt and the words of its events, each once, in their order.

    The last message arrives by a hook and by the transcript, a task list with every change of it.
    """
    parts: list[RecordPart] = []
    first_parts: dict[tuple[str, ...], RecordPart] = {}  # by speaker and first words
    texts: dict[tuple[str, ...], set[str]] = {}  # of parts that begin with the same words
    for part in chain(_prompt(prompt or ""), *parts_of_events):
        beginning = (part.speaker, *part.text.split(None, _FIRST_WORDS)[:_FIRST_WORDS])
        first = first_parts.setdefault(beginning, part)
        if first is not part:
            known = texts.setdefault(beginning, {_on_one_line(first.text)})
            text = _on_one_line(part.text)
            if text in known:
                continue
            known.add(text)
        parts.append(part)
    return tuple(parts)


def _on_one_line(text: str) -> str:
    return " ".join(text.split())


def _prompt(prompt: str) -> Iterator[RecordPart]:
    """The user's words, and the report of a background task that the client put before them."""
    parsed = parse_prompt(prompt)
    if parsed.has_message:
        for report in _reports(parsed.notice):
            yield from _part("report", "subagent", report)
    yield from _part("prompt", "user", parsed.own)


def _reports(notice: str) -> list[str]:
    """Returns the reports of a task, or what a teammate, a channel or a webhook wrote."""
    reports = [tag_content(notice, tag) for tag in _NOTIFICATION_TAGS]
    if any(reports) or not notice.startswith("<"):
        return reports
    return [notice.partition(">")[2].rpartition("</")[0]]


def _part(kind: RecordKind, speaker: Speaker, text: Json) -> Iterator[RecordPart]:
    if isinstance(text, str) and (stripped := text.strip()):
        yield RecordPart(kind, speaker, _cut_in_middle(stripped))


def _cut_in_middle(text: str) -> str:
    if len(text) <= LONGEST_PART:
        return text
    half = LONGEST_PART // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half} characters cut …]\n{text[-half:]}"


# What the client sends in place of a prompt: `parse_prompt` tells it

_COMMAND = re.compile(r"(?:<command-.{0,4000})?<command-name>", re.DOTALL)


def _client_message_of(text: str) -> ClientMessage:
    return ClientMessage(text, _identifier_in(text, "task-id"), _identifier_in(text, "tool-use-id"))


def _identifier_in(text: str, tag: str) -> str | None:
    value = tag_content(text, tag).strip()
    return value if 0 < len(value) <= LONGEST_ID else None


def is_command(text: str) -> bool:
    """A slash command that the client wrapped in tags."""
    return _COMMAND.match(text) is not None


# Messages


def _client_message(payload: Payload) -> Iterator[RecordPart]:
    """The report of a background task; what the user typed is kept as the turn's prompt."""
    prompt = payload.get("prompt")
    if isinstance(prompt, str):
        yield from (part for part in _prompt(prompt) if part.kind == "report")


def _statement(payload: Payload) -> Iterator[RecordPart]:
    yield from _part("statement", "agent", payload.get("statement"))


def _last_message(payload: Payload) -> Iterator[RecordPart]:
    yield from _part("statement", "agent", payload.get("last_assistant_message"))


def _compaction(payload: Payload) -> Iterator[RecordPart]:
    summary = payload.get("compact_summary")
    if isinstance(summary, str):
        yield from _part("compaction", "agent", _bare_summary(summary))


def _bare_summary(text: str) -> str:
    """The same from a hook, which gets the model's reply, and from a transcript."""
    if summary := tag_content(text, "summary"):
        return summary
    if not text.startswith(_CONTINUED):
        return text
    _, heading, summary = text.partition(_CONTINUED_SUMMARY)
    summary = summary if heading else text.partition("\n")[2]
    ends = [end for end in map(summary.rfind, _AFTER_SUMMARY) if end >= 0]
    return summary[: min(ends, default=len(summary))]


_MESSAGE_KINDS: dict[str, Callable[[Payload], Iterator[RecordPart]]] = {
    "UserPromptSubmit": _client_message,
    "Statement": _statement,
    "Stop": _last_message,
    "StopFailure": _last_message,
    "PostCompact": _compaction,
}


# Tools


def _tool(payload: Payload) -> Iterator[RecordPart]:
    name, tool_input = payload.get("tool_name"), payload.get("tool_input")
    reader = _TOOLS.get(name) if isinstance(name, str) else None
    if reader is not None and isinstance(tool_input, dict):
        yield from reader(tool_input, payload.get("tool_response"))


def _failed_tool(payload: Payload) -> Iterator[RecordPart]:
    """Gives only what was meant: a commit that failed was not made."""
    tool_input = payload.get("tool_input")
    if isinstance(tool_input, dict) and payload.get("tool_name") in ("Bash", *SUBAGENT_TOOLS):
        yield from _part("description", "agent", tool_input.get("description"))


def _plan(tool_input: Payload, response: Json) -> Iterator[RecordPart]:
    plan = tool_input.get("plan") or (response.get("plan") if isinstance(response, dict) else None)
    yield from _part("plan", "agent", plan)


def _question(tool_input: Payload, response: Json) -> Iterator[RecordPart]:
    """Records each question with the answer that the user chose."""
    answers = response.get("answers") if isinstance(response, dict) else None
    questions = tool_input.get("questions")
    for item in questions if isinstance(questions, list) else ():
        question = item.get("question") if isinstance(item, dict) else None
        if not isinstance(question, str):
            continue
        answer = answers.get(question) if isinstance(answers, dict) else None
        text = f"{question}\nAnswer: {answer}" if isinstance(answer, str) and answer else question
        yield from _part("question", "user", text)


def _subagent(tool_input: Payload, response: Json) -> Iterator[RecordPart]:
    yield from _part("description", "agent", tool_input.get("description"))
    content = response.get("content") if isinstance(response, dict) else response
    yield from _part("report", "subagent", _plain_text(content))


def _command(tool_input: Payload, response: Json) -> Iterator[RecordPart]:
    yield from _part("description", "agent", tool_input.get("description"))
    command = tool_input.get("command")
    if not isinstance(command, str):
        return
    command = command[:LONGEST_PART]
    if _COMMIT_WORD in command and _COMMIT.search(command):
        yield from _part("commit", "agent", _message(command, _COMMIT, _MESSAGE))
    if _opens_pull_request(command):
        title = _quoted(without_here_documents(command), _TITLE)
        body = _message(command, _PULL_REQUEST, _BODY)
        yield from _part("pull_request", "agent", "\n\n".join(filter(None, (title, body))))


def may_have_message(command: str) -> bool:
    """Whether it may commit, or open a pull request, with a text; before it is redacted."""
    return _COMMIT_WORD in command or _opens_pull_request(command)


def _opens_pull_request(command: str) -> bool:
    return _PULL_REQUEST_WORD in command and _PULL_REQUEST.search(command) is not None


def _message(command: str, invocation: re.Pattern[str], option: re.Pattern[str]) -> str:
    text = here_document_of(command, invocation)
    return text or _quoted(without_here_documents(command), option)


def _quoted(command: str, option: re.Pattern[str]) -> str:
    return "\n\n".join(double or single for double, single in option.findall(command))


def _task(tool_input: Payload, response: Json) -> Iterator[RecordPart]:
    yield from _part("task", "agent", tool_input.get("subject"))


def _todos(tool_input: Payload, response: Json) -> Iterator[RecordPart]:
    todos = tool_input.get("todos")
    for item in todos if isinstance(todos, list) else ():
        if isinstance(item, dict):
            yield from _part("task", "agent", item.get("content"))


def _plain_text(content: Json) -> str:
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    texts = [block.get("text") for block in blocks if isinstance(block, dict)]
    return "\n".join(text for text in texts if isinstance(text, str))


_TOOLS: dict[str, Callable[[Payload, Json], Iterator[RecordPart]]] = {
    "ExitPlanMode": _plan,
    "AskUserQuestion": _question,
    **dict.fromkeys(SUBAGENT_TOOLS, _subagent),
    "Bash": _command,
    "TaskCreate": _task,
    "TodoWrite": _todos,
}
TOOLS_WITH_PARTS = frozenset(_TOOLS)
_TOOL_KINDS: dict[str, Callable[[Payload], Iterator[RecordPart]]] = {
    "PostToolUse": _tool,
    "PostToolUseFailure": _failed_tool,
}
