"""Announces what the worker did: to subscribers of the feed, and in activity.flag."""

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
                    "turn_id": record.turn_id,
                    "tool_name": event.tool_name,
                })  # fmt: skip

    def memory_stored(self, turn: Turn, distillate: Distillate) -> None:
        self.feed.publish({
            "type": "memory",
            "session_db_id": turn.session_db_id,
            "project": turn.project.name,
            "prompt_number": turn.prompt_number,
            "turn_id": turn.id,
            "observations": len(distillate.observations),
        })  # fmt: skip

    def memory_saved(self, project: Project) -> None:
        """By a user or an agent, outside a turn."""
        self.feed.publish({"type": "memory", "project": project.name, "observations": 1})

    def forgotten(self, forgotten: Forgotten) -> None:
        self._memories_changed("forgotten", forgotten)

    def forgetting_undone(self, forgotten: Forgotten) -> None:
        self._memories_changed("remembered again", forgotten)

    def _memories_changed(self, event_type: str, forgotten: Forgotten) -> None:
        self.feed.publish({"type": event_type, "counts": dict(forgotten.counts)})

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
