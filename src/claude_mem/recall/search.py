"""Search, the first of the three steps: which memories match, in one line each, by id, with what is
shown there: their marks, and the part of a passage that matches."""

import asyncio
import json
import logging
import sqlite3
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from claude_mem.errors import EmbedderError
from claude_mem.index import indexing
from claude_mem.index.embedders.embedder import time_limit
from claude_mem.index.text import document_queries, passage_queries, term_counts
from claude_mem.index.text.filters import NO_FILTERS, Filters
from claude_mem.index.text.passage_queries import Match
from claude_mem.index.text.words import parts_of, pieces
from claude_mem.index.text.words import stems as stems_by_word
from claude_mem.index.vectors.lazy_index import SemanticIndex
from claude_mem.recall.memory_ids import MemoryId, parse_memory_id
from claude_mem.recall.parsed_query import ParsedQuery, content_word_forms, parse_query, stems_of
from claude_mem.recall.ranking import CONSIDERED, RankedTurn, rank
from claude_mem.recall.strength import Strength
from claude_mem.recall.tokens import tokens_of_bytes
from claude_mem.recall.weights import WEIGHTS, Weights
from claude_mem.store import StoreReader, outside_words
from claude_mem.store.clock import iso
from claude_mem.store.projects import project_names
from claude_mem.types import Json
from claude_mem.word_runs import has_run_of

log = logging.getLogger("claude_mem.search")

EVERYTHING = "*"  # a query text for everything that passes the filters
Order = Literal["relevance", "date_desc", "date_asc"]
ORDERS: tuple[Order, ...] = ("relevance", "date_desc", "date_asc")
DEFAULT_LIMIT = 8
SNIPPET_LENGTH = 160
# Of a search that shows several turns, the answer is mostly in one of the first.
FIRST_ROWS, LATER_LENGTH = 4, 100
MARKS = ("edited", "pinned", "wrong")

OutsideWords = Mapping[MemoryId, frozenset[str]]
NO_WORDS: OutsideWords = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Query:
    text: str = ""  # empty: everything that passes the filters, newest first
    filters: Filters = NO_FILTERS
    limit: int = DEFAULT_LIMIT
    offset: int = 0
    order: Order = "relevance"


@dataclass(frozen=True, slots=True)
class SearchRow:
    """A memory as a search result: enough to decide whether to read it."""

    id: MemoryId
    created_at_epoch: int
    type: str
    title: str
    file: str | None
    tokens: int
    project: str
    session_db_id: int
    score: float
    also: tuple[MemoryId, ...] = ()  # the other memories of its turn, and its duplicates
    snippet: str = ""  # what matches, of the record or of the memory
    is_strong: bool = True
    continues: MemoryId | None = None  # a memory of the turn that started its background task
    marks: tuple[str, ...] = ()  # of MARKS, and outside
    owner: str = ""  # who recorded it, if it comes from a team

    def as_json(self) -> dict[str, Json]:
        return {
            "id": str(self.id),
            "kind": self.id.kind,
            "memory_id": self.id.number,
            "created_at": iso(self.created_at_epoch),
            "created_at_epoch": self.created_at_epoch,
            "type": self.type,
            "title": self.title,
            "file": self.file,
            "tokens": self.tokens,
            "project": self.project,
            "session_db_id": self.session_db_id,
            "score": round(self.score, 3),
            "also": [str(memory_id) for memory_id in self.also],
            "snippet": self.snippet,
            "strength": "strong" if self.is_strong else "weak",
            "continues": str(self.continues) if self.continues else None,
            "marks": list(self.marks),
            "owner": self.owner or None,
        }


@dataclass(frozen=True, slots=True)
class SearchResult:
    rows: tuple[SearchRow, ...]
    has_more: bool
    waiting: int  # memories that are not indexed yet
    embedder_error: str | None = None  # why it was searched by words only
    team_error: str | None = None  # why only this machine was searched


async def search_in_thread(
    store: StoreReader,
    semantic_index: SemanticIndex | None,
    make_query: Callable[[StoreReader], Query],
    now: datetime,
) -> SearchResult:
    """The query is made in the thread that searches: it may have to look up a project, and a change
    of threads takes as long as a rare word."""
    return await asyncio.to_thread(lambda: search(store, make_query(store), now, semantic_index))


