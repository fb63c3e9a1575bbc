"""What happened, for all who need to know: subscribers of the feed, activity.flag, the main loop.

Each part of the worker reports what it did here and knows none of the others.
"""

import asyncio

from claude_mem.config import Layout
from claude_mem.store import Store
from claude_mem.store.trash import Forgotten
from claude_mem.store.turns import Recorded
from claude_mem.types import Distillate, Event, Json, Project, Turn
from claude_mem.worker.activity import Activity
from claude_mem.worker.feed import Feed


class Announcer:
    def __init__(self, layout: Layout, store: Store) -> None:
        self._store = store
        self.activity = Activity(layout)
        self.feed = Feed()
        self.wake = asyncio.Event()  # the main loop waits for it
        self._changed_projects: set[str] = set()

    def events_recorded(self, recorded: list[tuple[Event, Recorded]]) -> None:
        if self.activity.update(recorded):
            self.feed.publish(self.processing())
        for event, record in recorded:
            if record.outcome == "stored":
                self.feed.publish({
                    "type": "event",
                    "event": event.kind,
                    "session_db_id": record.session_db_id,
                    "project": event.project.name,
                    "prompt_number": record.prompt_number,
                    "tool_name": event.tool_name,
                })  # fmt: skip

    def memory_stored(self, turn: Turn, distillate: Distillate) -> None:
        self.projects_changed(turn.project.key)
        self.feed.publish({
            "type": "memory",
            "session_db_id": turn.session_db_id,
            "project": turn.project.name,
            "prompt_number": turn.prompt_number,
            "observations": len(distillate.observations),
        })  # fmt: skip

    def memory_saved(self, project: Project) -> None:
        """By a user or an agent, outside a turn."""
        self.projects_changed(project.key)
        self.feed.publish({"type": "memory", "project": project.name, "observations": 1})

    def forgotten(self, forgotten: Forgotten) -> None:
        self._memories_changed("forgotten", forgotten)

    def forgetting_undone(self, forgotten: Forgotten) -> None:
        self._memories_changed("remembered again", forgotten)

    def _memories_changed(self, event_type: str, forgotten: Forgotten) -> None:
        self.projects_changed(*(project.key for project in forgotten.projects))
        self.feed.publish({"type": event_type, "counts": dict(forgotten.counts)})

    def refinement_ended(self) -> None:
        """There is room for the next one: the main loop need not wait for an event."""
        self.wake.set()

    def projects_changed(self, *keys: str) -> None:
        """The rendered contexts of these projects are out of date."""
        self._changed_projects.update(keys)

    def take_changed_projects(self) -> set[str]:
        """Their keys, each once."""
        changed, self._changed_projects = self._changed_projects, set()
        return changed

    def set_processing(self, active: bool, ms: int) -> None:
        """As reported by another editor."""
        self.activity.set(active, ms)
        self.feed.publish(self.processing())

    def processing(self) -> dict[str, Json]:
        queue = self._store.queue_state()
        return {
            "type": "processing",
            "isProcessing": self.activity.is_processing,
            "queueDepth": queue["pending"] + queue["processing"],
        }
