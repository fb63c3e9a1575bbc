"""OpenCode: our plugin forwards what its hooks get, with the session and the turn.

Past sessions are in its database; a file of `opencode export` is read as well.
"""

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from claude_mem.agents.agent import (
    Agent,
    ConfigFile,
    Events,
    Lines,
    Normalised,
    Ours,
    Payload,
    Transcripts,
)
from claude_mem.agents.attaching import SERVER, events, member
from claude_mem.agents.reading.conversation import Conversation
from claude_mem.agents.reading.payloads import (
    compact,
    event,
    mapping,
    parts_of,
    plain_text,
    text,
    texts_of,
    time_of,
)
from claude_mem.agents.reading.tools import ToolCall, tool_events
from claude_mem.hook.other_agents import FLAT, Output
from claude_mem.hook.private_text import MARK, strip_payload
from claude_mem.json_objects import parse_object
from claude_mem.types import PROMPT, TOOL, TOOL_FAILURE, Json

PLUGIN = Path(__file__).with_name("opencode_plugin.js")
_LAUNCHER_MARK = '"LAUNCHER"'


def normalise(kind: str, payload: Payload) -> list[Normalised]:
    common = compact(
        session_id=payload.get("session_id"),
        prompt_id=payload.get("message_id"),
        cwd=payload.get("directory"),
        timestamp=time_of(payload),
        source=payload.get("source"),
        agent_id=payload.get("agent_id"),
        last_assistant_message=payload.get("last_text"),
        statement=payload.get("statement"),
        uuid=payload.get("part_id"),
    )
    if kind == PROMPT:
        return event(kind, common, prompt=texts_of(payload.get("parts")))
    if kind not in (TOOL, TOOL_FAILURE):
        return event(kind, common)
    return tool_events(common, _call(payload, text(payload, "call_id")))


def _call(part: Payload, call_id: str) -> ToolCall:
    state = mapping(part.get("state"))
    code = mapping(state.get("metadata")).get("exit")
    return ToolCall(
        text(part, "tool"),
        state.get("input"),
        plain_text(state.get("output")),
        call_id,
        error=plain_text(state.get("error")),
        code=code if isinstance(code, int) else 0,
    )


def _is_session(session: Payload) -> bool:
    return isinstance(session.get("info"), dict) and isinstance(session.get("messages"), list)


def read_session(lines: Lines, path: Path) -> Events:
    session = lines[0]
    info, rows = mapping(session.get("info")), parts_of(session.get("messages"))
    if not text(info, "id") or not rows:
        return []
    begun = _created(mapping(rows[0].get("info")))
    chat = Conversation(text(info, "id"), text(info, "directory"), path, begun)
    for row in rows:
        message, parts = mapping(row.get("info")), parts_of(row.get("parts"))
        at_ms = _created(message)
        if message.get("role") == "user":
            typed = [text(p, "text") for p in parts if p.get("type") == "text"
                     and not p.get("synthetic")]  # fmt: skip
            # An export is one object: if some of it was private, any empty prompt may have been.
            source = next((o for o in (session, row, message, *parts) if MARK in o), message)
            chat.prompt(text(message, "id"), "\n".join(typed), at_ms, source)
            continue
        for part in parts:
            state = mapping(part.get("state"))
            if part.get("type") == "text":
                chat.say(text(part, "text"), at_ms, text(part, "id"))
            elif part.get("type") == "tool" and state.get("status") in ("completed", "error"):
                ended = _unix_ms(mapping(state.get("time")).get("end"))
                chat.tool(_call(part, text(part, "callID")), ended or at_ms)
    return chat.end()


def _created(message: Payload) -> int | None:
    return _unix_ms(mapping(message.get("time")).get("created"))


def _unix_ms(value: Json) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def read_database(copy: sqlite3.Connection) -> Iterator[Lines]:
    sessions = copy.execute(
        "SELECT id, directory, parent_id FROM session ORDER BY time_created, id"
    )
    for session_id, directory, parent in sessions:
        if parent is None:  # hooks report the work of subagents as part of their parent
            info: Payload = {"id": session_id, "directory": directory}
            yield [{"info": info, "messages": list(_messages(copy, session_id))}]


def _messages(copy: sqlite3.Connection, session_id: str) -> Iterator[Payload]:
    rows = copy.execute(
        "SELECT id, data FROM message WHERE session_id = ? ORDER BY time_created, id",
        (session_id,),
    ).fetchall()
    for message_id, data in rows:
        parts = copy.execute(
            "SELECT id, data FROM part WHERE message_id = ? ORDER BY id", (message_id,)
        )
        yield {
            "info": _with_id(message_id, data),
            "parts": [_with_id(part_id, part) for part_id, part in parts],
        }


def _with_id(identity: str, data: str) -> Payload:
    return {**parse_object(strip_payload(data.encode("utf-8", "replace"))), "id": identity}


def _plugin(_: Agent, launcher: Path) -> Ours:
    return PLUGIN.read_text("utf-8").replace(_LAUNCHER_MARK, json.dumps(str(launcher)))


def _server(launcher: Path) -> Ours:
    server: Json = {"type": "local", "command": [str(launcher)], "enabled": True}
    return member(("mcp", SERVER), server)


AGENT = Agent(
    name="opencode",
    title="OpenCode",
    programs=("opencode",),
    home=".config/opencode",
    events=events(
        "chat.message=UserPromptSubmit tool.execute.after=PostToolUse"
        " message.part.updated=PostToolUseFailure experimental.text.complete=Statement"
        " session.idle=Stop dispose=SessionEnd"
    ),
    context=("SessionStart", "UserPromptSubmit"),
    normalise=normalise,
    output=Output(FLAT),
    hooks=ConfigFile("plugins/claude-mem.js", ".opencode/plugins/claude-mem.js"),
    hooks_of=_plugin,
    mcp=ConfigFile("opencode.json", "opencode.json", may_be_jsonc=True),
    server_of=_server,
    data_home=".local/share/opencode",
    transcripts=Transcripts("opencode.db", _is_session, read_session, read_database),
    tested="real client",
    shell=("OPENCODE",),
    notes=("A plugin forwards its events; a failure in it never reaches OpenCode.",),
)
