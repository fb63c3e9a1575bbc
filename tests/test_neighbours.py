"""Neighbours of the best turns: which of them are read."""

import sqlite3
from collections.abc import Iterable
from datetime import UTC, datetime

from claude_mem.index.text.filters import NO_FILTERS
from claude_mem.index.text.passage_queries import TurnRow
from claude_mem.recall.parsed_query import parse_query
from claude_mem.recall.ranking import Neighbourhood, collect, neighbourhood, order
from claude_mem.recall.weights import WEIGHTS
from claude_mem.types import Observation
from tests.remembering import remember
from tests.story import Story

NOW = datetime(2026, 3, 9, 12, tzinfo=UTC)


def test_neighbours_that_cannot_reach_the_page_are_not_read(story: Story) -> None:
    for number in range(12):
        long = f"the harbour crane {number} " + "lifts another box of the same kind " * 40
        remember(story, Observation("change", narrative=long), session=f"crane {number}")
        remember(story, Observation("change", narrative="quiet " * 300), session=f"crane {number}")
    parsed = parse_query("which harbour crane lifts", NOW)
    read: list[int] = []

    def ranked(count: int | None) -> list[int]:
        def work(connection: sqlite3.Connection) -> list[int]:
            candidates = collect(connection, parsed, NO_FILTERS, 10, WEIGHTS)
            near = neighbourhood(connection, NO_FILTERS, 2)

            def read_rows(ids: Iterable[int]) -> dict[int, TurnRow]:
                read.extend(ids)
                return near.read(ids)

            observed = Neighbourhood(near.steps, read_rows)
            return [r.turn.id for r in order(candidates, parsed, observed, count=count)]

        return story.store.read(work)

    everything = ranked(None)
    assert len(read) == 12
    read.clear()
    assert ranked(8)[:8] == everything[:8]
    assert read == []
