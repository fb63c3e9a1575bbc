"""The search rows of a small database, held in memory: all but the words of full text.

A search of a memory of a thousand turns takes a few milliseconds, most of them for statements that
read a hundred passages, their turns and what is shown of these. Here they are read once, by a
thread of their own where they are many. What is held belongs to one state of the index. For a later
state the turns that have changed since are read again, by the search that needs it; searches that
read an earlier one get nothing.
"""

import logging
import sqlite3
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import TYPE_CHECKING

from claude_mem.index.text import passage_queries
from claude_mem.index.text.documents import KINDS, TURN, kind_of, memory_id_of
from claude_mem.index.text.filters import Filters
from claude_mem.index.text.passage_queries import (
    PASSAGE_BITS,
    Match,
    NeighbourRow,
    PassageRow,
    Place,
    TurnRow,
)
from claude_mem.index.text.term_counts import all_term_counts, term_counts
from claude_mem.index.vectors.vector_table import TableState

if TYPE_CHECKING:
    from claude_mem.index.vectors.vector_search import VectorCache

log = logging.getLogger("claude_mem.search")

MAX_PASSAGES = 16_384  # of a small database, with all projects; so many take 22 MB
READ_AT_ONCE = 1_000  # passages; more are read by a thread of their own
CHUNK = 100  # turns that a thread reads between which others may run
MAX_CHANGES = 200  # documents; after more everything is read again
REACH = 2  # of the neighbours that are read ahead
_ANY = Filters(with_wrong=True)


@dataclass(frozen=True, slots=True)
class SmallDatabase:
    """At one state of the index. Texts, counts and neighbours that are missing are read on use:
    several threads may add the same."""

    state: TableState
    _turns: dict[int, TurnRow] = field(default_factory=dict)
    _passages: dict[int, PassageRow] = field(default_factory=dict)
    _memories: dict[Place, list[Match]] = field(default_factory=dict)
    _duplicates: Mapping[int, list[int]] = field(default_factory=dict)
    _neighbours: dict[int, dict[int, NeighbourRow]] = field(default_factory=dict)  # by reach
    _texts: dict[int, str] = field(default_factory=dict)
    _counts: dict[str, int] = field(default_factory=dict)

    # `wrong`, of these methods: documents that are marked so. Their turns are left out.

    def passages_of_turns(
        self, ids: Iterable[int], wrong: Collection[int]
    ) -> tuple[list[PassageRow], dict[int, TurnRow]]:
        """As `passage_queries.passages_of_turns`, with their pieces."""
        held = self._passages
        present = [passage for passage in sorted(ids) if passage in held]
        passages = [held[passage] for passage in present]
        turns = self._in_order({passage >> PASSAGE_BITS: None for passage in present}, wrong)
        if wrong:
            passages = [row for row in passages if row[0] >> PASSAGE_BITS in turns]
        return passages, turns

    def turn_rows(self, ids: Iterable[int], wrong: Collection[int]) -> dict[int, TurnRow]:
        """As `passage_queries.turn_rows`."""
        return self._in_order(sorted(ids), wrong)

    def _in_order(self, ids: Iterable[int], wrong: Collection[int]) -> dict[int, TurnRow]:
        held = self._turns
        turns = {turn: held[turn] for turn in ids if turn in held}
        return (
            {id_: row for id_, row in turns.items() if not _is_wrong(row, wrong)}
            if wrong
            else turns
        )

    def memories_of_turns(
        self, places: Iterable[Place], wrong: Collection[int]
    ) -> dict[Place, list[Match]]:
        """As `passage_queries.memories_of_turns`."""
        held = self._memories
        memories = {place: held[place] for place in places if place in held}
        if not wrong:
            return memories
        right = {
            place: [match for match in of_turn if match.document not in wrong]
            for place, of_turn in memories.items()
        }
        return {place: of_turn for place, of_turn in right.items() if of_turn}

    def duplicates_of(self, documents: Iterable[int]) -> dict[int, list[int]]:
        """As `passage_queries.duplicates_of`."""
        held = self._duplicates
        if not held:
            return {}
        return {document: held[document] for document in documents if document in held}

    def neighbours(
        self, connection: sqlite3.Connection, turns: Iterable[TurnRow], reach: int
    ) -> list[tuple[int, int, int]]:
        """As `passage_queries.neighbours`."""
        held = self._neighbours.setdefault(reach, {})
        ids = sorted(turn.id for turn in turns)
        missing = [turn for turn in ids if turn not in held]
        if missing:
            rows = passage_queries.neighbour_rows(connection, missing, reach)
            held.update((row[0], row) for row in rows)
        return passage_queries.steps([held[turn] for turn in ids if turn in held], reach)

    def texts(self, connection: sqlite3.Connection, ids: Iterable[int]) -> dict[int, str]:
        """As `passage_queries.texts_of_passages`."""
        held, wanted = self._texts, list(ids)
        missing = [passage for passage in wanted if passage not in held]
        if missing:
            held.update(passage_queries.texts_of_passages(connection, missing))
        return {passage: held[passage] for passage in wanted if passage in held}

    def term_counts(self, connection: sqlite3.Connection, stems: Iterable[str]) -> dict[str, int]:
        """As `term_counts.term_counts`."""
        held, wanted = self._counts, list(stems)
        missing = [stem for stem in wanted if stem not in held]
        if missing:
            counts = term_counts(connection, missing, len(self._passages))
            held.update((stem, counts.get(stem, 0)) for stem in missing)
        return {stem: held[stem] for stem in wanted}

    # Reading

    @classmethod
    def read(cls, connection: sqlite3.Connection, state: TableState) -> "SmallDatabase":
        memory = cls(state, _duplicates=passage_queries.all_duplicates(connection))
        for turns in _chunks(passage_queries.turn_ids(connection)):
            memory._add(connection, turns)
        return memory

    def _add(
        self,
        connection: sqlite3.Connection,
        turn_ids: Collection[int],
        places: Iterable[Place] = (),
    ) -> None:
        """`places`: where turns were before."""
        turns = passage_queries.turn_rows(connection, turn_ids)
        self._turns.update(turns)
        rows = passage_queries.rows_of_turns(connection, turn_ids)
        self._passages.update((row.id, row) for row in rows)
        current = [(turn.session_id, turn.number) for turn in turns.values()]
        read = passage_queries.memories_of_turns(connection, {*current, *places}, _ANY)
        self._memories.update(read)

    def read_ahead(self, connection: sqlite3.Connection) -> None:
        """What is otherwise read on use."""
        self._counts.update(all_term_counts(connection))
        for turns in _chunks(list(self._turns.copy())):
            self.neighbours(connection, [self._turns[turn] for turn in turns], REACH)
            passages = [p for turn in turns for p in _passages_of(turn, self._passages)]
            self.texts(connection, passages)

    def at(
        self, connection: sqlite3.Connection, state: TableState, changed: Iterable[int]
    ) -> "SmallDatabase":
        """At a later state, in which these turns have changed."""
        turns, passages, texts = self._turns.copy(), self._passages.copy(), self._texts.copy()
        memories = self._memories.copy()
        changed = set(changed)
        before = [turns.pop(turn) for turn in changed if turn in turns]
        places = [(turn.session_id, turn.number) for turn in before]
        for place in places:
            memories.pop(place, None)
        for turn in before:
            for passage in _passages_of(turn.id, passages):
                del passages[passage]
                texts.pop(passage, None)
        later = replace(
            self,
            state=state,
            _turns=turns,
            _passages=passages,
            _memories=memories,
            _duplicates=passage_queries.all_duplicates(connection),
            _neighbours={},
            _texts=texts,
            _counts={},
        )
        later._add(connection, changed, places)
        return later


