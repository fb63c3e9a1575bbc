"""Passages that searches have read, kept while the memory is small.

A search reads a hundred passages, and in a small memory the next one reads many of them again. What
is kept belongs to one state of the index. Searches that read a later state start with a copy of it,
without the turns that have changed since; those that read an earlier one get nothing.
"""

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass, field

from claude_mem.index.text import passage_reading
from claude_mem.index.text.documents import TURN, kind_of, memory_id_of
from claude_mem.index.text.passage_reading import PASSAGE_BITS, NeighbourRow, PassageRow, TurnRow
from claude_mem.index.vectors import vector_table
from claude_mem.index.vectors.vector_table import TableState

MAX_PASSAGES = 16_384  # of a small memory, with all projects
MAX_TEXTS = 4_096
MAX_CHANGES = 500  # documents; after more the cache begins anew


@dataclass(frozen=True, slots=True)
class CachedPassages:
    """What was read of one state of the index. Several threads may add the same."""

    state: TableState
    _rows: dict[int, PassageRow] = field(default_factory=dict)
    _turns: dict[int, TurnRow] = field(default_factory=dict)
    _texts: dict[int, str] = field(default_factory=dict)
    _neighbours: dict[int, dict[int, NeighbourRow]] = field(default_factory=dict)  # by reach

    def passages_of_turns(
        self, connection: sqlite3.Connection, ids: Iterable[int]
    ) -> tuple[list[PassageRow], dict[int, TurnRow]]:
        """As `passage_reading.passages_of_turns`, with their pieces."""
        held, turns = self._rows, self._turns
        in_order = sorted(ids)
        missing = [passage for passage in in_order if passage not in held]
        if missing:
            rows, new_turns = passage_reading.passages_of_turns(connection, missing)
            turns.update(new_turns)
            held.update((row.id, row) for row in rows)
        passages = [held[passage] for passage in in_order if passage in held]
        of_passages = dict.fromkeys([row[0] >> PASSAGE_BITS for row in passages])
        return passages, {turn: turns[turn] for turn in of_passages}

    def neighbours(
        self, connection: sqlite3.Connection, turns: Iterable[TurnRow], reach: int
    ) -> list[tuple[int, int, int]]:
        """As `passage_reading.neighbours`."""
        held = self._neighbours.setdefault(reach, {})
        ids = sorted(turn.id for turn in turns)
        missing = [turn for turn in ids if turn not in held]
        if missing:
            rows = passage_reading.neighbour_rows(connection, missing, reach)
            held.update((row[0], row) for row in rows)
        return passage_reading.steps([held[turn] for turn in ids if turn in held], reach)

    def texts(self, connection: sqlite3.Connection, ids: Iterable[int]) -> dict[int, str]:
        """As `passage_reading.texts_of_passages`."""
        held, wanted = self._texts, list(ids)
        missing = [passage for passage in wanted if passage not in held]
        found = {passage: held[passage] for passage in wanted if passage in held}
        if missing:
            read = passage_reading.texts_of_passages(connection, missing)
            found |= read
            if len(held) < MAX_TEXTS:
                held.update(read)
        return found

    def without(self, turns: set[int], state: TableState) -> "CachedPassages":
        """A copy for a later state, in which these turns have changed. A changed turn may be a new
        neighbour of any other."""
        return CachedPassages(
            state,
            {
                id_: row
                for id_, row in self._rows.copy().items()
                if id_ >> PASSAGE_BITS not in turns
            },
            {id_: row for id_, row in self._turns.copy().items() if id_ not in turns},
            {id_: t for id_, t in self._texts.copy().items() if id_ >> PASSAGE_BITS not in turns},
        )


class PassageCache:
    def __init__(self) -> None:
        self._held: CachedPassages | None = None  # None: the memory is large, or not read yet

    def at(self, connection: sqlite3.Connection, state: TableState) -> CachedPassages | None:
        """For reading that state; None where the memory is large, where documents wait for the
        index, or where a later state was read already."""
        if passage_reading.is_any_waiting(connection):
            return None
        held = self._held
        if held is not None and held.state == state:
            return held
        if passage_reading.passage_count(connection) > MAX_PASSAGES:
            self._held = None
            return None
        if held is None or held.state[:2] != state[:2]:
            self._held = held = CachedPassages(state)
            return held
        if state.revision < held.state.revision or state.loss < held.state.loss:
            return None
        changed = vector_table.changed_documents(
            connection, held.state.revision, held.state.loss, MAX_CHANGES + 1
        )
        if len(changed) > MAX_CHANGES:
            self._held = held = CachedPassages(state)
            return held
        turns = {memory_id_of(document) for document in changed if kind_of(document) == TURN}
        self._held = held = held.without(turns, state)
        return held
