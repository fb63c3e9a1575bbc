"""The hooks that are installed, as entries of Claude Code's settings.

All are synchronous: the client kills asynchronous hooks when a `-p` session ends, and their events
are lost. Each has a timeout, because the default for SessionEnd is 1.5 s.
"""

from dataclasses import dataclass
from pathlib import Path

from claude_mem.types import Json

DIALECT = "claude"


@dataclass(frozen=True, slots=True)
class HookEvent:
    name: str
    timeout: int  # seconds; generous, for machines that are asleep or swapping
    matcher: str | None = None


EVENTS: tuple[HookEvent, ...] = (
    HookEvent("SessionStart", 30),
    HookEvent("UserPromptSubmit", 30),
    HookEvent("PostToolUse", 30, "*"),
    HookEvent("PostToolUseFailure", 30, "*"),
    HookEvent("SubagentStop", 30),
    HookEvent("PreCompact", 30),
    HookEvent("PostCompact", 30),
    HookEvent("Stop", 30),
    HookEvent("StopFailure", 30),
    HookEvent("SessionEnd", 30),
)


# Only with the setting CLAUDE_MEM_FILE_HINTS: a hook before each of these tools takes its time.
FILE_HINTS = HookEvent("PreToolUse", 5, "Read|Edit|MultiEdit|Write|NotebookEdit")


def events_for(*, file_hints: bool) -> tuple[HookEvent, ...]:
    return (*EVENTS, FILE_HINTS) if file_hints else EVENTS


def hook_entry(event: HookEvent, *command_line: str) -> dict[str, Json]:
    """An element of `hooks.<Event>`, in the exec form that needs no shell."""
    program, *arguments = command_line
    command: dict[str, Json] = {
        "type": "command",
        "command": program,
        "args": [*arguments, DIALECT, event.name],
        "timeout": event.timeout,
    }
    matcher: dict[str, Json] = {"matcher": event.matcher} if event.matcher else {}
    return {**matcher, "hooks": [command]}


def all_entries(*command_line: str, events: tuple[HookEvent, ...] = EVENTS) -> dict[str, Json]:
    """The content of a hooks.json."""
    return {"hooks": {event.name: [hook_entry(event, *command_line)] for event in events}}


def is_our_entry(entry: object, launcher: Path) -> bool:
    """Whether an element of `hooks.<Event>` runs our launcher, even if the user edited it."""
    commands = entry.get("hooks") if isinstance(entry, dict) else None
    return isinstance(commands, list) and any(
        is_our_command(command, launcher) for command in commands
    )


def is_our_command(command: object, launcher: Path) -> bool:
    text = command.get("command") if isinstance(command, dict) else None
    return isinstance(text, str) and (text == str(launcher) or text.startswith(f"{launcher} "))
