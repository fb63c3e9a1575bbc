"""Search, the first of the three steps: which memories there are, in few words and by id."""

import logging
import sqlite3
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from claude_mem.errors import EmbedderError
from claude_mem.index.text import full_text, matches
from claude_mem.index.text.documents import document_id, kind_of, memory_id_of
from claude_mem.index.text.matches import Filters, Match, Traits
from claude_mem.index.vectors import duplicates
from claude_mem.index.vectors.semantic import SemanticIndex
from claude_mem.recall.question import Question, read_question, telling_forms
from claude_mem.recall.ranking import WEIGHTS, Scores, Weights, rank
from claude_mem.recall.tokens import tokens_of_bytes
from claude_mem.store import StoreReader
from claude_mem.store.clock import iso
from claude_mem.store.projects import project_names
from claude_mem.types import Json

log = logging.getLogger("claude_mem.search")

Order = Literal["relevance", "date_desc", "date_asc"]
ORDERS: tuple[Order, ...] = ("relevance", "date_desc", "date_asc")
ROWS = 40
EVERYTHING = "*"  # as many say it who have only filters
MARKS = {"observation": "", "summary": "S", "prompt": "P"}


def name_of(kind: str, memory_id: int) -> str:
    """12, S3 or P4."""
    return f"{MARKS[kind]}{memory_id}"


@dataclass(frozen=True, slots=True)
class Row:
    """A memory in the index that is shown: enough to choose by."""

    kind: str
    memory_id: int
    created_at_epoch: int
    type: str
    title: str
    file: str | None
    tokens: int
    project: str
    session_db_id: int
    score: float
    also: tuple[str, ...] = ()  # that say the same, and were found too

    @property
    def id(self) -> str:
        return name_of(self.kind, self.memory_id)

    def record(self) -> dict[str, Json]:
        return {
            "id": self.id,
            "kind": self.kind,
            "memory_id": self.memory_id,
            "created_at": iso(self.created_at_epoch),
            "created_at_epoch": self.created_at_epoch,
            "type": self.type,
            "title": self.title,
            "file": self.file,
            "tokens": self.tokens,
            "project": self.project,
            "session_db_id": self.session_db_id,
            "score": round(self.score, 3),
            "also": list(self.also),
        }


@dataclass(frozen=True, slots=True)
class SearchResult:
    query: str
    rows: tuple[Row, ...]
    has_more: bool
    waiting: int  # memories that the index has yet to read
    words_alone: str | None = None  # why meaning could not be asked


def search(
    store: StoreReader,
    query: str,
    now: datetime,
    filters: Filters = Filters(),  # noqa: B008 - frozen
    limit: int = ROWS,
    offset: int = 0,
    order: Order = "relevance",
    weights: Weights = WEIGHTS,
    meaning: SemanticIndex | None = None,
) -> SearchResult:
    """Without a question, the newest that pass the filters; with one that no memory can hold,
    nothing."""
    question = read_question(query, now)

    def work(connection: sqlite3.Connection) -> SearchResult:
        if not full_text.is_current(connection):
            return SearchResult(query, (), False, full_text.waiting(connection))
        if query and question.is_empty and not (filters and _asks_for_all(question)):
            return SearchResult(query, (), False, 0)  # no memory can hold it
        trouble = None
        try:
            found = _find(connection, question, filters, limit, offset, order, weights, meaning)
        except EmbedderError as error:
            trouble = str(error)
            log.warning("searching by words alone: %s", trouble)
            found = _find(connection, question, filters, limit, offset, order, weights, None)
        waiting = full_text.waiting(connection)
        return SearchResult(query, tuple(found[:limit]), len(found) > limit, waiting, trouble)

    return store.read(work)


def _asks_for_all(question: Question) -> bool:
    """Of what passes the filters: by saying nothing, or only what it shall not hold."""
    return bool(question.excluded) or question.text.strip() in ("", EVERYTHING)


def _find(
    connection: sqlite3.Connection,
    question: Question,
    filters: Filters,
    limit: int,
    offset: int,
    order: Order,
    weights: Weights,
    meaning: SemanticIndex | None,
) -> list[Row]:
    """One more than asked for, where there are more."""
    if question.is_empty:
        oldest = order == "date_asc"
        found = matches.newest(
            connection, filters, limit + 1, offset, oldest=oldest, without=question.excluded
        )
        return as_rows(connection, found)
    question = with_occasions(connection, question, filters.project_id)
    ranked = rank(connection, question, filters, offset + limit + 1, weights, meaning)
    ranked, also = _shown_once(connection, ranked)
    if order != "relevance":
        down = order == "date_desc"
        ranked.sort(key=lambda one: (one[0].created_at_epoch, one[0].document), reverse=down)
    scores = {one.document: score for one, score in ranked[offset : offset + limit + 1]}
    rows = as_rows(connection, matches.get(connection, list(scores)), scores)
    return [replace(row, also=also.get(document_id(row.kind, row.memory_id), ())) for row in rows]


def _shown_once(
    connection: sqlite3.Connection, ranked: list[tuple[Traits, float]]
) -> tuple[list[tuple[Traits, float]], dict[int, tuple[str, ...]]]:
    """Of those that say the same the best, and the names of the others."""
    places = {traits.document: place for place, (traits, _) in enumerate(ranked)}
    same = duplicates.of(connection, places)
    kept, also = [], {}
    gone: set[int] = set()
    for traits, score in ranked:
        document = traits.document
        if document in gone:
            continue
        others = [one for one in same.get(document, ()) if one in places and one not in gone]
        later = [one for one in others if places[one] > places[document]]
        gone.update(later)
        kept.append((traits, score))
        also[document] = tuple(name_of(kind_of(one), memory_id_of(one)) for one in later)
    return kept, also


def with_occasions(
    connection: sqlite3.Connection, question: Question, project_id: int | None
) -> Question:
    """With the times of "before the release": that of the newest memory whose title names it."""
    spans = list(question.spans)
    for occasion in question.occasions:
        moment = matches.newest_named(connection, telling_forms(occasion.words), project_id)
        if moment is not None:
            spans.append(occasion.span_around(moment))
    return replace(question, spans=tuple(spans), occasions=()) if question.occasions else question


def as_rows(
    connection: sqlite3.Connection, found: list[Match], scores: Scores | None = None
) -> list[Row]:
    names = project_names(connection)
    return [
        Row(
            kind=match.kind,
            memory_id=match.memory_id,
            created_at_epoch=match.created_at_epoch,
            type=match.type,
            title=match.title,
            file=match.file,
            tokens=tokens_of_bytes(match.size),
            project=names.get(match.project_id, ""),
            session_db_id=match.session_id,
            score=scores[match.document] if scores else 0.0,
        )
        for match in found
    ]
