"""The observer without a model: it takes over what the agent and its tools already said.

Deterministic. Per turn a summary of the prompt and the last message, and one observation for each
file that was edited, from its patches.
"""

from dataclasses import dataclass, field

from claude_mem.types import Distillate, Json, Observation, Summary, ToolUse, Turn

LONGEST_REQUEST = 500
LONGEST_COMPLETED = 1500
LONGEST_TITLE = 80
FACTS_PER_FILE = 6
LONGEST_FACT = 160
CUT_MARK = "characters cut …]"
EDITING = ("Edit", "Write", "MultiEdit", "NotebookEdit")


class LocalObserver:
    name = "local"

    async def distil(self, turn: Turn) -> Distillate:
        return distil(turn)


@dataclass(slots=True)
class _FileWork:
    """What was done to one file in a turn."""

    path: str
    created: bool = False
    was_cut: bool = False  # what is stored of it is not all there was
    added: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    sources: list[int] = field(default_factory=list)


def distil(turn: Turn) -> Distillate:
    edits = _edits(turn)
    read = _files_read(turn, edits)
    said = _last_words(turn)
    failures = [event for event in turn.events if event.kind == "StopFailure"]
    summary = Summary(
        request=shorten(turn.prompt, LONGEST_REQUEST) if turn.prompt else None,
        completed=shorten(said.text, LONGEST_COMPLETED) if said and said.text else None,
        notes=shorten(failures[-1].text or "", LONGEST_REQUEST) or None if failures else None,
        files_read=tuple(read),
        files_edited=tuple(edits),
        sources=(said.id,) if said else (),
    )
    return Distillate(
        summary=summary,
        observations=tuple(_observation(work) for work in edits.values()),
        title=first_sentence(turn.prompt, LONGEST_TITLE) if turn.prompt else None,
        subtitle=first_sentence(said.text, LONGEST_TITLE) if said and said.text else None,
        observer=LocalObserver.name,
    )


def _last_words(turn: Turn) -> ToolUse | None:
    stops = [event for event in turn.events if event.kind == "Stop" and event.text]
    return stops[-1] if stops else None


def _edits(turn: Turn) -> dict[str, _FileWork]:
    edits: dict[str, _FileWork] = {}
    for event in turn.events:
        if event.kind != "PostToolUse" or event.tool_name not in EDITING:
            continue
        path = _path(event)
        if path is None:
            continue
        shown = relative(path, turn.project_dir)
        work = edits.setdefault(shown, _FileWork(shown))
        work.sources.append(event.id)
        _note_change(work, event)
    return edits


def _path(event: ToolUse) -> str | None:
    for source in (event.tool_input, event.tool_response):
        for name in ("file_path", "filePath", "notebook_path"):
            value = source.get(name) if isinstance(source, dict) else None
            if isinstance(value, str) and value:
                return value
    return None


def _note_change(work: _FileWork, event: ToolUse) -> None:
    response = event.tool_response if isinstance(event.tool_response, dict) else {}
    given = event.tool_input if isinstance(event.tool_input, dict) else {}
    work.created = work.created or response.get("type") == "create"
    lines = list(_patch_lines(response.get("structuredPatch")))
    if not lines:
        lines += [f"-{line}" for line in _lines(given.get("old_string"))]
        new = given.get("new_string") or given.get("content") or given.get("new_source")
        lines += [f"+{line}" for line in _lines(new)]
    is_whole = isinstance(event.tool_input, dict) and not any(CUT_MARK in line for line in lines)
    work.was_cut = work.was_cut or not is_whole
    work.added += [line[1:].strip() for line in lines if line.startswith("+")]
    work.removed += [line[1:].strip() for line in lines if line.startswith("-")]


def _patch_lines(patch: Json) -> list[str]:
    hunks = patch if isinstance(patch, list) else []
    return [
        line
        for hunk in hunks
        if isinstance(hunk, dict) and isinstance(lines := hunk.get("lines"), list)
        for line in lines
        if isinstance(line, str)
    ]


def _lines(value: Json) -> list[str]:
    return value.splitlines() if isinstance(value, str) else []


def _observation(work: _FileWork) -> Observation:
    added, removed = [x for x in work.added if x], [x for x in work.removed if x]
    verb = "Created" if work.created else "Changed"
    facts = [f"+ {line}" for line in added[:FACTS_PER_FILE]]
    facts += [f"- {line}" for line in removed[: max(0, FACTS_PER_FILE - len(facts))]]
    return Observation(
        type="change",
        title=f"{verb} {work.path}",
        subtitle=None if work.was_cut else _line_counts(len(added), len(removed)),
        facts=tuple(shorten(fact, LONGEST_FACT) for fact in facts),
        concepts=("what-changed",),
        files_modified=(work.path,),
        sources=tuple(work.sources),
    )


def _line_counts(added: int, removed: int) -> str:
    plural = "line" if added == 1 else "lines"
    return f"{added} {plural} added, {removed} removed"


def _files_read(turn: Turn, edits: dict[str, _FileWork]) -> list[str]:
    read: dict[str, None] = {}
    for event in turn.events:
        if event.kind == "PostToolUse" and event.tool_name == "Read" and (path := _path(event)):
            read[relative(path, turn.project_dir)] = None
    return [path for path in read if path not in edits]


def relative(path: str, project_dir: str) -> str:
    root = project_dir.rstrip("/") + "/"
    return path.removeprefix(root) if len(root) > 1 else path


def first_sentence(text: str, limit: int) -> str:
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    end = min((at + 1 for mark in ".!?" if (at := line.find(mark + " ")) > 0), default=len(line))
    return shorten(line[:end], limit)


def shorten(text: str, limit: int) -> str:
    """At most `limit` characters, ending at a word."""
    text = text.strip()
    if len(text) <= limit:
        return text
    head = text[: limit - 1]
    space = head.rfind(" ")
    return (head[:space] if space > limit // 2 else head).rstrip() + "…"
