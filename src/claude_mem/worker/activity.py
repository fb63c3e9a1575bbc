"""activity.flag: whether an agent is working, for status bars and other indicators."""

import json
from collections.abc import Iterable

from claude_mem.config import Layout, write_private
from claude_mem.store.turns import Recorded
from claude_mem.types import PROMPT, SESSION_END, Event

OTHER_EDITOR = ""  # it has no session here
_TURN_ENDS = ("Stop", "StopFailure", SESSION_END)


class Activity:
    """Tracks the sessions that are working; the flag says whether there is one."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._working: set[str] = set()
        self._written: dict[str, object] | None = None

    @property
    def is_processing(self) -> bool:
        return bool(self._working)

    @property
    def sessions(self) -> frozenset[str]:
        """The ids of those that are working, by the agent's name for them."""
        return frozenset(self._working - {OTHER_EDITOR})

    def end(self, sessions: Iterable[str], ms: int) -> None:
        """Ends sessions that were stopped or forgotten: no event says that they ended."""
        self._working -= set(sessions)
        self._write(ms)

    def update(self, recorded: list[tuple[Event, Recorded]]) -> bool:
        """Whether these events changed the state; the flag is written once for all of them."""
        previous = self.is_processing
        last: Event | None = None
        for event, _ in recorded:
            if event.kind == PROMPT:
                self._working.add(event.session_id)
                last = event
            elif event.kind in _TURN_ENDS:
                self._working.discard(event.session_id)
                last = event
        if last is not None:
            self._write(last.arrived_ms, last.project.name)
        return self.is_processing != previous

    def set(self, active: bool, ms: int) -> None:
        """Sets the activity as another editor reports it."""
        if active:
            self._working.add(OTHER_EDITOR)
        else:
            self._working.clear()
        self._write(ms)

    def reset(self, ms: int) -> None:
        """No session is working: agents that were have ended without an event."""
        self._working.clear()
        self._write(ms)

    def _write(self, ms: int, project: str | None = None) -> None:
        state: dict[str, object] = {"active": self.is_processing}
        if self.is_processing and project:
            state["project"] = project
        if state != self._written:
            self._written = state
            content = json.dumps(state | {"timestamp": ms}).encode()
            write_private(self._layout.activity_flag, content)
