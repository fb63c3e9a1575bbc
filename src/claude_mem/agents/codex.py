"""Codex: Claude Code's event names and fields, with `turn_id` and its own tools.

Its payloads do not say whether a command failed; edits are patches.
"""

from pathlib import Path

from claude_mem.agents.agent import (
    Agent,
    AgentEvent,
    ConfigFile,
    Events,
    Lines,
    Normalised,
    Ours,
    TomlEntry,
    Transcripts,
)
from claude_mem.agents.attaching import SERVER, command_hooks, events
from claude_mem.agents.reading.conversation import Conversation
from claude_mem.agents.reading.fields import Fields, fields_of, plain_text, texts_of
from claude_mem.agents.reading.tools import ToolCall, event, tool_events
from claude_mem.hook.other_agents import NESTED, Output
from claude_mem.types import TOOL, Json

_TOOL_FIELDS = ("tool_name", "tool_input", "tool_response", "tool_use_id")
_DROPPED = ("turn_id", "model", "permission_mode", *_TOOL_FIELDS)


def normalise(kind: str, payload: Fields) -> list[Normalised]:
    common = {name: value for name, value in payload.items() if name not in _DROPPED}
    if turn_id := payload.text("turn_id"):
        common["prompt_id"] = turn_id
    if kind != TOOL:
        return event(kind, common)
    name, response = payload.text("tool_name"), payload.get("tool_response")
    output = plain_text(response)
    call = ToolCall(
        name,
        payload.get("tool_input"),
        output,
        payload.text("tool_use_id"),
        error=output if fields_of(response).get("isError") else "",
        code=0 if name == "Bash" else None,
    )
    return tool_events(common, call)


def _is_transcript(line: Fields) -> bool:
    return line.get("type") == "session_meta" and isinstance(line.get("payload"), dict)


def read_transcript(lines: Lines, path: Path) -> Events:
    meta = lines[0].inner("payload")
    chat = Conversation(meta.text("session_id", "id"), meta.text("cwd"), path, lines[0].at_ms)
    # Some versions write only plans as items.
    has_items = any(_item_of(line).get("type") == "UserMessage" for line in lines)
    turn = ""
    for line in lines:
        payload, at_ms = line.inner("payload"), line.at_ms
        turn = payload.text("turn_id") or turn
        if has_items:
            _read_item(chat, line, _item_of(line), turn)
        elif payload.get("type") == "user_message":
            chat.prompt(turn or f"{chat.session_id}:{at_ms}", payload.text("message"), at_ms, line)
        elif payload.get("type") == "agent_message":
            chat.say(payload.text("message"), at_ms, f"{at_ms}")
        else:
            _read_item(chat, line, _item_of_end(payload), turn)
    return chat.end()


def _item_of(line: Fields) -> Fields:
    payload = line.inner("payload")
    return payload.inner("item") if payload.get("type") == "item_completed" else Fields()


def _item_of_end(payload: Fields) -> Fields:
    """The item of a tool call, of which versions without items wrote the end."""
    kind, call_id = payload.get("type"), payload.get("call_id")
    if kind == "exec_command_end":
        return Fields(payload, type="CommandExecution", id=call_id)
    if kind == "patch_apply_end" and payload.get("success"):
        return Fields(type="FileChange", id=call_id, changes=payload.get("changes"))
    if kind == "mcp_tool_call_end":
        result = payload.inner("result")
        content = result.inner("Ok").get("content", result.get("Err"))
        call = payload.inner("invocation")
        return Fields(call, type="McpToolCall", id=call_id, result=content)
    return Fields()


def _read_item(chat: Conversation, line: Fields, item: Fields, turn: str) -> None:
    kind, call_id, at_ms = item.get("type"), item.text("id"), line.at_ms
    if kind == "UserMessage":
        chat.prompt(turn, texts_of(item.get("content")), at_ms, line)
    elif kind == "AgentMessage":
        chat.say(item.plain("content"), at_ms, call_id)
    elif kind == "CommandExecution":
        command: Json = {"command": _shell(item.get("command"))}
        output, code = item.text("aggregated_output"), item.number("exit_code") or 0
        chat.tool(ToolCall("Bash", command, output, call_id, code=code), at_ms)
    elif kind == "FileChange":
        for number, (file, change) in enumerate(item.inner("changes").items()):
            nth = f"{call_id}:{number}" if number else call_id
            chat.tool(_edit(file, fields_of(change), nth), at_ms)
    elif kind == "McpToolCall":
        name = f"mcp__{item.text('server')}__{item.text('tool')}"
        result = item.plain("result")
        chat.tool(ToolCall(name, item.get("arguments"), result, call_id), at_ms)


def _edit(file: str, change: Fields, call_id: str) -> ToolCall:
    if change.get("type") == "add":
        content: Json = {"file_path": file, "content": change.get("content")}
        return ToolCall("Write", content, "", call_id)
    diff = change.text("unified_diff").splitlines()
    old = "\n".join(line[1:] for line in diff if line[:1] == "-" and line[:3] != "---")
    new = "\n".join(line[1:] for line in diff if line[:1] == "+" and line[:3] != "+++")
    arguments: Json = {"file_path": file, "old_string": old, "new_string": new}
    return ToolCall("Edit", arguments, "", call_id)


def _shell(command: Json) -> Json:
    words = command if isinstance(command, list) else [command]
    return words[2] if len(words) == 3 and words[1] in ("-c", "-lc") else command


def _server(launcher: Path) -> Ours:
    return TomlEntry("mcp_servers", SERVER, launcher)


AGENT = Agent(
    name="codex",
    title="Codex",
    programs=("codex",),
    home=".codex",
    home_variable="CODEX_HOME",
    events=events(
        "SessionStart UserPromptSubmit PostToolUse SubagentStop PreCompact PostCompact Stop",
        AgentEvent("SessionEnd", "SessionEnd", 3),  # Codex allows no more
    ),
    context=("SessionStart", "UserPromptSubmit"),
    normalise=normalise,
    # It gives the agent only the beginning of a longer context.
    output=Output(NESTED, shows_messages=True, max_bytes=10_000),
    hooks=ConfigFile("hooks.json", ".codex/hooks.json"),
    hooks_of=command_hooks(),
    mcp=ConfigFile("config.toml", ".codex/config.toml"),
    server_of=_server,
    transcripts=Transcripts("sessions/*/*/*/rollout-*.jsonl", _is_transcript, read_transcript),
    tested="real client",
    shell=("CODEX_THREAD_ID", "CODEX_SANDBOX", "CODEX_SANDBOX_NETWORK_DISABLED"),
    advice=(
        "Codex asks you to review new hooks: start codex and accept them. Until then it skips them"
        " without a message."
    ),
    notes=(
        "Codex runs new or changed hooks only after you have reviewed them: start codex and"
        " accept them there. Until then it skips them without a message.",
        "Its hooks do not report whether a command failed: the worker reads that from the"
        " transcript at the end of the turn.",
    ),
)
