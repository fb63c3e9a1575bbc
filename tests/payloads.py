"""Hook payloads in the format of the real client, with contents of our own."""

import itertools
import json
from typing import Any

from claude_mem.hook.private_text import MARK

SESSION = "4c1b3d5e-0f2a-4b6c-8d7e-9fa0b1c2d3e4"
PROMPT_ID = "aa6f0c9e-8d7b-4a5c-9b3e-2d1f0e4c6b8a"
PROJECT_DIR = "/home/dev/harbor"

Payload = dict[str, Any]
_numbers = itertools.count(1)


def common(event: str, **changes: Any) -> Payload:
    payload: Payload = {
        "session_id": SESSION,
        "transcript_path": f"/home/dev/.claude/projects/-home-dev-harbor/{SESSION}.jsonl",
        "cwd": PROJECT_DIR,
        "prompt_id": PROMPT_ID,
        "permission_mode": "default",
        "effort": {"level": "medium"},
        "hook_event_name": event,
        **changes,
    }
    return {name: value for name, value in payload.items() if value is not None}


def session_start(source: str = "startup", **changes: Any) -> Payload:
    return common("SessionStart", source=source, **{"prompt_id": None, **changes})


def prompt(text: str = "Make the harbour light blink twice", **changes: Any) -> Payload:
    return common("UserPromptSubmit", prompt=text, **changes)


def private_prompt(blank: str = "", **changes: Any) -> Payload:
    """What the hook leaves of a prompt that is private as a whole."""
    return {**prompt(blank, **changes), MARK: True}


def tool(name: str = "Bash", **changes: Any) -> Payload:
    filled: Payload = {
        "tool_name": name,
        "tool_input": {"command": "make light", "description": "Build the light"},
        "tool_response": {"stdout": "built", "stderr": "", "interrupted": False, "isImage": False},
        "tool_use_id": f"toolu_{next(_numbers):024d}",
        "duration_ms": 12,
    }
    return common("PostToolUse", **{**filled, **changes})


def bash(command: str, output: str = "", **changes: Any) -> Payload:
    """A command that succeeded."""
    response = {"stdout": output, "stderr": "", "interrupted": False, "isImage": False}
    return tool(tool_input={"command": command}, tool_response=response, **changes)


def edit(path: str = f"{PROJECT_DIR}/light.py", old: str = "blink(1)", new: str = "blink(2)",
         **changes: Any) -> Payload:  # fmt: skip
    return tool(
        "Edit",
        **{
            "tool_input": {"file_path": path, "old_string": old, "new_string": new},
            "tool_response": {
                "filePath": path,
                "oldString": old,
                "newString": new,
                "originalFile": f"{old}\nwait()\n",
                "structuredPatch": [
                    {
                        "oldStart": 1,
                        "oldLines": 2,
                        "newStart": 1,
                        "newLines": 2,
                        "lines": [f"-{old}", f"+{new}", " wait()"],
                    }
                ],
                "userModified": False,
                "replaceAll": False,
            },
            **changes,
        },
    )


def write(
    path: str = f"{PROJECT_DIR}/notes.md", content: str = "two blinks\n", **changes: Any
) -> Payload:
    return tool(
        "Write",
        **{
            "tool_input": {"file_path": path, "content": content},
            "tool_response": {
                "type": "create",
                "filePath": path,
                "content": content,
                "structuredPatch": [],
                "originalFile": None,
                "userModified": False,
            },
            **changes,
        },
    )


def read(path: str = f"{PROJECT_DIR}/light.py", **changes: Any) -> Payload:
    file = {
        "filePath": path,
        "content": "blink(1)\n",
        "numLines": 2,
        "startLine": 1,
        "totalLines": 2,
    }
    return tool(
        "Read",
        **{
            "tool_input": {"file_path": path},
            "tool_response": {"type": "text", "file": file},
            **changes,
        },
    )


def failure(**changes: Any) -> Payload:
    filled: Payload = {
        "tool_name": "Bash",
        "tool_input": {"command": "make test"},
        "tool_use_id": f"toolu_{next(_numbers):024d}",
        "error": "Exit code 2\nlight.py:3: the lamp is broken",
        "is_interrupt": False,
    }
    return common("PostToolUseFailure", **{**filled, **changes})


