"""Results as text: few tokens, grouped by day and file, with the ids for the next step."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, tzinfo
from itertools import starmap

from claude_mem.recall.fence import escape_fences
from claude_mem.recall.memory_ids import MemoryId
from claude_mem.recall.search import Row, SearchResult
from claude_mem.recall.timeline import Timeline
from claude_mem.store.pages import Record
from claude_mem.store.summary_facts import fact_texts
from claude_mem.text import one_line, shorten
from claude_mem.types import Json

MAX_TITLE = 120
NO_FILE = "General"
_FIELDS = (
    "subtitle", "narrative", "facts", "request", "investigated", "learned", "completed",
    "next_steps", "commands", "faults", "notes", "prompt_text", "concepts", "files_read",
    "files_modified", "files_edited",
)  # fmt: skip

_SINGULAR = {
    "sessions": "session",
    "observations": "observation",
    "summaries": "summary",
    "prompts": "prompt",
}

Show = Callable[[str], str]  # formats a title, for example with marked words


def counts_text(counts: Mapping[str, Json]) -> str:
    """{"sessions": 1, "summaries": 2} as "1 session, 2 summaries"."""
    return ", ".join(
        f"{count} {_SINGULAR[noun] if count == 1 else noun}"
        for noun, count in counts.items()
        if count
    )


def search_text(result: SearchResult, zone: tzinfo | None, show: Show = str) -> str:
    """Groups are in the order of their best row."""
    if not result.rows:
        lines = ["Nothing found."]
    else:
        lines = _grouped(result.rows, zone, show)
    if result.has_more:
        lines.append("\nThere are more results: set offset.")
    if result.waiting:
        lines.append(f"\n{result.waiting} memories are not indexed yet: try again soon.")
    if result.embedder_error:
        lines.append(f"\nSearched by words only: {result.embedder_error}")
    return "\n".join(lines)


def timeline_text(timeline: Timeline | None, zone: tzinfo | None, show: Show = str) -> str:
    if timeline is None:
        return "Nothing found."
    lines: list[str] = []
    day = ""
    for row in timeline.rows:
        moment = _moment(row, zone)
        if f"{moment:%Y-%m-%d}" != day:
            day = f"{moment:%Y-%m-%d}"
            lines.append(("\n" if lines else "") + day)
        mark = "  <-- anchor" if row == timeline.anchor else ""
        lines.append(_line(row, moment, show) + mark)
    return "\n".join(lines)


def _grouped(rows: Sequence[Row], zone: tzinfo | None, show: Show) -> list[str]:
    """A file's project is named where there are several."""
    several_projects = len({row.project for row in rows}) > 1
    days: dict[str, dict[str, list[str]]] = {}
    for row in rows:
        moment = _moment(row, zone)
        files = days.setdefault(f"{moment:%Y-%m-%d}", {})
        file = f"{row.file or NO_FILE} [{row.project}]" if several_projects else row.file or NO_FILE
        files.setdefault(file, []).append(_line(row, moment, show))
    lines: list[str] = []
    for day, files in days.items():
        lines.append(("\n" if lines else "") + day)
        for file, entries in files.items():
            lines += [_title(file), *entries]
    return lines


def _line(row: Row, moment: datetime, show: Show) -> str:
    line = f"{_label(row.id)} {moment:%H:%M} {row.type}: {show(_title(row.title))} (~{row.tokens}t)"
    return line + (f", also {' '.join(map(_label, row.also))}" if row.also else "")


def _label(memory_id: MemoryId) -> str:
    return f"#{memory_id}" if memory_id.kind == "observation" else str(memory_id)


def _moment(row: Row, zone: tzinfo | None) -> datetime:
    return datetime.fromtimestamp(row.created_at_epoch / 1000, zone)


def memories_text(memories: Iterable[tuple[MemoryId, Record]]) -> str:
    """Full memories, each below its id."""
    return "\n\n".join(starmap(_memory_text, memories)) or "Nothing found."


def _memory_text(memory_id: MemoryId, record: Record) -> str:
    title = record.get("title")
    type_ = f" {record['type']}" if "type" in record else ""
    minute = str(record["created_at"])[:16].replace("T", " ")
    lines = [f"{_label(memory_id)}{type_} {minute} {_title(str(record['project']))}"]
    if title:
        lines.append(_flat(str(title)))
    for field in _FIELDS:
        value = fact_texts(record, field) or record.get(field)
        if isinstance(value, list):
            value = "\n".join(f"- {item}" for item in value)
        if value:
            lines.append(f"{field.replace('_', ' ')}: {escape_fences(str(value))}")
    return "\n".join(lines)


def _title(text: str) -> str:
    return shorten(_flat(text), MAX_TITLE)


def _flat(text: str) -> str:
    return escape_fences(one_line(text))
