"""Payloads to `Event`s: parsed and validated once, here, then trusted.

Claude Code's hook payloads and the bodies of the HTTP API are two dialects of the same events.
Secrets are redacted before long values are truncated, so that no part of a secret survives.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from claude_mem.config import CaptureSettings
from claude_mem.errors import BadInput
from claude_mem.intake.event_words import command_as_typed, event_parts, split_client_message
from claude_mem.intake.projects import Exclusions, Projects
from claude_mem.redaction import Redactor
from claude_mem.text import shorten_middle
from claude_mem.types import ClientMessage, Event, Json

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
    (*_IDENTITY_FIELDS, *_TOOL_FIELDS, *_TEXT_FIELDS, *_PROMPT_FIELDS, *_IGNORED_FIELDS)
)
LONGEST_ID = 200
QUESTION_TOOL = "AskUserQuestion"
RECORDED_TOOLS = frozenset((QUESTION_TOOL, "TodoWrite"))
FIELD_BYTES = 8192  # longest field of a raw event
PROMPT_LIMIT_FACTOR = 4  # searches rely on prompts, so they may be longer than other fields
_LEAF_LIMITS = (4096, 1024, 256, 64)
_TEXT_CHARACTERS = 256 * 1024  # far beyond what is stored, so that no secret is cut in two there
_FIELD_CHARACTERS = 512 * 1024
_FIELD_ITEMS = 20_000
SHORT_PAYLOAD = 2 * _FIELD_ITEMS - 2  # bytes that cannot hold so many items, nor so much text
_FEW_MEMBERS, _SHORT_LEAF = 16, 16 * 1024

# No client wrote anything outside these years: such a timestamp is broken.
_EARLIEST_MS, _LATEST_MS = (
    int(datetime(year, 1, 1, tzinfo=UTC).timestamp() * 1000) for year in (2000, 2100)
)
_MAX_SECONDS_VALUE = 100_000_000_000  # as milliseconds this is 1973; as seconds, the year 5138


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
        """Read with these settings from now on."""
        self.redactor = Redactor(settings.redact_allow)
        self.redact_allow = settings.redact_allow
        self.exclusions = Exclusions(settings.excluded_projects, self.projects.home)
        self.skip_tools, self.unobserved_tools = split_skipped_tools(settings.skip_tools)
        self.keeps_parts = keeps_parts

    def skips(self, kind: str, payload: Mapping[str, Json]) -> bool:
        name = payload.get("tool_name")
        if not isinstance(name, str):
            return False
        if name in self.unobserved_tools:
            return not (self.keeps_parts and event_parts(kind, payload))
        return name in self.skip_tools or name.startswith(OWN_TOOLS)

    def read(self, header: EventHeader, payload: Mapping[str, Json]) -> Event:
        try:
            return self._read(header, payload)
        except RecursionError:
            raise BadInput("the payload is nested too deeply") from None

    def read_bare(self, header: EventHeader, payload: Mapping[str, Json]) -> Event:
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

    def _read(self, header: EventHeader, payload: Mapping[str, Json]) -> Event:
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
        )

    def _redact(self, payload: Mapping[str, Json], *, is_short: bool) -> dict[str, Json]:
        to_redact = {name: value for name, value in payload.items() if name not in _NOT_REDACTED}
        if "tool_response" in to_redact:
            to_redact["tool_response"] = _without_bulk(to_redact["tool_response"])
        redacted = self.redactor.redact_json(to_redact if is_short else limit_work(to_redact))
        assert isinstance(redacted, dict)
        return redacted

    def _prompt(
        self, payload: Mapping[str, Json], kind: str
    ) -> tuple[ClientMessage | None, str | None]:
        """What the user typed, or the message that the client sent in its place."""
        name = {"UserPromptSubmit": "prompt", "Stop": "last_user_message"}.get(kind)
        if name is None:
            return None, None
        message, typed = split_client_message(_text(payload, name) or "")
        limit = self.field_bytes * PROMPT_LIMIT_FACTOR
        prompt = shorten_middle(command_as_typed(typed), limit)
        if kind == "Stop":
            return None, prompt if prompt.strip() else None
        if message is not None and not typed:
            text = shorten_middle(message.text, self.field_bytes)
            return replace(message, text=text), None
        return None, prompt

    def _event_text(self, payload: Mapping[str, Json]) -> str | None:
        texts = [text for name in _TEXT_FIELDS if (text := _text(payload, name))]
        return shorten_middle("\n".join(texts), self.field_bytes) if texts else None

    def _json_field(self, value: Json) -> str | None:
        return None if value is None else shorten_json(value, self.field_bytes)

    def _detail(self, payload: Mapping[str, Json]) -> dict[str, Json]:
        """The fields that have no column of their own."""
        detail = {name: value for name, value in payload.items() if name not in _NOT_DETAIL}
        if not detail:
            return detail
        if len(json.dumps(detail, ensure_ascii=False)) > self.field_bytes:
            return {"cut": shorten_json(detail, self.field_bytes)}
        return detail


def is_bare(payload: Mapping[str, Json]) -> bool:
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


def _questions(payload: Mapping[str, Json]) -> dict[str, Json]:
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


def content_key(kind: str, session_id: str, payload: Mapping[str, Json]) -> str:
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


def _identifier(payload: Mapping[str, Json], name: str) -> str | None:
    value = payload.get(name)
    if value is None or value == "":
        return None
    if not isinstance(value, str) or len(value) > LONGEST_ID:
        raise BadInput(f"{name} must be a string of at most {LONGEST_ID} characters", name)
    return value


def _text(payload: Mapping[str, Json], name: str) -> str | None:
    value = payload.get(name)
    return value if isinstance(value, str) else None


def _without_bulk(value: Json) -> Json:
    """Whole files and images repeat what the patch or the path already says."""
    if not isinstance(value, dict):
        return value
    return {
        name: "[image]" if name == "base64" else inner
        for name, inner in value.items()
        if name != "originalFile"
    }


# Values that are too long to be searched for secrets, or to be stored, as a whole


def limit_work(fields: dict[str, Json]) -> dict[str, Json]:
    """The payload with so much of each field as one event may take of the worker's time."""
    return {
        name: value if _is_short(value) else _Allowance().cut(value)
        for name, value in fields.items()
    }


