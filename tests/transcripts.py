"""Transcripts as Claude Code writes them, built line by line, and read back for comparison."""

import json
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from claude_mem.agents.agent import TranscriptEvent
from claude_mem.intake.transcripts.import_options import ImportOptions
from claude_mem.intake.transcripts.past_sessions import PastSessionReader
from claude_mem.intake.transcripts.transcript import Transcript
from claude_mem.types import PastSession
from tests.payloads import PROJECT_DIR

SESSION = "5d0c7a11-2b3e-4f60-9a81-c4d5e6f70819"
OLD = 1_700_000_000_000  # long before any raw event is kept
PROJECTS = ".claude/projects"

Line = dict[str, Any]


def recently() -> int:
    """An hour ago, so that raw events of it are kept."""
    return (int(time.time()) - 3600) * 1000


class Chat:
    """A session as its transcript. Each line is a second after the previous one."""

    def __init__(
        self,
        session: str = SESSION,
        *,
        start: int = OLD,
        cwd: str = PROJECT_DIR,
        prompt_ids: bool = True,
    ) -> None:
        self.session, self.now, self.cwd, self.prompt_ids = session, start, cwd, prompt_ids
        self.lines: list[bytes] = []
        self._count = 0
        self._prompt_id = ""

    def name(self, kind: str) -> str:
        """A unique id, the same in every run."""
        self._count += 1
        return f"{kind}-{self.session}-{self._count:04d}"

    def raw(self, line: bytes) -> Self:
        self.lines.append(line)
        return self

    def line(self, kind: str, **fields: Any) -> Self:
        """A field that is None is left out."""
        self.now += 1000
        values: Line = {
            "parentUuid": None,
            "isSidechain": False,
            "userType": "external",
            "cwd": self.cwd,
            "sessionId": self.session,
            "version": "2.1.325",
            "gitBranch": "main",
            "type": kind,
            "uuid": self.name("uuid"),
            "timestamp": stamp(self.now),
            **fields,
        }
        line = {name: value for name, value in values.items() if value is not None}
        return self.raw(json.dumps(line).encode())

    def user(self, content: Any, **fields: Any) -> Self:
        """A user message within the current turn."""
        ids = {"promptId": self._prompt_id} if self.prompt_ids else {}
        return self.line("user", **{"message": {"role": "user", "content": content}, **ids,
                                    **fields})  # fmt: skip

    def prompt(self, content: Any, **fields: Any) -> Self:
        """A new turn."""
        self._prompt_id = self.name("prompt")
        return self.user(content, **fields)

    def agent(self, *blocks: Line | str, message_id: str = "", **fields: Any) -> Self:
        content = [text(block) if isinstance(block, str) else block for block in blocks]
        message = {
            "id": message_id or self.name("msg"),
            "type": "message",
            "role": "assistant",
            "model": "a-model",
            "content": content,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }
        return self.line("assistant", **{"message": message, **fields})

    def tool(
        self,
        name: str,
        tool_input: Any,
        result: Any = None,
        *,
        content: Any = "done",
        error: bool = False,
        call: str = "",
    ) -> Self:
        """A call and its result; without `result`, the client stored only the content."""
        call = call or self.name("toolu")
        self.agent(tool_use(name, tool_input, call))
        block = {"type": "tool_result", "tool_use_id": call, "content": content, "is_error": error}
        fields = {} if result is None else {"toolUseResult": result}
        return self.user([block], **fields)

    def bash(self, command: str, stdout: str = "", *, stderr: str = "") -> Self:
        return self.tool(
            "Bash",
            {"command": command},
            {"stdout": stdout, "stderr": stderr, "interrupted": False, "isImage": False},
            content=stdout,
        )

    def failing(self, command: str, error: str) -> Self:
        return self.tool("Bash", {"command": command}, f"Error: {error}", content=error, error=True)

    def edit(self, path: str, old: str = "blink(1)", new: str = "blink(2)") -> Self:
        patch = {"oldStart": 1, "oldLines": 1, "newStart": 1, "newLines": 1,
                 "lines": [f"-{old}", f"+{new}"]}  # fmt: skip
        return self.tool(
            "Edit",
            {"file_path": path, "old_string": old, "new_string": new},
            {"filePath": path, "oldString": old, "newString": new, "originalFile": f"{old}\n",
             "structuredPatch": [patch]},
        )  # fmt: skip

    def write_file(self, path: str, content: str) -> Self:
        return self.tool(
            "Write",
            {"file_path": path, "content": content},
            {"type": "create", "filePath": path, "content": content, "structuredPatch": []},
        )

    def read_file(self, path: str, content: str = "blink(1)\n") -> Self:
        return self.tool(
            "Read",
            {"file_path": path},
            {"type": "text", "file": {"filePath": path, "content": content, "numLines": 1}},
            content=[text(content)],
        )

    def command(self, name: str, arguments: str = "", **fields: Any) -> Self:
        """The wrapper that the client puts around a slash command."""
        return self.prompt(
            f"<command-name>/{name}</command-name>\n            <command-message>{name}"
            f"</command-message>\n            <command-args>{arguments}</command-args>",
            **fields,
        )

    def noise(self) -> Self:
        """Lines that are not part of the conversation."""
        self.line("progress", data={"type": "hook_progress", "hookEvent": "PostToolUse"})
        self.raw(b'{"type":"queue-operation","operation":"enqueue","content":"later, please"}')
        self.raw(b'{"type":"file-history-snapshot","messageId":"m","snapshot":{}}')
        self.raw(b'{"type":"summary","summary":"The user and the harbour","leafUuid":"u"}')
        self.line("system", subtype="turn_duration", durationMs=12)
        return self.line("attachment", attachment={"type": "todo_reminder"})

    def data(self, end: bytes = b"\n") -> bytes:
        return b"".join(line + end for line in self.lines)

    def save(self, path: Path) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self.data())
        return path

    def save_in(self, home: Path) -> Path:
        """Where the client stores it."""
        return self.save(home / PROJECTS / self.cwd.replace("/", "-") / f"{self.session}.jsonl")


