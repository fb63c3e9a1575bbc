"""OpenCode: our plugin forwards what its hooks get, with the session and the turn.

Past sessions are in its database; a file of `opencode export` is read as well.
"""

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from claude_mem.agents.agent import Agent, ConfigFile, Events, Lines, Normalised, Ours, Transcripts
from claude_mem.agents.attaching import SERVER, events, member
from claude_mem.agents.reading.conversation import Conversation
from claude_mem.agents.reading.fields import Fields, compact, texts_of
from claude_mem.agents.reading.tools import ToolCall, event, tool_events
from claude_mem.hook.other_agents import FLAT, Output
from claude_mem.hook.private_text import MARK, strip_payload
from claude_mem.json_objects import parse_object
from claude_mem.types import PROMPT, TOOL, TOOL_FAILURE, Json

PLUGIN = Path(__file__).with_name("opencode_plugin.js")
_LAUNCHER_MARK = '"LAUNCHER"'


def normalise(kind: str, payload: Fields) -> list[Normalised]:
    common = compact(
        session_id=payload.get("session_id"),
        prompt_id=payload.get("message_id"),
        cwd=payload.get("directory"),
        timestamp=payload.time,
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
    return tool_events(common, _call(payload, payload.text("call_id")))


def _call(part: Fields, call_id: str) -> ToolCall:
    state = part.inner("state")
    return ToolCall(
        part.text("tool"),
        state.get("input"),
        state.plain("output"),
        call_id,
        error=state.plain("error"),
        code=state.inner("metadata").number("exit") or 0,
    )


def _is_session(session: Fields) -> bool:
    return isinstance(session.get("info"), dict) and isinstance(session.get("messages"), list)


def read_session(lines: Lines, path: Path) -> Events:
    session = lines[0]
    info, rows = session.inner("info"), session.parts("messages")
    if not info.text("id") or not rows:
        return []
    begun = _created(rows[0].inner("info"))
    chat = Conversation(info.text("id"), info.text("directory"), path, begun)
    for row in rows:
        message, parts = row.inner("info"), row.parts("parts")
        at_ms = _created(message)
        if message.get("role") == "user":
            typed = [p.text("text") for p in parts if p.get("type") == "text"
                     and not p.get("synthetic")]  # fmt: skip
            # An export is one object: if some of it was private, any empty prompt may have been.
            source = next((o for o in (session, row, message, *parts) if MARK in o), message)
            chat.prompt(message.text("id"), "\n".join(typed), at_ms, source)
            continue
        for part in parts:
            state = part.inner("state")
            if part.get("type") == "text":
                chat.say(part.text("text"), at_ms, part.text("id"))
            elif part.get("type") == "tool" and state.get("status") in ("completed", "error"):
                ended = _unix_ms(state.inner("time").get("end"))
                chat.tool(_call(part, part.text("callID")), ended or at_ms)
    return chat.end()


def _created(message: Fields) -> int | None:
    return _unix_ms(message.inner("time").get("created"))


def _unix_ms(value: Json) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def read_database(copy: sqlite3.Connection) -> Iterator[Lines]:
    sessions = copy.execute(
        "SELECT id, directory, parent_id FROM session ORDER BY time_created, id"
    )
    for session_id, directory, parent in sessions:
        if parent is None:  # hooks report the work of subagents as part of their parent
            info: Json = {"id": session_id, "directory": directory}
            yield [Fields(info=info, messages=list(_messages(copy, session_id)))]


def _messages(copy: sqlite3.Connection, session_id: str) -> Iterator[Json]:
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


def _with_id(identity: str, data: str) -> Json:
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
