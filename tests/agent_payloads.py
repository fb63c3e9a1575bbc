"""One session of each other agent, in the shapes of its payloads, with contents of our own.

The user asks for a light that blinks twice. The agent runs a command, edits `light.py`, runs a
command that fails, and says what it did. Each item is our kind of the event, which the installed
hook passes, and the payload.
"""

from typing import Any

from tests.payloads import PROJECT_DIR

Payload = dict[str, Any]
Story = list[tuple[str, Payload]]

REQUEST = "Make the harbour light blink twice"
ANSWER = "The light blinks twice now; the lamp needed a new fuse."
LIGHT = f"{PROJECT_DIR}/light.py"
FAILURE = "the lamp is broken"
PATCH = "*** Begin Patch\n*** Update File: light.py\n@@\n-blink(1)\n+blink(2)\n*** End Patch\n"
HOME = "/home/dev"


def codex() -> Story:
    session = "01a1e063-0000-7000-8000-00000000c0de"

    def of(kind: str, **fields: Any) -> tuple[str, Payload]:
        turn = {} if kind in ("SessionStart", "SessionEnd") else {"turn_id": f"{session}-turn"}
        return kind, {
            "session_id": session, **turn,
            "transcript_path": f"{HOME}/.codex/sessions/2026/11/15/rollout-{session}.jsonl",
            "cwd": PROJECT_DIR, "hook_event_name": kind, "model": "a-model",
            "permission_mode": "default", **fields,
        }  # fmt: skip

    return [
        of("SessionStart", source="startup"),
        of("UserPromptSubmit", prompt=REQUEST),
        of("PostToolUse", tool_name="Bash", tool_input={"command": "make light"},
           tool_response="built\n", tool_use_id="call_1"),
        of("PostToolUse", tool_name="apply_patch", tool_input={"command": PATCH},
           tool_response="Exit code: 0\nOutput:\nSuccess.", tool_use_id="call_2"),
        of("PostToolUse", tool_name="Bash", tool_input={"command": "make test"},
           tool_response=f"{FAILURE}\n", tool_use_id="call_3"),
        of("Stop", stop_hook_active=False, last_assistant_message=ANSWER),
        of("SessionEnd", reason="other"),
    ]  # fmt: skip


def gemini() -> Story:
    session = "6ad91f95-0000-4000-8000-0000000900e1"
    second = iter(range(10, 60))

    def of(kind: str, name: str, **fields: Any) -> tuple[str, Payload]:
        return kind, {
            "session_id": session, "cwd": PROJECT_DIR, "hook_event_name": name,
            "transcript_path": f"{HOME}/.gemini/tmp/harbor/chats/session-1.jsonl",
            "timestamp": f"2026-11-15T18:08:{next(second)}.001Z", **fields,
        }  # fmt: skip

    def shell(command: str, content: str) -> tuple[str, Payload]:
        return of("PostToolUse", "AfterTool", tool_name="run_shell_command",
                  tool_input={"command": command, "description": "Build", "is_background": False},
                  tool_response={"llmContent": content, "returnDisplay": ""})  # fmt: skip

    prompt = f"<hook_context>an earlier memory</hook_context>\n\n{REQUEST}"
    return [
        of("SessionStart", "SessionStart", source="startup"),
        of("UserPromptSubmit", "BeforeAgent", prompt=prompt),
        shell("make light", "<untrusted_context>\nOutput: built\nProcess Group PGID: 7\n"
                            "</untrusted_context>"),
        of("PostToolUse", "AfterTool", tool_name="replace",
           tool_input={"file_path": LIGHT, "old_string": "blink(1)", "new_string": "blink(2)"},
           tool_response={"llmContent": "Successfully modified file", "returnDisplay": {}}),
        shell("make test", f"<untrusted_context>\nOutput: {FAILURE}\nError: (none)\nExit Code: 2\n"
                           "Signal: (none)\n</untrusted_context>"),
        of("Stop", "AfterAgent", prompt=prompt, prompt_response=ANSWER, stop_hook_active=False),
        of("SessionEnd", "SessionEnd", reason="exit"),
    ]  # fmt: skip