def search(
    store: StoreReader,
    query: Query,
    now: datetime,
    semantic_index: SemanticIndex | None = None,
    weights: Weights = WEIGHTS,
) -> SearchResult:
    """Searches by words, and by meaning where there is a semantic index."""
    parsed = parse_query(query.text, now)

    def work(connection: sqlite3.Connection) -> SearchResult:
        if not indexing.is_current(connection):
            return SearchResult((), False, indexing.waiting(connection))
        waiting = indexing.marked(connection)
        if not _can_match(query, parsed):
            return SearchResult((), False, 0)
        error = None
        is_ready = semantic_index is not None and semantic_index.can_answer(connection)
        try:
            index = semantic_index if is_ready else None
            with time_limit():
                rows, has_more = _find(connection, query, parsed, weights, index)
        except EmbedderError as embedder_error:
            error = str(embedder_error)
            log.warning("searching by words only: %s", error)
            rows, has_more = _find(connection, query, parsed, weights, None)
        return SearchResult(tuple(rows), has_more, waiting, error)

    return store.read_snapshot(work)


def _can_match(query: Query, parsed: ParsedQuery) -> bool:
    """A text without words, like a lone emoji, matches nothing; `*` and exclusions match
    everything else that passes the filters."""
    if not query.text or not parsed.is_empty:
        return True
    is_filter_only = bool(parsed.excluded) or parsed.text.strip() in ("", EVERYTHING)
    return bool(query.filters) and is_filter_only


def _find(
    connection: sqlite3.Connection,
    query: Query,
    parsed: ParsedQuery,
    weights: Weights,
    semantic_index: SemanticIndex | None,
) -> tuple[list[SearchRow], bool]:
    """The rows of the page, and whether there are more."""
    if parsed.is_empty:
        matches = document_queries.newest(
            connection, query.filters, query.limit + 1, query.offset,
            oldest=query.order == "date_asc", without=parsed.excluded,
        )  # fmt: skip
        return as_rows(connection, matches[: query.limit]), len(matches) > query.limit
    parsed = with_occasions(connection, parsed, query.filters.project_id)
    end = query.offset + query.limit + 1
    loaded = None
    if semantic_index is not None:
        loaded = semantic_index.load()
        total = passage_queries.passage_count(connection)
        term_counts.start_reading_ahead(connection, total, loaded.cache.in_background)
    ranked = rank(connection, parsed, query.filters, end, weights, loaded)
    if query.order != "relevance":
        newest_first = query.order == "date_desc"
        ranked.sort(key=lambda r: (r.turn.created_at_epoch, r.turn.id), reverse=newest_first)
    # Duplicates are merged as far as the page can reach.
    page, duplicates_of = _merge_duplicates(connection, ranked[: CONSIDERED * end])
    return _turn_rows(connection, page[query.offset : end], parsed, query, duplicates_of)


def _merge_duplicates(
    connection: sqlite3.Connection, ranked: list[RankedTurn]
) -> tuple[list[RankedTurn], dict[int, list[int]]]:
    """The best of turns whose first observations say the same, and by its turn the documents of
    the others."""
    by_document = {result.turn.shown: result for result in ranked}
    linked = passage_queries.duplicates_of(connection, by_document)
    if not linked:
        return ranked, {}
    merged: dict[int, list[int]] = {}
    dropped: set[int] = set()
    remaining: list[RankedTurn] = []
    for result in ranked:
        if result.turn.shown in dropped:
            continue
        others = [d for d in linked.get(result.turn.shown, ()) if d in by_document]
        merged[result.turn.id] = [d for d in others if d not in dropped]
        dropped.update(others)
        remaining.append(result)
    return remaining, merged


def _turn_rows(
    connection: sqlite3.Connection,
    ranked: list[RankedTurn],
    parsed: ParsedQuery,
    query: Query,
    duplicates_of: dict[int, list[int]],
) -> tuple[list[SearchRow], bool]:
    """A row for each turn up to the limit, named after the first of its memories that passes the
    filters; and whether there are more."""
    judge, stems = Strength.of(parsed), stems_of(parsed)
    places = [(result.turn.session_id, result.turn.number) for result in ranked]
    memories = passage_queries.memories_of_turns(connection, places, query.filters)
    names = project_names(connection)
    passing = [(r, memories[at]) for r, at in zip(ranked, places, strict=True) if at in memories]
    page = passing[: query.limit]
    texts = passage_queries.texts_of_passages(
        connection, [passage for r, _ in page if (passage := r.passage) is not None]
    )
    rows: list[SearchRow] = []
    for result, (match, *others) in page:
        also = [*(m.document for m in others), *duplicates_of.get(result.turn.id, ())]
        text = texts.get(result.passage, "") if result.passage is not None else ""
        rows.append(
            SearchRow(
                id=MemoryId.of_document(match.document),
                created_at_epoch=match.created_at_epoch,
                type=match.type,
                title=match.title,
                file=match.file,
                tokens=tokens_of_bytes(match.size),
                project=names.get(match.project_id, ""),
                session_db_id=match.session_id,
                score=result.score,
                also=tuple(map(MemoryId.of_document, also)),
                snippet=snippet(text or match.title, stems, snippet_length(len(rows))),
                is_strong=judge.is_strong(result),
            )
        )
    return _complete(connection, rows), len(passing) > query.limit


