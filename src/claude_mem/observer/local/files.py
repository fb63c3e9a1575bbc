"""Which files a turn changed and which it read."""

import re
from dataclasses import dataclass, field

from claude_mem.types import ToolUse, Turn

# Plans that the client keeps for itself are no work on the project.
_CLIENTS_OWN = re.compile(r"[/\\]\.claude[/\\](?:plans|projects|todos)[/\\]")
LONGEST_SWAP = 80
EDITING = ("Edit", "Write", "MultiEdit", "NotebookEdit")


@dataclass(slots=True)
class FileWork:
    """What was done to one file in a turn."""

    path: str
    created: bool = False
    swaps: list[tuple[str, str]] = field(default_factory=list)  # short lines: before and after
    sources: list[int] = field(default_factory=list)


def files_changed(turn: Turn) -> dict[str, FileWork]:
    files: dict[str, FileWork] = {}
    for event in turn.events:
        if event.kind != "PostToolUse" or event.tool_name not in EDITING:
            continue
        path = path_of(event)
        if path is None or _CLIENTS_OWN.search(path):
            continue
        shown = relative(path, turn.project_dir)
        work = files.setdefault(shown, FileWork(shown))
        work.sources.append(event.id)
        _note_swap(work, event)
        response = event.tool_response
        work.created |= isinstance(response, dict) and response.get("type") == "create"
    return files


def _note_swap(work: FileWork, event: ToolUse) -> None:
    given = event.tool_input if isinstance(event.tool_input, dict) else {}
    old, new = given.get("old_string"), given.get("new_string")
    if isinstance(old, str) and isinstance(new, str):
        before, after = old.strip(), new.strip()
        if is_short(before) and is_short(after) and before != after:
            work.swaps.append((before, after))


def is_short(text: str) -> bool:
    return 0 < len(text) <= LONGEST_SWAP and "\n" not in text and "`" not in text


def files_read(turn: Turn) -> list[str]:
    read: dict[str, None] = {}
    for event in turn.events:
        if event.kind == "PostToolUse" and event.tool_name == "Read" and (path := path_of(event)):
            read[relative(path, turn.project_dir)] = None
    return list(read)


def path_of(event: ToolUse) -> str | None:
    for source in (event.tool_input, event.tool_response):
        for name in ("file_path", "filePath", "notebook_path"):
            value = source.get(name) if isinstance(source, dict) else None
            if isinstance(value, str) and value:
                return value
    return None


def relative(path: str, project_dir: str) -> str:
    for root in (project_dir.rstrip("/") + "/", project_dir.rstrip("\\") + "\\"):
        if len(root) > 1 and path.startswith(root):
            return path.removeprefix(root)
    return path
