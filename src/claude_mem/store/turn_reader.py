"""Reading turns for the viewer: a part of `StoreReader`."""

import sqlite3
from collections.abc import Callable
from typing import TypeVar

from claude_mem.errors import NotFound
from claude_mem.store import turn_pages, turn_rows
from claude_mem.store.listing import JsonRow
from claude_mem.store.turn_pages import TurnCursor, TurnPage, TurnQuery, TurnStory
from claude_mem.types import Turn

T = TypeVar("T")


class TurnReader:
    def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        raise NotImplementedError

    def turns(self, query: TurnQuery) -> tuple[list[TurnPage], TurnCursor | None]:
        """A page of turns, newest first, and where the next page begins."""
        return self.read(lambda c: turn_pages.list_turns(c, query))

    def get_turns(self, ids: list[int]) -> list[TurnPage]:
        return self.read(lambda c: turn_pages.get_turns(c, ids))

    def turn_story(self, turn_id: int) -> TurnStory:
        story = self.read(lambda c: turn_pages.get_story(c, turn_id))
        if story is None:
            raise NotFound(f"there is no turn {turn_id}")
        return story

    def turn_of_memory(self, kind: str, memory_id: int) -> int:
        turn_id = self.read(lambda c: turn_pages.turn_of_memory(c, kind, memory_id))
        if turn_id is None:
            raise NotFound(f"there is no {kind} {memory_id}")
        return turn_id

    def project_list(self) -> list[JsonRow]:
        return self.read(turn_pages.project_list)

    def turns_per_day(self, project_id: int, since_ms: int, offset_ms: int) -> dict[int, int]:
        return self.read(lambda c: turn_pages.turns_per_day(c, project_id, since_ms, offset_ms))

    def touched_files(self, project_id: int) -> list[tuple[str, int]]:
        return self.read(lambda c: turn_pages.touched_files(c, project_id))

    def last_event_ms(self) -> dict[str, int]:
        return self.read(turn_pages.last_event_ms)

    def turn_with_events(self, turn_id: int) -> Turn | None:
        """As an observer gets it."""
        return self.read(lambda c: turn_rows.load_turn(c, turn_id))