def _is_short(value: Json) -> bool:
    """Whether it is certainly within the limits; most values are."""
    if isinstance(value, str):
        return len(value) <= _TEXT_CHARACTERS
    if isinstance(value, dict):
        names = sum(map(len, value)) if len(value) <= _FEW_MEMBERS else _FIELD_CHARACTERS
        return names <= _SHORT_LEAF and all(map(_is_short_leaf, value.values()))
    return value is None or isinstance(value, bool | int | float)


def _is_short_leaf(value: Json) -> bool:
    if isinstance(value, str):
        return len(value) <= _SHORT_LEAF
    return value is None or isinstance(value, bool | int | float)


@dataclass
class _Allowance:
    characters: int = _FIELD_CHARACTERS
    items: int = _FIELD_ITEMS

    @property
    def is_spent(self) -> bool:
        return self.characters <= 0 or self.items <= 0

    def cut(self, value: Json) -> Json:
        self.items -= 1
        if isinstance(value, str):
            text = shorten_middle(value, min(_TEXT_CHARACTERS, max(0, self.characters)))
            self.characters -= len(text)
            return text
        if isinstance(value, list):
            items: list[Json] = []
            for item in value:
                if self.is_spent:
                    items.append(f"[… {len(value) - len(items)} items cut …]")
                    break
                items.append(self.cut(item))
            return items
        if isinstance(value, dict):
            members: dict[str, Json] = {}
            for name, inner in value.items():
                if self.is_spent:
                    members["…"] = f"[… {len(value) - len(members)} members cut …]"
                    break
                self.characters -= len(name)
                members[name] = self.cut(inner)
            return members
        return value


def shorten_json(value: Json, limit: int) -> str:
    """The value as JSON of at most `limit` characters.

    Long strings are shortened first; if that is not enough, the JSON text itself is, and becomes
    a JSON string.
    """
    text = json.dumps(value, ensure_ascii=False)
    if len(text) <= limit:
        return text
    for leaf_limit in _LEAF_LIMITS:
        text = json.dumps(_shorten_leaves(value, leaf_limit), ensure_ascii=False)
        if len(text) <= limit:
            return text
    length = limit - 2
    while len(quoted := json.dumps(shorten_middle(text, length), ensure_ascii=False)) > limit:
        length -= max(1, (len(quoted) - limit) // 2)
    return quoted


def _shorten_leaves(value: Json, limit: int) -> Json:
    if isinstance(value, str):
        return shorten_middle(value, limit)
    if isinstance(value, list):
        return [_shorten_leaves(item, limit) for item in value]
    if isinstance(value, dict):
        return {name: _shorten_leaves(inner, limit) for name, inner in value.items()}
    return value


def milliseconds(timestamp: Json) -> int | None:
    """Of a time in ISO 8601; None if it is not one."""
    if not isinstance(timestamp, str):
        return None
    try:
        at = datetime.fromisoformat(timestamp)
    except ValueError:
        return None
    ms = round((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000)
    return ms if _EARLIEST_MS <= ms < _LATEST_MS else None


def payload_time(timestamp: Json, arrived_ms: int) -> int | None:
    """ISO 8601, or a Unix time in seconds or milliseconds; never later than the arrival."""
    ms = milliseconds(timestamp)
    if isinstance(timestamp, int | float) and not isinstance(timestamp, bool):
        ms = _from_number(timestamp)
    return None if ms is None else min(ms, arrived_ms)


def _from_number(value: float) -> int | None:
    if not _EARLIEST_MS / 1000 <= value < _LATEST_MS:  # also false for nan
        return None
    ms = round(value * 1000 if value < _MAX_SECONDS_VALUE else value)
    return ms if _EARLIEST_MS <= ms < _LATEST_MS else None
