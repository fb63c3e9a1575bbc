"""The contexts that sessions received and that are not stored yet.

A session that is resumed must receive the same context again, even if a process died in between:

- The context that a hook without a worker prints (`printed`: the rendered file) is stored in the
  transaction that stores the start of the session.
- The worker usually answers with that same text. It waits here until the start is stored, which
  happens right after the answer, and before the file is rendered again.
- Any other text is stored before it is sent (`worker/session_start.py`).
- After forgetting, nothing that waits here is stored.
"""

import logging
import sqlite3
from collections.abc import Callable, Sequence

from claude_mem.store import Store
from claude_mem.types import Event

log = logging.getLogger("claude_mem.intake")
MAX_WAITING = 64

ContextLookup = Callable[[Event], str | None]  # the context that this event's hook printed


class UnsavedContexts:
    def __init__(self, store: Store, printed: ContextLookup | None = None) -> None:
        self._store, self._printed = store, printed
        self._waiting: dict[str, str] = {}  # by session

    def add(self, session_id: str, text: str) -> bool:
        """To be stored with the start of the session; False if that is stored already."""
        while len(self._waiting) >= MAX_WAITING:  # their starts were rejected
            self._waiting.pop(next(iter(self._waiting)), None)
        self._waiting[session_id] = text
        if self._store.has_session(session_id):
            self._waiting.pop(session_id, None)
            return False
        return True

    def waiting(self, session_id: str) -> str | None:
        return self._waiting.get(session_id)

    def received(self, session_id: str) -> str | None:
        """By the session, whether or not it is stored; None if it received none."""
        text = self.waiting(session_id)
        return self._store.start_context(session_id) if text is None else text

    def are_waiting(self) -> bool:
        return bool(self._waiting)

    def withdraw(self) -> None:
        """After forgetting: what they hold must not be stored any more."""
        self._waiting.clear()

    def of_starts(self, events: Sequence[Event]) -> dict[str, str]:
        """By session: what to store together with these events."""
        contexts: dict[str, str] = {}
        for event in events:
            text = self._waiting.get(event.session_id)
            if text is None and self._printed is not None:
                text = self._printed(event)
            if text is not None:
                contexts.setdefault(event.session_id, text)
        return contexts

    def settle(self, events: Sequence[Event]) -> None:
        """These events are stored: a context of theirs that came in the meantime is, too."""
        for session_id in {event.session_id for event in events}.intersection(self._waiting):
            self._settle(session_id)

    def _settle(self, session_id: str) -> None:
        text = self._waiting.get(session_id)
        if text is not None and self._store.start_context(session_id) != text:
            try:
                self._store.remember_start_context(session_id, text).result()
            except sqlite3.OperationalError:
                raise  # the disk or the file: the next drain tries it again
            except Exception:
                log.exception("the context of session %s is not stored", session_id)
        self._waiting.pop(session_id, None)
