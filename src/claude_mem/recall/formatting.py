"""Results as text, with few tokens and the ids for the next step, and as JSON."""

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, tzinfo

from claude_mem.recall.answers import Answer
from claude_mem.recall.fence import OUTSIDE_KINDS, escape_block, escape_fences, marked_lines
from claude_mem.recall.memory_ids import MemoryId
from claude_mem.recall.search import MARKS, NO_WORDS, OutsideWords, SearchResult, SearchRow
from claude_mem.recall.timeline import Timeline
from claude_mem.store.clock import iso
from claude_mem.store.memories import column_texts
from claude_mem.store.memory_rows import JsonRow
from claude_mem.text import one_line, pluralize, shorten, spellings
from claude_mem.types import Json

MAX_TITLE = 120
MAX_OWNER = 60
_NOT_A_NAME = re.compile(r"[^\w .@'+-]")
MAX_RESULT_TITLE = 60  # where a snippet says more
_FIELDS = (
    "continues", "subtitle", "narrative", "facts", "request", "investigated", "learned",
    "completed", "next_steps", "commands", "faults", "notes", "prompt_text", "concepts",
    "files_read", "files_modified", "files_edited",
)  # fmt: skip

_NOUNS = spellings(("session", "observation", "summary", "prompt"))

ORIGINS = {
    "person": "words of the user",
    "agent": "words of the agent",
    "outside": "has words from outside",
}
NO_STRONG_MATCH = "No strong match. The nearest:"
# What a user reads in place of the words that agents know.
_PLAIN = {"outside": "repeats tool output, files or web pages", "weak": "weaker match"}

Show = Callable[[str], str]  # formats a title, for example with marked words


def counts_text(counts: Mapping[str, Json]) -> str:
    """Writes {"sessions": 1, "summaries": 2} as "1 session, 2 summaries"."""
    return ", ".join(pluralize(count, _NOUNS[name]) for name, count in counts.items() if count)


def search_text(
    result: SearchResult,
    zone: tzinfo | None,
    show: Show = str,
    *,
    more: str = "set offset",
    plain: bool = False,
) -> str:
    """Writes results, best first; a turn has two lines: what it is, and the passage that matches.

    `more` says how to get further results. `plain`: for users, without the number of tokens.
    """
    if not result.rows:
        lines = ["Nothing found."]
    else:
        any_strong = any(row.is_strong for row in result.rows)
        lines = [] if any_strong else [NO_STRONG_MATCH]
        several_projects = len({row.project for row in result.rows}) > 1
        for row in result.rows:
            is_weak = any_strong and not row.is_strong
            lines += _result_lines(
                row, _moment(row, zone), show, several_projects, _notes(row, is_weak, plain)
            )
    if result.has_more:
        lines.append(f"More results: {more}.")
    if result.waiting:
        lines.append(f"\nNot indexed yet: {pluralize(result.waiting, 'memory')}. Try again soon.")
    if result.embedder_error:
        lines.append(f"\nSearched by words only: {result.embedder_error}")
    if result.team_error:
        lines.append(f"\nSearched this machine only: {_flat(result.team_error)}")
    return "\n".join(lines)


def next_offset(params: Mapping[str, Json], result: SearchResult) -> int:
    return int(str(params.get("offset") or 0)) + len(result.rows)


def timeline_text(
    timeline: Timeline | None, zone: tzinfo | None, show: Show = str, *, plain: bool = False
) -> str:
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
        lines.append(_line(row, moment, show, _notes(row, False, plain)) + mark)
    return "\n".join(lines)


def search_json(result: SearchResult) -> dict[str, Json]:
    result_json: dict[str, Json] = {
        "results": [row.as_json() for row in result.rows],
        "hasMore": result.has_more,
        "notIndexed": result.waiting,
    }
    if result.embedder_error:
        result_json["wordsAlone"] = result.embedder_error
    if result.team_error:
        result_json["teamError"] = result.team_error
    return result_json


def timeline_json(result: Timeline | None) -> dict[str, Json]:
    if result is None:
        return {"anchor": None, "results": []}
    return {"anchor": str(result.anchor.id), "results": [row.as_json() for row in result.rows]}


def _result_lines(
    row: SearchRow, moment: datetime, show: Show, names_project: bool, notes: str
) -> list[str]:
    snippet = _flat(row.snippet)
    has_snippet = bool(snippet) and snippet not in one_line(row.title)
    title = show(shorten(_flat(row.title), MAX_RESULT_TITLE if has_snippet else MAX_TITLE))
    project = f" [{_flat(row.project)}]" if names_project else ""
    head = f"{_label(row.id)} {moment:%Y-%m-%d %H:%M} {_flat(row.type)}: {title}{project}{notes}"
    return [head, f"  {show(snippet)}"] if has_snippet else [head]


