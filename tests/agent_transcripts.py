"""The session of tests/agent_payloads.py as each agent keeps it on disk."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from tests import agent_payloads
from tests.agent_payloads import ANSWER, FAILURE, LIGHT, REQUEST
from tests.payloads import PROJECT_DIR

Row = dict[str, Any]
DAY = "2026-11-15T18:07"


def session_id(name: str) -> str:
    payload = agent_payloads.STORIES[name]()[0][1]
    return str(payload.get("session_id") or payload.get("sessionId"))


def write_lines(path: Path, rows: list[Row]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def codex(home: Path) -> Path:
    session = session_id("codex")
    turn = f"{session}-turn"

    def item(second: int, **fields: Any) -> Row:
        payload = {"type": "item_completed", "thread_id": session, "turn_id": turn, "item": fields}
        return {"timestamp": f"{DAY}:{second}.000Z", "type": "event_msg", "payload": payload}

    def command(number: int, line: str, output: str, code: int) -> Row:
        return item(20 + number, type="CommandExecution", id=f"call_{number}",
                    command=["/bin/bash", "-lc", line], status="completed",
                    aggregated_output=output, exit_code=code)  # fmt: skip

    meta = {"session_id": session, "id": session, "cwd": PROJECT_DIR, "cli_version": "0.166.0"}
    given = {"type": "message", "role": "developer",
             "content": [{"type": "input_text", "text": "an earlier memory"}]}  # fmt: skip
    change = {"type": "update", "unified_diff": "@@ -1,2 +1,2 @@\n-blink(1)\n+blink(2)\n wait()\n"}
    return write_lines(home / f"sessions/2026/11/15/rollout-{session}.jsonl", [
        {"timestamp": f"{DAY}:10.000Z", "type": "session_meta", "payload": meta},
        {"timestamp": f"{DAY}:11.000Z", "type": "response_item", "payload": given},
        item(12, type="UserMessage", id="u", content=[{"type": "text", "text": REQUEST}]),
        command(1, "make light", "built\n", 0),
        item(22, type="FileChange", id="call_2", changes={LIGHT: change}, status="completed"),
        command(3, "make test", f"{FAILURE}\n", 2),
        item(30, type="AgentMessage", id="m", content=[{"type": "Text", "text": ANSWER}]),
    ])  # fmt: skip


def copilot(home: Path) -> Path:
    session = session_id("copilot")

    def row(second: int, kind: str, **data: Any) -> Row:
        return {"type": kind, "data": data, "id": f"e{second}", "timestamp": f"{DAY}:{second}.000Z"}

    def call(number: int, name: str, arguments: Row, output: str, code: int | None) -> list[Row]:
        shell = {} if code is None else {"shellExecution": {"exitCode": code}}
        mark = "" if code is None else f"\n<shellId: 0 completed with exit code {code}>"
        result = {"content": f"{output}{mark}\n\nTool guidance", "detailedContent": output + mark}
        return [
            row(20 + number, "tool.execution_start", toolCallId=f"call_{number}", toolName=name,
                arguments=arguments),
            row(30 + number, "tool.execution_complete", toolCallId=f"call_{number}", success=True,
                result=result, **shell),
        ]  # fmt: skip

    edit = {"path": LIGHT, "old_str": "blink(1)", "new_str": "blink(2)"}
    return write_lines(home / f"session-state/{session}/events.jsonl", [
        row(10, "session.start", sessionId=session, context={"cwd": PROJECT_DIR}),
        row(11, "user.message", content=REQUEST, messageId="message-1",
            transformedContent=f"<current_datetime/>\n{REQUEST}"),
        *call(1, "bash", {"command": "make light"}, "built", 0),
        *call(2, "edit", edit, "File updated", None),
        *call(3, "bash", {"command": "make test"}, FAILURE, 2),
        row(50, "assistant.message", content=ANSWER, messageId="message-2", toolRequests=[]),
        row(51, "session.shutdown"),
    ])  # fmt: skip


def gemini(home: Path) -> Path:
    session = session_id("gemini")

    def row(second: int, identity: str, kind: str, content: Any, **fields: Any) -> Row:
        return {"id": identity, "timestamp": f"{DAY}:{second}.000Z", "type": kind,
                "content": content, **fields}  # fmt: skip

    def call(number: int, name: str, arguments: Row, output: str) -> Row:
        response = {"functionResponse": {"id": str(number), "response": {"output": output}}}
        return {"id": f"call_{number}", "name": name, "args": arguments, "result": [response],
                "status": "success", "timestamp": f"{DAY}:{30 + number}.000Z"}  # fmt: skip

    shell = "run_shell_command"
    edit = {"file_path": LIGHT, "old_string": "blink(1)", "new_string": "blink(2)"}
    calls = [
        call(1, shell, {"command": "make light"},
             "<untrusted_context>\nOutput: built\n</untrusted_context>\n\n"
             "<hook_context>more</hook_context>"),
        call(2, "replace", edit, "Successfully modified file"),
        call(3, shell, {"command": "make test"},
             f"<untrusted_context>\nOutput: {FAILURE}\nExit Code: 2\n</untrusted_context>"),
    ]  # fmt: skip
    setup = f"<session_context>\n- **Workspace Directories:**\n  - {PROJECT_DIR}\n"
    given = f"<hook_context>an earlier memory</hook_context>\n\n{REQUEST}"
    return write_lines(home / "tmp/harbor/chats/session-1.jsonl", [
        {"sessionId": session, "projectHash": "8d17", "startTime": f"{DAY}:10.000Z"},
        {"$set": {"messages": [row(10, "setup", "user", [{"text": setup}])]}},
        row(11, "user-1", "user", [{"text": given}]),
        row(12, "model-1", "gemini", ""),
        {"$set": {"lastUpdated": f"{DAY}:13.000Z"}},
        row(12, "model-1", "gemini", "", toolCalls=calls),
        row(40, "results", "user", [{"functionResponse": {"id": "1"}}]),
        row(41, "model-2", "gemini", ANSWER),
    ])  # fmt: skip


def qwen(home: Path) -> Path:
    session = session_id("qwen")
    prompt_id = f"{session}########0"

    def row(second: int, kind: str, parts: list[Row], **fields: Any) -> Row:
        return {"uuid": f"u{second}", "sessionId": session, "type": kind, "cwd": PROJECT_DIR,
                "timestamp": f"{DAY}:{second}.000Z", "message": {"parts": parts},
                **fields}  # fmt: skip

    def call(number: int, name: str, arguments: Row, display: Any, output: str) -> list[Row]:
        identity = f"call_{number}"
        done = {"functionResponse": {"id": identity, "response": {"output": output}}}
        return [
            row(20 + number, "assistant", [
                {"text": "let me think", "thought": True},
                {"functionCall": {"id": identity, "name": name, "args": arguments}},
            ]),
            row(30 + number, "tool_result", [done], provenance="tool_result",
                toolCallResult={"callId": identity, "resultDisplay": display}),
        ]  # fmt: skip

    def shell(number: int, command: str, output: str, code: int) -> list[Row]:
        display = {"type": "shell_result", "exitCode": code, "output": output}
        return call(number, "run_shell_command", {"command": command}, display, output)

    telemetry = {"uiEvent": {"prompt_id": prompt_id}}
    edit = {"file_path": LIGHT, "old_string": "blink(1)", "new_string": "blink(2)"}
    parts = [{"text": REQUEST}, {"text": "<qwen:user-prompt-submit-context>an earlier memory"}]
    return write_lines(home / f"projects/-home-dev-harbor/chats/{session}.jsonl", [
        row(11, "user", parts, provenance="real_user", systemPayload={"displayText": REQUEST}),
        {"type": "system", "sessionId": session, "systemPayload": telemetry,
         "timestamp": f"{DAY}:12.000Z"},
        *shell(1, "make light", "built", 0),
        *call(2, "edit", edit, {"fileDiff": "x"}, "done"),
        *shell(3, "make test", FAILURE, 2),
        row(50, "assistant", [{"text": ANSWER}]),
    ])  # fmt: skip


def cursor(home: Path) -> Path:
    """Writes a transcript without ids, times and results of tools."""
    session = session_id("cursor")

    def message(role: str, *parts: Row) -> Row:
        return {"role": role, "message": {"content": list(parts)}}

    def text(words: str) -> Row:
        return {"type": "text", "text": words}

    def call(name: str, **arguments: str) -> Row:
        return {"type": "tool_use", "name": name, "input": arguments}

    asked = f"<timestamp>Sunday</timestamp>\n<user_query>\n{REQUEST}\n</user_query>"
    return write_lines(
        home / f"projects/{cursor_folder()}/agent-transcripts/{session}/{session}.jsonl", [
            message("user", text(asked)),
            message("assistant", call("Shell", command="make light"),
                    call("StrReplace", path=LIGHT, old_string="blink(1)", new_string="blink(2)")),
            message("assistant", call("Shell", command="make test")),
            message("assistant", text(ANSWER)),
            {"type": "turn_ended", "status": "success"},
        ])  # fmt: skip


def cursor_folder() -> str:
    return PROJECT_DIR.strip("/").replace("/", "-")


def opencode_session() -> Row:
    def tool(number: int, name: str, arguments: Row, output: str, exit_code: int | None) -> Row:
        state = {
            "status": "completed",
            "input": arguments,
            "output": output,
            "metadata": {"exit": exit_code},
            "time": {"end": 1794766380000 + number},
        }
        return {"type": "tool", "tool": name, "callID": f"call_{number}", "state": state,
                "id": f"prt_{number}"}  # fmt: skip

    edit = {"filePath": LIGHT, "oldString": "blink(1)", "newString": "blink(2)"}
    return {
        "info": {"id": session_id("opencode"), "directory": PROJECT_DIR},
        "messages": [
            {"info": {"id": "msg_1", "role": "user", "time": {"created": 1794766370000}},
             "parts": [{"id": "prt_a", "type": "text", "text": REQUEST},
                       {"id": "prt_b", "type": "text", "text": "a memory", "synthetic": True}]},
            {"info": {"id": "msg_2", "role": "assistant", "time": {"created": 1794766371000}},
             "parts": [tool(1, "bash", {"command": "make light"}, "built\n", 0),
                       tool(2, "edit", edit, "Edit applied.", None),
                       tool(3, "bash", {"command": "make test"}, FAILURE, 2),
                       {"id": "prt_z", "type": "text", "text": ANSWER}]},
        ],
    }  # fmt: skip


def opencode(home: Path) -> Path:
    """Writes its database; the columns are those that are read."""
    home.mkdir(parents=True, exist_ok=True)
    path, session = home / "opencode.db", opencode_session()
    with closing(sqlite3.connect(path)) as database, database:
        database.executescript(
            "CREATE TABLE session (id, parent_id, directory, time_created);"
            "CREATE TABLE message (id, session_id, time_created, data);"
            "CREATE TABLE part (id, message_id, data);"
        )
        info = session["info"]
        database.execute("INSERT INTO session VALUES (?, NULL, ?, 1)",
                         (info["id"], info["directory"]))  # fmt: skip
        database.execute("INSERT INTO session VALUES ('child', ?, '/', 2)", (info["id"],))
        for number, message in enumerate(session["messages"]):
            identity, *_ = message["info"].values()
            database.execute(
                "INSERT INTO message VALUES (?, ?, ?, ?)",
                (identity, info["id"], number, json.dumps(message["info"])),
            )
            for part in message["parts"]:
                database.execute("INSERT INTO part VALUES (?, ?, ?)",
                                 (part["id"], identity, json.dumps(part)))  # fmt: skip
    return path


TRANSCRIPTS: dict[str, Callable[[Path], Path]] = {
    "codex": codex,
    "copilot": copilot,
    "gemini": gemini,
    "qwen": qwen,
    "opencode": opencode,
    "cursor": cursor,
}