def _complete(connection: sqlite3.Connection, rows: list[SearchRow]) -> list[SearchRow]:
    notes = marks_of(connection, [row.id for row in rows])
    for at, row in enumerate(rows):
        if (of_row := notes.get(row.id)) is not None:
            outside_mark = _outside_mark(row, of_row.outside_words)
            rows[at] = replace(
                row, continues=of_row.continues, marks=(*of_row.marks, *outside_mark)
            )
    return rows


def _outside_mark(row: SearchRow, outside: str) -> tuple[str, ...]:
    return ("outside",) if has_run_of(f"{row.title}\n{row.snippet}", outside) else ()


def with_occasions(
    connection: sqlite3.Connection, parsed: ParsedQuery, project_id: int | None
) -> ParsedQuery:
    """Resolves "before the release" to the time of the newest memory whose title names it."""
    spans = list(parsed.spans)
    for occasion in parsed.occasions:
        moment = document_queries.newest_named(
            connection, content_word_forms(occasion.words), project_id
        )
        if moment is not None:
            spans.append(occasion.span_around(moment))
    return replace(parsed, spans=tuple(spans), occasions=()) if parsed.occasions else parsed


def as_rows(
    connection: sqlite3.Connection, documents: list[Match], scores: dict[int, float] | None = None
) -> list[SearchRow]:
    names = project_names(connection)
    rows = [
        SearchRow(
            id=MemoryId.of_document(match.document),
            created_at_epoch=match.created_at_epoch,
            type=match.type,
            title=match.title,
            file=match.file,
            tokens=tokens_of_bytes(match.size),
            project=names.get(match.project_id, ""),
            session_db_id=match.session_id,
            score=scores[match.document] if scores else 0.0,
        )
        for match in documents
    ]
    return _complete(connection, rows)


# What is shown of a memory besides its text: whether it was edited, pinned, marked as wrong or has
# words from outside, and which earlier memory it continues.

_NAME_OF_PARENT = (
    "coalesce('' || (SELECT o.id FROM observations o WHERE o.turn_id = t.parent_turn"
    " ORDER BY o.ordinal LIMIT 1), 'S' || (SELECT s.id FROM session_summaries s"
    " WHERE s.turn_id = t.parent_turn), 'P' || t.parent_turn)"
)
_OF_MEMORIES = " FROM {table} m JOIN user_prompts t ON t.id = m.turn_id"
_MARK_TABLES = {
    "observation": _OF_MEMORIES.format(table="observations"),
    "summary": _OF_MEMORIES.format(table="session_summaries"),
    "prompt": " FROM user_prompts t",
}
_MARK_COLUMNS = {
    "observation": f"m.id, m.edited, m.pinned, m.wrong, {_NAME_OF_PARENT}",
    "summary": f"m.id, m.edited, m.pinned, m.wrong, {_NAME_OF_PARENT}",
    "prompt": "t.id, 0, t.pinned, t.wrong, NULL",
}


class RowMarks(NamedTuple):
    marks: tuple[str, ...]
    continues: MemoryId | None  # the best known memory of the turn that started its background task
    outside_words: str  # hashes of those of its turn, separated by spaces


def marks_of(connection: sqlite3.Connection, ids: Sequence[MemoryId]) -> dict[MemoryId, RowMarks]:
    """Returns the marks of the memories that have any."""
    notes: dict[MemoryId, RowMarks] = {}
    for kind, columns in _MARK_COLUMNS.items():
        for number, *flags, parent, words in _read_marks(connection, kind, columns, ids):
            marks = tuple(name for name, flag in zip(MARKS, flags, strict=True) if flag)
            if marks or parent or words is not None:
                continues = parse_memory_id(parent) if parent else None
                notes[MemoryId(kind, number)] = RowMarks(marks, continues, words or "")
    return notes