def _is_wrong(turn: TurnRow, wrong: Collection[int]) -> bool:
    """As `filters.result_condition`: by the memory that stands for it, or by its prompt."""
    return turn.shown in wrong or turn.id * 4 + KINDS.index("prompt") in wrong


def _passages_of(turn: int, passages: Collection[int]) -> list[int]:
    """Their numbers follow each other; after the last of a full turn comes the next turn."""
    first = turn << PASSAGE_BITS
    return list(takewhile(passages.__contains__, range(first, first + (1 << PASSAGE_BITS))))


def _chunks(turns: Sequence[int]) -> Iterator[Sequence[int]]:
    return (turns[start : start + CHUNK] for start in range(0, len(turns), CHUNK))


class SmallDatabaseCache:
    def __init__(self, vectors: "VectorCache") -> None:
        self._vectors = vectors
        self._held: SmallDatabase | None = None  # None: the memory is large, or not read yet
        self._lock = threading.Lock()  # of the thread that reads it

    def current(self, connection: sqlite3.Connection) -> SmallDatabase | None:
        """As the connection reads it; None where the memory is large or is being read, where
        documents wait for the index, or where a later state was read already."""
        if passage_queries.is_any_waiting(connection):
            return None
        state, held = self._vectors.read_state(connection), self._held
        if held is not None and held.state == state:
            return held
        if passage_queries.passage_count(connection) > MAX_PASSAGES:
            self._held = None
            return None
        if held is None or held.state[:2] != state[:2]:
            return self._read(connection, state)
        # Not by the revision alone: it is that of a row, which may be the one that was deleted.
        if (state.loss, state.revision) < (held.state.loss, held.state.revision):
            return None
        changed = _changed_documents(
            connection, held.state.revision, held.state.loss, MAX_CHANGES + 1
        )
        if len(changed) > MAX_CHANGES:
            return self._read(connection, state)
        turns = {memory_id_of(document) for document in changed if kind_of(document) == TURN}
        self._held = held = held.at(connection, state, turns)
        return held

    def _read(self, connection: sqlite3.Connection, state: TableState) -> SmallDatabase | None:
        if passage_queries.passage_count(connection) <= READ_AT_ONCE:
            self._held = SmallDatabase.read(connection, state)
            return self._held
        self._vectors.in_background(connection, self._lock, self._read_in_thread)
        return None

    def _read_in_thread(self, connection: sqlite3.Connection) -> None:
        try:
            connection.execute("BEGIN")  # all of it as it is at one moment
            if not passage_queries.is_any_waiting(connection):
                self._held = memory = SmallDatabase.read(
                    connection, self._vectors.read_state(connection)
                )
                memory.read_ahead(connection)
        except sqlite3.Error:  # a file that was moved away; the next search tries again
            log.warning("the memory could not be read ahead", exc_info=True)


def _changed_documents(
    connection: sqlite3.Connection, revision: int, loss: int, limit: int
) -> list[int]:
    """Those that changed after a revision or were removed after a loss, up to the limit of each."""
    rows = connection.execute(
        "SELECT * FROM (SELECT document FROM vectors WHERE revision > ? LIMIT ?) UNION ALL"
        " SELECT * FROM (SELECT document FROM vector_losses WHERE number > ? LIMIT ?)",
        (revision, limit, loss, limit),
    )
    return [row[0] for row in rows]