def stop(text: str = "The light blinks twice now.", **changes: Any) -> Payload:
    return common(
        "Stop",
        **{
            "stop_hook_active": False,
            "last_assistant_message": text,
            "background_tasks": [],
            "session_crons": [],
            **changes,
        },
    )


def stop_failure(**changes: Any) -> Payload:
    return common(
        "StopFailure", error="unknown", last_assistant_message="API Error: 400", **changes
    )


def subagent_stop(**changes: Any) -> Payload:
    return common(
        "SubagentStop",
        **{
            "agent_id": "a1b2c3d4e5f60718",
            "agent_type": "general-purpose",
            "stop_hook_active": False,
            "agent_transcript_path": "/home/dev/.claude/projects/x/subagents/agent-a1.jsonl",
            "last_assistant_message": "The lamp needs a new fuse.",
            **changes,
        },
    )


def pre_compact(trigger: str = "manual", **changes: Any) -> Payload:
    return common("PreCompact", trigger=trigger, custom_instructions="", **changes)


def post_compact(**changes: Any) -> Payload:
    return common(
        "PostCompact",
        trigger="manual",
        compact_summary="<summary>The light blinks; the fuse was changed.</summary>",
        **changes,
    )


def session_end(reason: str = "other", **changes: Any) -> Payload:
    return common("SessionEnd", reason=reason, **changes)


def one_of_each() -> list[Payload]:
    """Every event and tool result that the client sends, and some that it may send one day."""
    agent = {"agent_id": "a1b2c3d4e5f60718", "agent_type": "general-purpose"}
    batch = [
        {"tool_name": "Bash", "tool_input": {}, "tool_use_id": "toolu_b", "tool_response": "a"}
    ]
    return [
        *(session_start(s) for s in ("startup", "resume", "fork", "clear")),
        session_start("compact", prompt_id=PROMPT_ID, model="a-model"),
        session_start("resume", seconds_since_last_response=3, context_tokens=12_000),
        prompt(),
        read(),
        edit(),
        write(),
        tool(),
        tool(**agent),
        tool("ToolSearch", tool_input={"query": "select:x"}, tool_response={"matches": ["x"]}),
        tool("mcp__lamp__switch", tool_response=[{"type": "text", "text": "on"}],
             mcp_server={"name": "lamp", "source": "project"}),
        tool("Agent", tool_input={"prompt": "look", "subagent_type": "general-purpose"},
             tool_response={"status": "completed", "content": [{"type": "text", "text": "fuse"}]}),
        failure(),
        failure(tool_name="Read", tool_input={"file_path": "/nope"}, error="File does not exist."),
        subagent_stop(),
        subagent_stop(agent_type="", last_assistant_message="<summary>short</summary>"),
        pre_compact(),
        pre_compact("auto"),
        post_compact(),
        stop(),
        stop("Second thoughts.", stop_hook_active=True),
        stop_failure(),
        *(session_end(r) for r in ("other", "clear", "prompt_input_exit")),
        common("PreToolUse", tool_name="Bash", tool_input={"command": "ls"}, tool_use_id="toolu_a"),
        common("PostToolBatch", tool_calls=batch),
        common("SubagentStart", **agent),
        common("Notification", message="Waiting", notification_type="idle_prompt"),
        common("PermissionRequest", tool_name="Bash", tool_input={"command": "rm"}),
        common("UserPromptExpansion", expansion_type="slash_command", prompt="/x"),
        common("MessageDisplay", turn_id="t", message_id="m", index=0, final=True, delta="I will."),
        common("CwdChanged", old_cwd="/a", new_cwd="/b"),
        common("DirectoryAdded", directory="/extra", source="slash_command"),
        common("ConfigChange", source="user_settings", file_path="/home/dev/.claude/settings.json"),
        common("InstructionsLoaded", prompt_id=None, memory_type="Project"),
        common("PostModelSwitch", from_model="a", to_model="b", pricing={"x": 0.1}),
        common("PreModelSwitch", from_model="a", to_model="b"),
        common("Setup", prompt_id=None, trigger="init"),
        common("AnEventOfNextYear", something=["new", {"deep": [1, 2.5, None, True]}]),
    ]  # fmt: skip


def as_bytes(payload: Payload) -> bytes:
    return json.dumps(payload).encode()
