"""From an agent's own words to an `Event`: parsed once, here, then trusted.

Claude Code's payloads and the HTTP API's bodies are two dialects of one thing. What is too long
is cut so that it stays valid JSON; what is secret goes before it is cut, so that no cut can leave
half a secret behind.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass

from claude_mem.errors import BadInput
from claude_mem.intake.projects import Projects
from claude_mem.privacy import Redactor
from claude_mem.types import Event, Json

OWN_TOOLS = ("mcp__plugin_claudemem_", "mcp__claude-mem__", "mcp__claude_mem__")
_IDENTITY = ("session_id", "transcript_path", "cwd", "prompt_id", "hook_event_name", "agent_id")
_TOOL = ("tool_name", "tool_use_id", "tool_input", "tool_response")
_WORDS = ("last_assistant_message", "compact_summary", "error", "statement")
_TEXTS = (*_WORDS, "prompt")
_NOISE = ("permission_mode", "effort", "background_tasks", "session_crons", "duration_ms")
_LEAF_LIMITS = (4096, 1024, 256, 64)
LONGEST_ID = 200
LONGEST_PROMPT_FACTOR = 4  # a prompt is what later questions turn on: it may be longer


@dataclass(frozen=True, slots=True)
class Arrival:
    """What the spool's header, or the HTTP request, says about a payload."""

    kind: str
    arrived_ms: int
    project_dir: str = ""
    dialect: str = "claude"


@dataclass(frozen=True, slots=True)
class Reader:
    redactor: Redactor
    projects: Projects
    field_bytes: int
    skip_tools: frozenset[str]

    def skips(self, payload: Mapping[str, Json]) -> bool:
        name = payload.get("tool_name")
        return isinstance(name, str) and (name in self.skip_tools or name.startswith(OWN_TOOLS))

    def event(self, arrival: Arrival, payload: Mapping[str, Json]) -> Event:
        try:
            return self._event(arrival, payload)
        except RecursionError:
            raise BadInput("the payload is nested too deeply") from None

    def _event(self, arrival: Arrival, payload: Mapping[str, Json]) -> Event:
        session_id = _identifier(payload, "session_id")
        if session_id is None:
            raise BadInput("the payload has no session_id", "session_id")
        kind = arrival.kind or str(payload.get("hook_event_name") or "")
        if not kind:
            raise BadInput("the payload does not say which event it is", "hook_event_name")
        cwd = _text(payload, "cwd") or ""
        project_dir = arrival.project_dir or cwd
        if kind == "SessionStart":
            self.projects.forget(project_dir)
        clean = self._redacted(payload)
        return Event(
            kind=kind,
            session_id=session_id,
            arrived_ms=arrival.arrived_ms,
            key=content_key(kind, session_id, payload),
            project=self.projects.of(project_dir),
            project_dir=project_dir,
            dialect=arrival.dialect,
            cwd=cwd,
            transcript_path=_text(payload, "transcript_path") or "",
            prompt_id=_identifier(payload, "prompt_id"),
            agent_id=_identifier(payload, "agent_id"),
            prompt=self._prompt(clean, kind),
            tool_name=_identifier(payload, "tool_name"),
            tool_use_id=_identifier(payload, "tool_use_id"),
            tool_input=self._field(clean.get("tool_input")),
            tool_response=self._field(_without_bulk(clean.get("tool_response"))),
            text=self._said(clean),
            detail=self._detail(clean),
        )

    def _redacted(self, payload: Mapping[str, Json]) -> dict[str, Json]:
        rest = {name: value for name, value in payload.items() if name not in _IDENTITY}
        redacted = self.redactor.redact_json(rest)
        assert isinstance(redacted, dict)
        return redacted

    def _prompt(self, payload: Mapping[str, Json], kind: str) -> str | None:
        if kind != "UserPromptSubmit":
            return None
        prompt = _text(payload, "prompt") or ""
        return cut(prompt, self.field_bytes * LONGEST_PROMPT_FACTOR)

    def _said(self, payload: Mapping[str, Json]) -> str | None:
        """The words an event brings: a message, a summary, an error."""
        said = [text for name in _WORDS if (text := _text(payload, name))]
        return cut("\n".join(said), self.field_bytes) if said else None

    def _field(self, value: Json) -> str | None:
        return None if value is None else shrink(value, self.field_bytes)

    def _detail(self, payload: Mapping[str, Json]) -> dict[str, Json]:
        known = (*_IDENTITY, *_TOOL, *_TEXTS, *_NOISE)
        rest = {name: value for name, value in payload.items() if name not in known}
        if len(json.dumps(rest, ensure_ascii=False)) > self.field_bytes:
            return {"cut": shrink(rest, self.field_bytes)}
        return rest