def stamp(ms: int) -> str:
    moment = datetime.fromtimestamp(ms / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def text(content: str) -> Line:
    return {"type": "text", "text": content}


def thinking(content: str = "") -> Line:
    return {"type": "thinking", "thinking": content, "signature": "c2lnbmF0dXJl"}


def tool_use(name: str, tool_input: Any, call: str) -> Line:
    return {"type": "tool_use", "id": call, "name": name, "input": tool_input}


def image() -> Line:
    source = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
    return {"type": "image", "source": source}


def harbour(session: str = SESSION, **options: Any) -> Chat:
    """Three turns with everything that the local observer uses."""
    chat = Chat(session, **options)
    at = chat.cwd
    chat.noise().prompt("The harbour light blinks once, it should blink twice. Please fix it.")
    chat.agent(thinking(), message_id="m1").agent("I'll look at the light.", message_id="m1")
    chat.read_file(f"{at}/light.py")
    chat.agent(
        "The cause is `blink(1)` in light.py: the lamp driver counts from 0, so it blinks once. "
        "The buoy uses the same driver and has the same fault.",
    )
    chat.failing("make test", "Exit code 2\nlight_test.py:3: AssertionError: 1 blink, expected 2")
    chat.edit(f"{at}/light.py").noise()
    chat.bash("make test", "12 passed in 0.31s")
    chat.bash('git commit -am "Blink twice"', "[main 1a2b3c4] Blink twice\n 1 file changed")
    chat.agent(
        "The light blinks twice now. The driver `LampDriver.pulse` counts from 0, so I pass 2. "
        "I decided against changing the driver, because the buoy relies on it. "
        "Next: the buoy needs the same change in buoy.py.",
    )
    chat.prompt([text("Do the same for the buoy, and write down why.")])
    chat.agent("The buoy's pulse comes from `buoy.toml`, key `pulses`.", thinking("hm"))
    chat.write_file(f"{at}/docs/pulses.md", "Why two pulses\n" * 300)
    chat.edit(f"{at}/buoy.toml", "pulses = 1", "pulses = 2")
    chat.tool("mcp__charts__look_up", {"buoy": 7}, [text("a green one " * 400)])
    chat.agent("The buoy pulses twice: `pulses = 2` in buoy.toml; docs/pulses.md says why.")
    chat.prompt("Which command runs the tests?")
    return chat.agent("`make test` runs them; it needs the simulator of version 3.2 on the path.")


def read_events(file: Path, chat: Chat | bytes) -> list[TranscriptEvent]:
    file.write_bytes(chat if isinstance(chat, bytes) else chat.data())
    return list(Transcript(file).events())


def read_conversation(file: Path, chat: Chat | bytes) -> list[tuple[str, Any]]:
    """Kind and main field of each event between SessionStart and SessionEnd."""
    start, *events, end = (_main_field(event) for event in read_events(file, chat))
    assert (start[0], end[0]) == ("SessionStart", "SessionEnd")
    return events


def _main_field(event: TranscriptEvent) -> tuple[str, Any]:
    for name in ("prompt", "statement", "last_assistant_message", "error", "tool_response"):
        if name in event.payload:
            return event.kind, event.payload[name]
    return event.kind, None


def read_prompts(file: Path, chat: Chat | bytes) -> list[str]:
    return [text for kind, text in read_conversation(file, chat) if kind == "UserPromptSubmit"]


def read_sessions(file: Path, data: bytes) -> tuple[list[PastSession], PastSessionReader]:
    file.write_bytes(data)
    options = ImportOptions("/nowhere", "", 0)
    reader = PastSessionReader(file, options.reader(), options.keep_raw_since, options.includes)
    return list(reader.sessions()), reader