def qwen() -> Story:
    session = "06ba1189-0000-4000-8000-0000000011e4"
    second = iter(range(10, 60))

    def of(kind: str, **fields: Any) -> tuple[str, Payload]:
        turn = {} if kind == "SessionStart" else {"prompt_id": f"{session}########0"}
        return kind, {
            "session_id": session, "cwd": PROJECT_DIR, "hook_event_name": kind,
            "transcript_path": f"{HOME}/.qwen/projects/-home-dev-harbor/chats/{session}.jsonl",
            "timestamp": f"2026-11-15T18:18:{next(second)}.456Z", "permission_mode": "yolo",
            **turn, **fields,
        }  # fmt: skip

    def shell(number: int, command: str, output: str, code: int) -> tuple[str, Payload]:
        content = (f"Command: {command}\nDirectory: (root)\nOutput: {output}\nError: (none)\n"
                   f"Exit Code: {code}\nSignal: (none)\nProcess Group PGID: (none)")  # fmt: skip
        return of("PostToolUse", tool_name="run_shell_command", tool_input={"command": command},
                  tool_response={"llmContent": content, "returnDisplay": output},
                  tool_use_id=f"toolu_{number}", tool_call_id=f"call_{number}",
                  duration_ms=4)  # fmt: skip

    return [
        of("SessionStart", source="startup", model="a-model"),
        of("UserPromptSubmit", prompt=REQUEST, submitted_prompt=REQUEST),
        shell(1, "make light", "built", 0),
        of("UserPromptSubmit", prompt=""),
        of("PostToolUse", tool_name="edit", tool_use_id="toolu_2", tool_call_id="call_2",
           tool_input={"file_path": LIGHT, "old_string": "blink(1)", "new_string": "blink(2)"},
           tool_response={"llmContent": "done", "returnDisplay": {}}),
        of("UserPromptSubmit", prompt=""),
        shell(3, "make test", FAILURE, 2),
        of("UserPromptSubmit", prompt=""),
        of("Stop", stop_hook_active=False, last_assistant_message=ANSWER, background_tasks=[]),
    ]  # fmt: skip


def copilot(spelling: str = "camel") -> Story:
    """Makes payloads; "snake" is what it sends to the hooks of Claude Code's settings."""
    session = "d804b4e4-0000-4000-8000-000000c07110"
    tick = iter(range(1, 60))

    def of(kind: str, **fields: Any) -> tuple[str, Payload]:
        ms = next(tick)
        if spelling == "camel":
            head: Payload = {"sessionId": session, "timestamp": 1794766432000 + ms}
            return kind, {**head, "cwd": PROJECT_DIR, **fields}
        snake = {
            "toolName": "tool_name", "toolArgs": "tool_input", "toolResult": "tool_result",
            "transcriptPath": "transcript_path", "initialPrompt": "initial_prompt",
        }  # fmt: skip
        renamed = {snake.get(name, name): value for name, value in fields.items()}
        if "tool_result" in renamed:
            result = renamed["tool_result"]
            renamed["tool_name"] = {"bash": "Bash", "edit": "Edit"}[renamed["tool_name"]]
            renamed["tool_result"] = {
                "result_type": result["resultType"],
                "text_result_for_llm": result["textResultForLlm"],
            }
        return kind, {
            "hook_event_name": kind, "session_id": session,
            "timestamp": f"2026-11-15T18:13:52.{ms:03}Z", "cwd": PROJECT_DIR, **renamed,
        }  # fmt: skip

    def shell(command: str, output: str, code: int) -> tuple[str, Payload]:
        text = f"{output}\n<shellId: 0 completed with exit code {code}>"
        return of("PostToolUse", toolName="bash", toolArgs={"command": command},
                  toolResult={"resultType": "success", "textResultForLlm": text})  # fmt: skip

    return [
        of("SessionStart", source="new", initialPrompt=REQUEST),
        of("UserPromptSubmit", prompt=REQUEST),
        shell("make light", "built", 0),
        of("PostToolUse", toolName="edit",
           toolArgs={"path": LIGHT, "old_str": "blink(1)", "new_str": "blink(2)"},
           toolResult={"resultType": "success", "textResultForLlm": "File updated"}),
        shell("make test", FAILURE, 2),
        of("Stop", stopReason="end_turn", stop_hook_active=False,
           transcriptPath=f"{HOME}/.copilot/session-state/{session}/events.jsonl"),
        of("SessionEnd", reason="complete"),
    ]  # fmt: skip


def opencode() -> Story:
    session = "ses_e1f97b091ffeuBf3S1pmXpopSI"

    def of(kind: str, **fields: Any) -> tuple[str, Payload]:
        head = {"session_id": session, "directory": PROJECT_DIR}
        turn = {} if kind in ("SessionStart", "SessionEnd") else {"message_id": "msg_1"}
        return kind, {**head, **turn, **fields}

    def shell(number: int, command: str, output: str, code: int) -> tuple[str, Payload]:
        return of("PostToolUse", tool="bash", call_id=f"call_{number}", state={
            "status": "completed", "input": {"command": command, "description": "Build"},
            "output": output, "title": command, "metadata": {"exit": code, "output": output},
        })  # fmt: skip

    return [
        of("SessionStart", source="startup"),
        of("UserPromptSubmit", parts=[{"type": "text", "text": REQUEST}]),
        shell(1, "make light", "built\n", 0),
        of("PostToolUse", tool="edit", call_id="call_2", state={
            "status": "completed", "output": "Edit applied.",
            "input": {"filePath": LIGHT, "oldString": "blink(1)", "newString": "blink(2)"},
        }),
        shell(3, "make test", FAILURE, 2),
        of("Stop", last_text=ANSWER),
        of("SessionEnd"),
    ]  # fmt: skip