def _line(row: SearchRow, moment: datetime, show: Show, notes: str) -> str:
    line = f"{_label(row.id)} {moment:%H:%M} {_flat(row.type)}: {show(_title(row.title))}{notes}"
    return line + (f", also {' '.join(map(_label, row.also))}" if row.also else "")


def _notes(row: SearchRow, is_weak: bool, plain: bool) -> str:
    marks = (*(("weak",) if is_weak else ()), *row.marks)
    notes = [_PLAIN.get(mark, mark) for mark in marks] if plain else [f"~{row.tokens}t", *marks]
    if row.continues:
        notes.append(f"continues {_label(row.continues)}")
    if row.owner:
        notes.append(_owner(row.owner))
    return f" ({', '.join(notes)})" if notes else ""


def _owner(owner: str) -> str:
    """A name that cannot be taken for a mark."""
    return f"by {_NOT_A_NAME.sub('', _flat(owner))[:MAX_OWNER]}"


def _label(memory_id: MemoryId) -> str:
    return f"#{memory_id}" if memory_id.kind == "observation" else str(memory_id)


def _moment(row: SearchRow, zone: tzinfo | None) -> datetime:
    return datetime.fromtimestamp(row.created_at_epoch / 1000, zone)


def memories_text(
    memories: Iterable[tuple[MemoryId, JsonRow]], outside: OutsideWords = NO_WORDS
) -> str:
    """Writes full memories, each below its id. `outside`: whose words mark a line."""
    texts = (
        _memory_text(memory_id, row, outside.get(memory_id, frozenset()))
        for memory_id, row in memories
    )
    return "\n\n".join(texts) or "Nothing found."


def answers_text(answers: Iterable[Answer], outside: OutsideWords = NO_WORDS) -> str:
    """Memories by title, each with the passages of its turn; in full where there are none."""
    texts = (_answer_text(answer, outside.get(answer.id, frozenset())) for answer in answers)
    return "\n\n".join(texts) or "Nothing found."


def _answer_text(answer: Answer, outside: frozenset[str]) -> str:
    if not answer.passages:
        return _memory_text(answer.id, answer.memory, outside)
    head = f"{_label(answer.id)} {_minute(answer.memory)} {_title(answer.title)}"
    lines = marked_lines(head, outside)
    lines += [
        f"{_kind_of(passage.kind)}: {escape_block(passage.text, outside)}"
        for passage in answer.passages
    ]
    return "\n".join(lines)


def _memory_text(memory_id: MemoryId, record: JsonRow, outside: frozenset[str]) -> str:
    title = record.get("title")
    type_ = f" {_flat(str(record['type']))}" if "type" in record else ""
    marks = "".join(f", {mark}" for mark in MARKS if record.get(mark))
    if origin := record.get("origin"):
        marks += f", {ORIGINS.get(str(origin), '')}"
    owner = f", {_owner(str(record['owner']))}" if record.get("owner") else ""
    project = _title(str(record["project"]))
    lines = [f"{_label(memory_id)}{type_} {_minute(record)} {project}{marks}{owner}"]
    if title:
        lines.append(f"title: {escape_block(one_line(str(title)), outside)}")
    for field in _FIELDS:
        value = column_texts(record, field) or record.get(field)
        if isinstance(value, list):
            value = "\n".join(f"- {item}" for item in value)
        if value:
            lines.append(f"{field.replace('_', ' ')}: {escape_block(str(value), outside)}")
    parts = record.get("record")
    lines += [_part_text(part, outside) for part in parts] if isinstance(parts, list) else []
    return "\n".join(lines)


def _kind_of(kind: str) -> str:
    """A report is of a subagent: nobody checked what it repeats."""
    return f"{kind} [outside]" if kind in OUTSIDE_KINDS else kind


def _part_text(part: Json, outside: frozenset[str]) -> str:
    """A part of the record of a turn."""
    assert isinstance(part, dict)
    kind = _kind_of(_flat(str(part["kind"]))).replace("_", " ")
    return f"{_flat(str(part['speaker']))}, {kind}: {escape_block(str(part['text']), outside)}"


def _minute(record: JsonRow) -> str:
    """Formats the minute from the number: the text of an imported memory may be anything."""
    epoch = record.get("created_at_epoch")
    return iso(epoch)[:16].replace("T", " ") if isinstance(epoch, int) else ""


def _title(text: str) -> str:
    return shorten(_flat(text), MAX_TITLE)


def _flat(text: str) -> str:
    return escape_fences(one_line(text))
