"""The text form of what was found: few tokens, grouped by day and file, ids to go on with."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, tzinfo

from claude_mem.hook.scanner import NAMES
from claude_mem.recall.search import Row, SearchResult
from claude_mem.recall.timeline import Timeline
from claude_mem.store.pages import Record
from claude_mem.store.summary_facts import fact_texts
from claude_mem.types import Json

LONGEST_TITLE = 120
NO_FILE = "General"
_FENCES = re.compile(rf"<(?=[\s/]*(?:{'|'.join(name.decode() for name in NAMES)}))", re.IGNORECASE)
_FIELDS = (
    "subtitle", "narrative", "facts", "request", "investigated", "learned", "completed",
    "next_steps", "commands", "faults", "notes", "prompt_text", "concepts", "files_read",
    "files_modified", "files_edited",
)  # fmt: skip

_ONE = {
    "sessions": "session",
    "observations": "observation",
    "summaries": "summary",
    "prompts": "prompt",
}

Show = Callable[[str], str]  # how a title is shown, where words can be marked


def counts_text(counts: Mapping[str, Json]) -> str:
    """{"sessions": 1, "summaries": 2} as "1 session, 2 summaries"."""
    return ", ".join(
        f"{count} {_ONE[noun] if count == 1 else noun}" for noun, count in counts.items() if count
    )


def search_text(found: SearchResult, zone: tzinfo | None, show: Show = str) -> str:
    """Groups stand in the order of their best row."""
    if not found.rows:
        lines = ["Nothing found."]
    else:
        lines = _grouped(found.rows, zone, show)
    if found.has_more:
        lines.append("\nThere is more: say offset.")
    if found.waiting:
        lines.append(f"\n{found.waiting} memories are not indexed yet: ask again soon.")
    if found.words_alone:
        lines.append(f"\nFound by words alone: {found.words_alone}")
    return "\n".join(lines)


def timeline_text(timeline: Timeline | None, zone: tzinfo | None, show: Show = str) -> str:
    if timeline is None:
        return "Nothing found."
    lines: list[str] = []
    day = ""
    for row in timeline.rows:
        moment = _moment(row, zone)
        if (this := f"{moment:%Y-%m-%d}") != day:
            day = this
            lines.append(("\n" if lines else "") + day)
        here = "  <-- anchor" if row == timeline.anchor else ""
        lines.append(_line(row, moment, show) + here)
    return "\n".join(lines)


def _grouped(rows: Sequence[Row], zone: tzinfo | None, show: Show) -> list[str]:
    """A file's project is named where there are several."""
    of_many = len({row.project for row in rows}) > 1
    days: dict[str, dict[str, list[str]]] = {}
    for row in rows:
        moment = _moment(row, zone)
        files = days.setdefault(f"{moment:%Y-%m-%d}", {})
        file = f"{row.file or NO_FILE} [{row.project}]" if of_many else row.file or NO_FILE
        files.setdefault(file, []).append(_line(row, moment, show))
    lines: list[str] = []
    for day, files in days.items():
        lines.append(("\n" if lines else "") + day)
        for file, entries in files.items():
            lines += [flat(file), *entries]
    return lines


def _line(row: Row, moment: datetime, show: Show) -> str:
    line = f"{_mark(row.id)} {moment:%H:%M} {row.type}: {show(flat(row.title))} (~{row.tokens}t)"
    return line + (f", also {' '.join(map(_mark, row.also))}" if row.also else "")


def _mark(name: str) -> str:
    return f"#{name}" if name.isdecimal() else name


def _moment(row: Row, zone: tzinfo | None) -> datetime:
    return datetime.fromtimestamp(row.created_at_epoch / 1000, zone)


def records_text(records: Iterable[tuple[str, Record]]) -> str:
    """Memories in full, as `get_observations` gives them; each under its id."""
    return "\n\n".join(_record(name, record) for name, record in records) or "Nothing found."


def _record(name: str, record: Record) -> str:
    title = record.get("title")
    head = f"#{name}" if name.isdecimal() else name
    what = f" {record['type']}" if "type" in record else ""
    when = str(record["created_at"])[:16].replace("T", " ")
    lines = [f"{head}{what} {when} {flat(str(record['project']))}"]
    if title:
        lines.append(flat(str(title), longest=None))
    for field in _FIELDS:
        value = fact_texts(record, field) or record.get(field)
        if isinstance(value, list):
            value = "\n".join(f"- {item}" for item in value)
        if value:
            lines.append(f"{field.replace('_', ' ')}: {unfenced(str(value))}")
    return "\n".join(lines)


def flat(text: str, longest: int | None = LONGEST_TITLE) -> str:
    line = unfenced(" ".join(text.split()))
    return line if longest is None or len(line) <= longest else line[: longest - 1] + "…"


def unfenced(text: str) -> str:
    """What is recalled is data: it can neither open nor close a fence of ours."""
    return _FENCES.sub("‹", text)