def outside_words_of(
    connection: sqlite3.Connection, ids: Sequence[MemoryId]
) -> dict[MemoryId, frozenset[str]]:
    """Returns the words from outside of memories whose turn has any."""
    return {
        MemoryId(kind, number): frozenset(words.split())
        for kind, columns in _MARK_COLUMNS.items()
        for number, *_, words in _read_marks(connection, kind, columns, ids)
        if words is not None
    }


def _read_marks(
    connection: sqlite3.Connection, kind: str, columns: str, ids: Sequence[MemoryId]
) -> Iterable[tuple[Any, ...]]:
    numbers = [memory_id.number for memory_id in ids if memory_id.kind == kind]
    if not numbers:
        return ()
    own_id = "t.id" if kind == "prompt" else "m.id"
    # For each memory the turns before it are looked up: most of the time of the statement.
    words = outside_words.OF_TURN if outside_words.is_any(connection) else "NULL"
    return connection.execute(
        f"SELECT {columns}, {words}{_MARK_TABLES[kind]}"
        f" WHERE {own_id} IN (SELECT value FROM json_each(?))",
        (json.dumps(numbers),),
    )


# The part of a passage that matches


def snippet_length(row: int) -> int:
    """Returns the length of the snippet of a row by the number of rows before it."""
    return SNIPPET_LENGTH if row < FIRST_ROWS else LATER_LENGTH


def snippet(text: str, stems: frozenset[str], length: int = SNIPPET_LENGTH) -> str:
    """Cuts out about `length` characters where most words have one of these stems."""
    line = " ".join(text.split())
    if len(line) <= length:
        return line
    start, end = _best_window(line, _hits(line, stems), length)
    before, after = "…" if start else "", "…" if end < len(line) else ""
    return f"{before}{line[start:end]}{after}"


def mark_words(text: str, parsed: ParsedQuery) -> list[tuple[str, bool]]:
    """The text in pieces, and whether each is a word of the query."""
    line = " ".join(text.split())
    hits = {start for start, _ in _hits(line, stems_of(parsed))}
    parts: list[tuple[str, bool]] = []
    for start, end in _words_of(line):
        separator = " " if start else ""
        if start in hits:
            parts += [(separator, False), (line[start:end], True)]
        else:
            parts.append((f"{separator}{line[start:end]}", False))
    return parts


def holds_any(text: str, stems: frozenset[str]) -> bool:
    """Whether one of its words has one of these stems."""
    return bool(_hits(" ".join(text.split()), stems))


# Words of a line are separated by one space each. A word is given by where it starts and ends.
WordPlace = tuple[int, int]


def _words_of(line: str) -> Iterator[WordPlace]:
    start = 0
    for word in line.split():
        yield start, start + len(word)
        start += len(word) + 1


def _hits(line: str, stems: frozenset[str]) -> list[WordPlace]:
    """The words whose stem is one of these, in order."""
    places = list(_words_of(line))
    forms = [_forms(line[start:end]) for start, end in places]
    known = stems_by_word(form for of_word in forms for form in of_word)
    return [
        place
        for place, of_word in zip(places, forms, strict=True)
        if any(known[form] in stems for form in of_word)
    ]


def _forms(word: str) -> list[str]:
    """What it is compared by: itself, and the words within it."""
    return [form.lower() for piece in pieces(word) for form in (piece, *parts_of(piece))]


def _best_window(line: str, hits: Sequence[WordPlace], length: int) -> WordPlace:
    """The words from one to another that hold the most hits and fit; of equals the first.

    Such a window begins the text, or it is the first that reaches as far as one of the hits.
    """
    starts_of_hits = [start for start, _ in hits]
    best, best_hits = (0, len(line)), -1
    for start in (0, *(_first_start(line, hit, length) for hit in hits)):
        end = _last_end(line, start, length)
        count = bisect_left(starts_of_hits, end) - bisect_left(starts_of_hits, start)
        if count > best_hits:
            best, best_hits = (start, end), count
    return best


def _first_start(line: str, last: WordPlace, length: int) -> int:
    """Returns the start of the first of the words up to this one that fit."""
    start, end = last
    space = line.find(" ", max(0, end - length), start)
    return space + 1 if space >= 0 else start


def _last_end(line: str, start: int, length: int) -> int:
    """Returns the end of the last word from this start that fits; that of the first if none
    does."""
    if len(line) < start + length:
        return len(line)
    end = line.rfind(" ", start, start + length)
    if end < 0:
        end = line.find(" ", start)
    return end if end >= 0 else len(line)
