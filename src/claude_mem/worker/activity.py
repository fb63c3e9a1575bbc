"""activity.flag: whether an agent is at work, for status bars and other indicators."""

import json

from claude_mem.config import Layout, write_private
from claude_mem.store.turns import PROMPT, SESSION_END, Recorded
from claude_mem.types import Event

ENDING = ("Stop", "StopFailure", SESSION_END)


class Activity:
    """Knows the sessions at work; the flag says whether there is one."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._at_work: set[str] = set()
        self._written: dict[str, object] | None = None

    @property
    def is_processing(self) -> bool:
        return bool(self._at_work)

    def note(self, recorded: list[tuple[Event, Recorded]]) -> bool:
        """Whether the state changed with these events; the flag is written once for all."""
        before = self.is_processing
        last: Event | None = None
        for event, _ in recorded:
            if event.kind == PROMPT:
                self._at_work.add(event.session_id)
                last = event
            elif event.kind in ENDING:
                self._at_work.discard(event.session_id)
                last = event
        if last is not None:
            self._write(last.arrived_ms, last.project.name)
        return self.is_processing != before

    def set(self, active: bool, ms: int) -> None:
        """As another editor says; it has no session that we would know."""
        if active:
            self._at_work.add("")
        else:
            self._at_work.clear()
        self._write(ms)

    def rest(self, ms: int) -> None:
        """Nobody has been heard for long: whoever was at work has died."""
        self._at_work.clear()
        self._write(ms)

    def _write(self, ms: int, project: str | None = None) -> None:
        state: dict[str, object] = {"active": self.is_processing}
        if self.is_processing and project:
            state["project"] = project
        if state != self._written:
            self._written = state
            content = json.dumps(state | {"timestamp": ms}).encode()
            write_private(self._layout.activity_flag, content)
