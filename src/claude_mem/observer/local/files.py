"""The files that a turn changed, and those it read."""

import re
from dataclasses import dataclass, field

from claude_mem.types import ToolUse, Turn

# The client's own files: plans and todos are no work on the project.
CLIENT_FILES = re.compile(r"[/\\]\.claude[/\\](?:plans|projects|todos)[/\\]")
SHORTEST_REPLACEMENT, LONGEST_REPLACEMENT = 5, 80  # the shortest: of both sides
READ_EDIT = 20_000
_REMOVED_VALUE = "REDACTED"  # what other tools put in place of a value is no name
_DEFINITION = re.compile(
    r"^(?:[ \t]{1,8}(?!const|type))?"  # within a class or a function these are details
    r"(?:(?:export|default|pub|public|private|static|async|abstract)[ \t]+){0,4}"
    r"(?:func|function|def|class|interface|struct|enum|fn|type|const)[ \t]+"
    r"(?:\([^()\n]{0,80}\)[ \t]*)?([A-Za-z_]\w{2,60})",
    re.MULTILINE,
)
_HEADING = re.compile(r"^#{1,6}[ \t]+(\S[^\n#]{3,70})$", re.MULTILINE)
EDITING = ("Edit", "Write", "MultiEdit", "NotebookEdit")


@dataclass(slots=True)
class FileWork:
    """The edits of one file in a turn."""

    path: str
    created: bool = False
    replacements: list[tuple[str, str]] = field(default_factory=list)  # short lines: old and new
    added: list[str] = field(default_factory=list)  # symbols that the edits define
    removed: list[str] = field(default_factory=list)  # and those that they delete
    added_headings: list[str] = field(default_factory=list)
    sources: list[int] = field(default_factory=list)


def files_changed(turn: Turn) -> dict[str, FileWork]:
    files: dict[str, FileWork] = {}
    for event in turn.events:
        if event.kind != "PostToolUse" or event.tool_name not in EDITING:
            continue
        path = path_of(event)
        if path is None or CLIENT_FILES.search(path):
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
    edits = params.get("edits")
    for edit in (params, *(edits if isinstance(edits, list) else ())):
        texts = edit if isinstance(edit, dict) else {}
        old, new = texts.get("old_string"), texts.get("new_string")
        if isinstance(old, str) and isinstance(new, str):
            _add_names(work, old[:READ_EDIT], new[:READ_EDIT])
            before, after = _changed_line(old[:READ_EDIT], new[:READ_EDIT])
            is_telling = len(before) + len(after) >= SHORTEST_REPLACEMENT
            if is_telling and _is_short(before) and _is_short(after) and before != after:
                work.replacements.append((before, after))


def _changed_line(old: str, new: str) -> tuple[str, str]:
    """What differs, without the lines around it that an edit quotes to find its place."""
    before, after = old.strip().splitlines(), new.strip().splitlines()
    while before and after and before[0] == after[0]:
        del before[0], after[0]
    while before and after and before[-1] == after[-1]:
        del before[-1], after[-1]
    return "\n".join(before).strip(), "\n".join(after).strip()


def _add_names(work: FileWork, before: str, after: str) -> None:
    """What the edit brought or took: definitions and headings that only one of both texts has."""
    is_text = work.path.lower().endswith((".md", ".mdx", ".markdown"))
    pattern, names = (_HEADING, work.added_headings) if is_text else (_DEFINITION, work.added)
    of_old, of_new = pattern.findall(before), pattern.findall(after)
    known = {*of_old, *names, _REMOVED_VALUE}
    names += [name for name in dict.fromkeys(of_new) if name not in known]
    if not is_text:
        work.removed += [name for name in dict.fromkeys(of_old) if name not in of_new]


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
