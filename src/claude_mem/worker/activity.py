"""activity.flag: whether an agent is at work, for status bars and other indicators."""

import json

from claude_mem.config import Layout, write_private
from claude_mem.store.turns import PROMPT, SESSION_END, Recorded
from claude_mem.types import Event

ENDING = ("Stop", "StopFailure", SESSION_END)


class Activity:
    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self.is_processing = False

    def note(self, recorded: list[tuple[Event, Recorded]]) -> bool:
        """Whether the state changed with these events; only the last of them is written down."""
        before = self.is_processing
        for event, _ in reversed(recorded):
            if event.kind == PROMPT:
                self.set(True, event.arrived_ms, event.project.name)
                break
            if event.kind in ENDING:
                self.set(False, event.arrived_ms)
                break
        return self.is_processing != before

    def set(self, active: bool, ms: int, project: str | None = None) -> None:
        if active == self.is_processing and project is None:
            return
        self.is_processing = active
        content = {"active": active, "timestamp": ms} | ({"project": project} if project else {})
        write_private(self._layout.activity_flag, json.dumps(content).encode())