def cursor() -> Story:
    session = "agent-34f29f04-0000-4000-8000-00000000c52e"

    def of(kind: str, name: str, **fields: Any) -> tuple[str, Payload]:
        return kind, {
            "conversation_id": session, "generation_id": "generation-1", "session_id": session,
            "model": "a-model", "hook_event_name": name, "cursor_version": "1.0.0",
            "workspace_roots": [PROJECT_DIR], "user_email": None, "transcript_path": None,
            "cwd": f"{HOME}/.cursor", **fields,
        }  # fmt: skip

    def shell(number: int, command: str, output: str) -> Payload:
        return {"tool_name": "Shell", "tool_input": {"command": command}, "tool_output": output,
                "tool_use_id": f"tool_{number}", "duration": 12}  # fmt: skip

    failing = {**shell(3, "make test", ""), "error_message": f"Exit code 2\n{FAILURE}"}
    return [
        of("SessionStart", "sessionStart", is_background_agent=False),
        of("UserPromptSubmit", "beforeSubmitPrompt", prompt=REQUEST, attachments=[]),
        of("PostToolUse", "postToolUse", **shell(1, "make light", "built")),
        of("PostToolUse", "postToolUse", tool_name="StrReplace", tool_use_id="tool_2",
           tool_input={"path": LIGHT, "old_string": "blink(1)", "new_string": "blink(2)"},
           tool_output="done", duration=3),
        of("PostToolUseFailure", "postToolUseFailure", **failing),
        of("Statement", "afterAgentResponse", text=ANSWER),
        of("Stop", "stop", status="completed", loop_count=0),
        of("SessionEnd", "sessionEnd", reason="completed"),
    ]  # fmt: skip


def vscode() -> Story:
    session = "vscode-session-1"

    def of(kind: str, **fields: Any) -> tuple[str, Payload]:
        return kind, {
            "timestamp": "2026-11-15T18:20:11.000Z", "cwd": PROJECT_DIR, "sessionId": session,
            "hookEventName": kind, "transcript_path": "/tmp/transcript.json", **fields,
        }  # fmt: skip

    return [
        of("SessionStart", source="new"),
        of("UserPromptSubmit", prompt=REQUEST),
        of("PostToolUse", tool_name="run_in_terminal", tool_input={"command": "make light"},
           tool_use_id="tool-1", tool_response="built"),
        of("PostToolUse", tool_name="replace_string_in_file", tool_use_id="tool-2",
           tool_input={"filePath": LIGHT, "oldString": "blink(1)", "newString": "blink(2)"},
           tool_response="The file was edited."),
        of("PostToolUse", tool_name="run_in_terminal", tool_input={"command": "make test"},
           tool_use_id="tool-3", tool_response=FAILURE),
        of("Stop", stop_hook_active=False),
    ]  # fmt: skip


def windsurf() -> Story:
    minute = iter(range(10, 60))

    def of(kind: str, action: str, **info: Any) -> tuple[str, Payload]:
        return kind, {
            "agent_action_name": action, "trajectory_id": "trajectory-1",
            "execution_id": "execution-1", "model_name": "a-model",
            "timestamp": f"2026-11-15T18:{next(minute)}:00Z", "tool_info": info,
        }  # fmt: skip

    return [
        of("UserPromptSubmit", "pre_user_prompt", user_prompt=REQUEST),
        of("PostToolUse", "post_run_command", command_line="make light", cwd=PROJECT_DIR),
        of("PostToolUse", "post_write_code", file_path=LIGHT,
           edits=[{"old_string": "blink(1)", "new_string": "blink(2)"}]),
        of("PostToolUse", "post_run_command", command_line="make test", cwd=PROJECT_DIR),
        of("Stop", "post_cascade_response", response=ANSWER),
    ]  # fmt: skip


STORIES = {
    "codex": codex,
    "gemini": gemini,
    "qwen": qwen,
    "copilot": copilot,
    "opencode": opencode,
    "cursor": cursor,
    "vscode": vscode,
    "windsurf": windsurf,
}
