"""Memory for programs that use the Claude Agent SDK: `options = with_memory(options)`.

Hooks and tools run inside the program: no hook process is started, no settings file is read or
written, and several clients in one process share nothing but the worker. Needs the extra `claude`.
"""

import asyncio
import json
import os
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, cast

from claude_agent_sdk import (
    ClaudeAgentOptions,
    HookCallback,
    HookMatcher,
    PermissionResult,
    PermissionResultDeny,
    ToolPermissionContext,
    create_sdk_mcp_server,
    tool,
)

from claude_mem.errors import ClaudeMemError
from claude_mem.hook import spooling
from claude_mem.hook.private_text import strip_payload
from claude_mem.library import Memory
from claude_mem.recall.fence import NOTE, fenced
from claude_mem.rule_violations import Rule, broken_rule

SERVER = "claude-mem"
DIALECT = b"claude"
EVENTS = (
    "UserPromptSubmit", "PostToolUse", "PostToolUseFailure", "Stop", "SubagentStop", "PreCompact",
)  # fmt: skip
CanUseTool = Callable[[str, dict[str, Any], ToolPermissionContext], Awaitable[PermissionResult]]


def with_memory(
    options: ClaudeAgentOptions | None = None,
    *,
    project: str | Path | None = None,
    data_dir: str | Path | None = None,
    tools: bool = True,
) -> ClaudeAgentOptions:
    """The options, with memory of this project (default: their `cwd`).

    What the options already have (hooks, servers, allowed tools) stays. `tools` adds search over
    the memory for the agent.
    """
    options = options or ClaudeAgentOptions()
    directory = Path(project or options.cwd or Path.cwd()).absolute()
    memory = Memory.open(directory, data_dir=data_dir)
    recorder = _Recorder(memory)
    hooks: dict[Any, list[HookMatcher]] = {
        event: list(matchers) for event, matchers in (options.hooks or {}).items()
    }
    for event in EVENTS:
        callback = cast(HookCallback, recorder.callback(event))
        hooks.setdefault(event, []).append(HookMatcher(hooks=[callback]))
    if not tools:
        return replace(options, hooks=hooks)
    return replace(
        options,
        hooks=hooks,
        mcp_servers={**_servers(options), SERVER: _server(memory)},
        allowed_tools=[*options.allowed_tools, f"mcp__{SERVER}"],
    )


def memory_permissions(
    project: str | Path | None = None,
    *,
    otherwise: CanUseTool,
    on_broken_rule: Literal["deny", "ask"] = "deny",
    data_dir: str | Path | None = None,
) -> CanUseTool:
    """A `can_use_tool` callback that heeds the standing rules of the project.

    A call that breaks one ("never push to main", "always run make check first") is denied, with the
    rule as the reason; or `otherwise` is asked, with that as `decision_reason`. It never allows a
    call: everything else is decided by `otherwise`.
    """
    guard = _Guard(Memory.open(project, data_dir=data_dir))

    async def can_use_tool(
        name: str, arguments: dict[str, Any], context: ToolPermissionContext
    ) -> PermissionResult:
        rule = await asyncio.to_thread(guard.broken_rule, name, arguments)
        if rule is not None and on_broken_rule == "deny":
            return PermissionResultDeny(message=rule.reason)
        if rule is not None:
            context = replace(context, decision_reason=rule.reason)
        result = await otherwise(name, arguments, context)
        if result.behavior == "allow":
            guard.note(name, arguments)
        return result

    return can_use_tool


@dataclass(slots=True)
class _Recorder:
    """Writes the events of the SDK's hooks to the spool, as the hook process does."""

    memory: Memory
    started: set[str] = field(default_factory=set)  # sessions that have their context

    def callback(self, event: str) -> Callable[..., Awaitable[dict[str, Any]]]:
        async def hook(payload: Mapping[str, Any], *_: object) -> dict[str, Any]:
            try:
                return await asyncio.to_thread(self._handle, event, dict(payload))
            except (OSError, ValueError, ClaudeMemError):
                return {}  # a memory that is missing must not disturb the agent

        return hook

    def _handle(self, event: str, payload: dict[str, Any]) -> dict[str, Any]:
        session = str(payload.get("session_id"))
        is_first = event == "UserPromptSubmit" and session not in self.started
        context = ""
        if is_first:  # the SDK has no SessionStart
            self.started.add(session)
            context = self.memory.context()
            start = {"session_id": session, "cwd": payload.get("cwd"), "source": "startup",
                     "transcript_path": payload.get("transcript_path")}  # fmt: skip
            self._spool("SessionStart", start)
        self._spool(event, payload)
        spooling.wake_or_start(self._data_dir)
        if not context:
            return {}
        output = {"hookEventName": event, "additionalContext": context}
        return {"hookSpecificOutput": output}

    @property
    def _data_dir(self) -> bytes:
        return os.fsencode(self.memory.data_dir)

    def _spool(self, event: str, payload: dict[str, Any]) -> None:
        directory = os.fsencode(self.memory.directory)
        header = spooling.header(DIALECT, event.encode(), time.time_ns(), directory)
        spooling.put(self._data_dir, header, strip_payload(json.dumps(payload).encode()))


@dataclass(slots=True)
class _Guard:
    memory: Memory
    commands: list[str] = field(default_factory=list)  # that were allowed, in order

    def broken_rule(self, name: str, arguments: dict[str, Any]) -> Rule | None:
        command = arguments.get("command")
        if name != "Bash" or not isinstance(command, str):
            return None
        return broken_rule(command, self.commands, self.memory.rules())

    def note(self, name: str, arguments: dict[str, Any]) -> None:
        if name == "Bash" and isinstance(command := arguments.get("command"), str):
            self.commands.append(command)


def _servers(options: ClaudeAgentOptions) -> dict[str, Any]:
    if isinstance(options.mcp_servers, dict):
        return dict(options.mcp_servers)
    raise ClaudeMemError(
        "mcp_servers is a file: pass with_memory(…, tools=False), or name the servers in a dict"
    )


def _server(memory: Memory) -> Any:
    @tool("search", "Search memories of earlier sessions of this project.", {"query": str})
    async def search(arguments: dict[str, Any]) -> dict[str, Any]:
        return _text(await asyncio.to_thread(_search_result, memory, str(arguments["query"])))

    @tool("save_memory", "Save something worth knowing in later sessions.", {"text": str})
    async def save_memory(arguments: dict[str, Any]) -> dict[str, Any]:
        saved = await asyncio.to_thread(_save_for_agent, memory, str(arguments["text"]))
        return _text(f"Saved as #{saved}.")

    return create_sdk_mcp_server(SERVER, tools=[search, save_memory])


def _search_result(memory: Memory, query: str) -> str:
    return fenced(NOTE, memory._search_text(query))


def _save_for_agent(memory: Memory, text: str) -> str:
    return memory._save({"text": text, "by": "agent"})


def _text(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}]}
