"""The files that a turn changed, and those it read."""

import re
from dataclasses import dataclass, field

from claude_mem.types import ToolUse, Turn

# The client's own files: plans and todos are no work on the project.
_CLIENT_FILES = re.compile(r"[/\\]\.claude[/\\](?:plans|projects|todos)[/\\]")
LONGEST_REPLACEMENT = 80
EDITING = ("Edit", "Write", "MultiEdit", "NotebookEdit")


@dataclass(slots=True)
class FileWork:
    """The edits of one file in a turn."""

    path: str
    created: bool = False
    replacements: list[tuple[str, str]] = field(default_factory=list)  # short lines: old and new
    sources: list[int] = field(default_factory=list)


def files_changed(turn: Turn) -> dict[str, FileWork]:
    files: dict[str, FileWork] = {}
    for event in turn.events:
        if event.kind != "PostToolUse" or event.tool_name not in EDITING:
            continue
        path = path_of(event)
        if path is None or _CLIENT_FILES.search(path):
            continue
        shown = relative(path, turn.project_dir)
        work = files.setdefault(shown, FileWork(shown))
        work.sources.append(event.id)
        _add_replacement(work, event)
        response = event.tool_response
        work.created |= isinstance(response, dict) and response.get("type") == "create"
    return files


def _add_replacement(work: FileWork, event: ToolUse) -> None:
    params = event.tool_input if isinstance(event.tool_input, dict) else {}
    old, new = params.get("old_string"), params.get("new_string")
    if isinstance(old, str) and isinstance(new, str):
        before, after = old.strip(), new.strip()
        if _is_short(before) and _is_short(after) and before != after:
            work.replacements.append((before, after))


def _is_short(text: str) -> bool:
    return 0 < len(text) <= LONGEST_REPLACEMENT and "\n" not in text and "`" not in text


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
