"""Tells the rest of the worker, and listeners of the feed, what jobs and refinements did."""

import asyncio

from claude_mem.types import Distillate, Turn
from claude_mem.worker.feed import Feed


class Announcer:
    def __init__(self, feed: Feed, wake: asyncio.Event) -> None:
        self._feed, self._wake = feed, wake
        self._changed_projects: set[str] = set()

    def memory_stored(self, turn: Turn, distillate: Distillate) -> None:
        self.projects_changed(turn.project.key)
        self._feed.publish({
            "type": "memory",
            "session_db_id": turn.session_db_id,
            "project": turn.project.name,
            "prompt_number": turn.prompt_number,
            "observations": len(distillate.observations),
        })  # fmt: skip

    def refinement_ended(self) -> None:
        """There is room for the next one: the worker need not wait for an event."""
        self._wake.set()

    def projects_changed(self, *keys: str) -> None:
        """The rendered contexts of these projects are out of date."""
        self._changed_projects.update(keys)

    def take_changed_projects(self) -> set[str]:
        """Their keys, each once."""
        changed, self._changed_projects = self._changed_projects, set()
        return changed