def parse_payload(data: bytes) -> dict[str, Json]:
    """A JSON object in which every text can be stored; anything else is BadInput."""
    try:
        text = data.decode("utf-8")
        payload: Json = json.loads(text)
        if "\\ud" in text or "\\uD" in text:
            payload = _whole_characters(payload)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"it is not JSON: {error or type(error).__name__}") from None
    if not isinstance(payload, dict):
        raise BadInput("it is not a JSON object")
    return payload


def _whole_characters(value: Json) -> Json:
    """JSON can spell half a character; no text in the database can."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, list):
        return [_whole_characters(item) for item in value]
    if isinstance(value, dict):
        return {
            name.encode("utf-8", "replace").decode("utf-8"): _whole_characters(inner)
            for name, inner in value.items()
        }
    return value


def content_key(kind: str, session_id: str, payload: Mapping[str, Json]) -> str:
    """The same event is the same key, however often and by whichever way it arrives."""
    parts: list[str] = [session_id, kind, _identifier(payload, "agent_id") or ""]
    tool_use_id, prompt_id = _identifier(payload, "tool_use_id"), _identifier(payload, "prompt_id")
    if tool_use_id:
        parts.append(tool_use_id)
    elif kind == "UserPromptSubmit" and prompt_id:
        parts.append(prompt_id)
    else:
        parts += (prompt_id or "", json.dumps(payload, sort_keys=True, ensure_ascii=True))
    return hashlib.blake2b("\0".join(parts).encode("utf-8", "replace"), digest_size=16).hexdigest()


def _identifier(payload: Mapping[str, Json], name: str) -> str | None:
    value = payload.get(name)
    if value is None or value == "":
        return None
    if not isinstance(value, str) or len(value) > LONGEST_ID:
        raise BadInput(f"{name} is not a short text", name)
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


def shrink(value: Json, limit: int) -> str:
    """The value as JSON of at most `limit` characters: its long texts are cut, else its tail."""
    text = json.dumps(value, ensure_ascii=False)
    if len(text) <= limit:
        return text
    for leaf_limit in _LEAF_LIMITS:
        text = json.dumps(_cut_leaves(value, leaf_limit), ensure_ascii=False)
        if len(text) <= limit:
            return text
    room = limit - 2
    while len(whole := json.dumps(cut(text, room), ensure_ascii=False)) > limit:
        room -= max(1, (len(whole) - limit) // 2)
    return whole


def _cut_leaves(value: Json, limit: int) -> Json:
    if isinstance(value, str):
        return cut(value, limit)
    if isinstance(value, list):
        return [_cut_leaves(item, limit) for item in value]
    if isinstance(value, dict):
        return {name: _cut_leaves(inner, limit) for name, inner in value.items()}
    return value


def cut(text: str, limit: int) -> str:
    """Head and tail of a long text, with a note of what is missing between."""
    if len(text) <= limit:
        return text
    note = f"\n[… {len(text) - limit} characters cut …]\n"
    room = max(0, limit - len(note))
    head = room * 3 // 4
    tail = room - head
    return text[:head] + note + (text[-tail:] if tail else "")
