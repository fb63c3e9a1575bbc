"""Live events for subscribers such as the viewer, each with a cursor to continue after.

The latest events are kept, and every subscriber reads them from there: one that comes back misses
none, and a slow one delays nobody. One that falls behind what is kept, or has a cursor of another
worker process, gets a reset instead: it has to read the pages again. An event has the items it is
about, as the pages of the API list them, so that it can be shown without another request.
"""

import asyncio
import json
import secrets
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from claude_mem.config import Layout
from claude_mem.errors import NotFound
from claude_mem.store import Store
from claude_mem.store.clock import Clock, now_ms
from claude_mem.store.forgetting import Forgotten
from claude_mem.store.turns import Recorded
from claude_mem.text import shorten
from claude_mem.types import PROMPT, SESSION_END, Distillate, Event, Json, Project, Turn
from claude_mem.worker import session_logging
from claude_mem.worker.activity import Activity

MAX_EVENTS = 5_000
MAX_BYTES = 4 * 1024 * 1024
RESET: dict[str, Json] = {"type": "reset"}

EVENT_TEXT = 300  # longest text of a tool use or message; its memory comes later

News = dict[str, Json]


@dataclass(frozen=True, slots=True)
class Announcement:
    number: int
    cursor: str
    data: bytes  # JSON on one line


class Subscription:
    def __init__(self, feed: "Feed", number: int) -> None:
        self._feed, self._number = feed, number
        self._news = asyncio.Event()

    @property
    def cursor(self) -> str:
        """After the event that it returned last."""
        return self._feed.cursor_of(self._number)

    async def next(self) -> Announcement:
        while (announcement := self._next()) is None:
            await self._news.wait()
        return announcement

    def _next(self) -> Announcement | None:
        self._news.clear()  # before looking: what comes later sets it again
        announcement = self._feed.after(self._number)
        if announcement is not None:
            self._number = announcement.number
        return announcement

    def take_all(self) -> list[dict[str, Any]]:
        """What happened until now."""
        events: list[dict[str, Any]] = []
        while (announcement := self._next()) is not None:
            events.append(json.loads(announcement.data))
        return events

    def notify(self) -> None:
        self._news.set()


class Feed:
    def __init__(self) -> None:
        self._process = secrets.token_hex(4)
        self._lock = threading.Lock()
        self._number = 0
        self._recent: deque[Announcement] = deque()
        self._bytes = 0
        self._subscribers: set[Subscription] = set()
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def listeners(self) -> int:
        return len(self._subscribers)

    @property
    def cursor(self) -> str:
        """After the latest event."""
        return self.cursor_of(self._number)

    def cursor_of(self, number: int) -> str:
        return f"{self._process}-{number}"

    @contextmanager
    def subscribe(self, after: str | None = None) -> Iterator[Subscription]:
        """Begins with the events after this cursor. Call it in the thread of the event loop."""
        self._loop = asyncio.get_running_loop()
        subscription = Subscription(self, self._position(after) if after else self._number)
        self._subscribers.add(subscription)
        try:
            yield subscription
        finally:
            self._subscribers.discard(subscription)

    def _position(self, cursor: str) -> int:
        """-1 for a cursor of another process."""
        process, _, digits = cursor.rpartition("-")
        is_number = digits.isascii() and digits.isdecimal() and len(digits) < 19
        number = int(digits) if is_number and process == self._process else -1
        return number if number <= self._number else -1

    def after(self, number: int) -> Announcement | None:
        """The next event, or a reset if it is not kept any more."""
        with self._lock:
            index = number - (self._number - len(self._recent))
            if index < 0:
                return Announcement(self._number, self.cursor, _json(RESET))
            return self._recent[index] if index < len(self._recent) else None

    def publish(self, event: dict[str, Json]) -> None:
        """Call it from any thread."""
        data = _json(event)
        with self._lock:
            self._number += 1
            self._recent.append(Announcement(self._number, self.cursor, data))
            self._bytes += len(data)
            while len(self._recent) > MAX_EVENTS or self._bytes > MAX_BYTES:
                self._bytes -= len(self._recent.popleft().data)
        self._notify()

    def forget(self) -> None:
        """Drops what is kept: some of it was forgotten, and must not be repeated."""
        with self._lock:
            self._recent.clear()
            self._bytes = 0
        self._notify()

    def _notify(self) -> None:
        if self._subscribers and self._loop is not None:
            self._loop.call_soon_threadsafe(self._notify_all)

    def _notify_all(self) -> None:
        for subscription in self._subscribers:
            subscription.notify()


def _json(event: dict[str, Json]) -> bytes:
    """In UTF-8; half of a surrogate pair, which UTF-8 does not have, becomes a `?`."""
    return json.dumps(event, ensure_ascii=False).encode("utf-8", "replace")


class Announcer:
    """Announces what the worker did: to subscribers of the feed, and in activity.flag."""

    def __init__(self, layout: Layout, store: Store, clock: Clock = now_ms) -> None:
        self._store, self._clock = store, clock
        self.activity = Activity(layout)
        self.feed = Feed()
        self._processing: News = {"type": "processing", "isProcessing": False, "queueDepth": 0}
        self._comparing = threading.Lock()

    def events_recorded(self, recorded: list[tuple[Event, Recorded]]) -> None:
        for event, outcome in recorded:
            session_logging.event_recorded(event, outcome)
        self.activity.update(recorded)
        self.processing()
        stored = [(event, outcome) for event, outcome in recorded if outcome.outcome == "stored"]
        if not stored:
            return
        names = self._store.project_names()
        for event, outcome in stored:
            self.feed.publish(self._event_news(event, outcome, names.get(outcome.project_id, "")))
            if event.kind == SESSION_END:
                self.session_changed(outcome.session_db_id)

    def _event_news(self, event: Event, outcome: Recorded, project: str) -> News:
        prompt = outcome.turn_id if event.kind == PROMPT else None
        prompts = self._store.get_many("prompts", [prompt]) if prompt is not None else []
        return {
            "type": "event",
            "event": event.kind,
            "session_db_id": outcome.session_db_id,
            "content_session_id": event.session_id,
            "project": project,
            "prompt_number": outcome.prompt_number,
            "turn_id": outcome.turn_id,
            "tool_name": event.tool_name,
            "text": shorten(event.prompt or event.tool_input or event.text or "", EVENT_TEXT),
            "created_at_epoch": event.arrived_ms,
            "items": [{**item, "kind": "prompt"} for item in prompts],
        }

    def memory_stored(self, turn: Turn, distillate: Distillate) -> None:
        items = self._store.memories_of_turn(turn.id)
        session_logging.memories_stored(turn, items)
        self.feed.publish({
            "type": "memory",
            "session_db_id": turn.session_db_id,
            "content_session_id": turn.content_session_id,
            "project": turn.project.name,
            "prompt_number": turn.prompt_number,
            "turn_id": turn.id,
            "observations": len(distillate.observations),
            "items": [*items],
        })  # fmt: skip
        self.processing()

    def memory_saved(self, project: Project, observation_id: int) -> None:
        """By a user or an agent, outside a turn."""
        rows = self._store.get_many("observations", [observation_id])
        items: list[Json] = [{**item, "kind": "observation"} for item in rows]
        for item in rows:
            session_logging.observation_stored(str(item["content_session_id"]), item)
        self.feed.publish(
            {"type": "memory", "project": project.name, "observations": 1, "items": items}
        )

    def session_changed(self, session_db_id: int) -> None:
        """It was completed, interrupted or stopped, or it no longer exists."""
        self._end_activity()
        news: News = {"type": "session", "session_db_id": session_db_id}
        try:
            session = self._store.session(session_db_id)
        except NotFound:
            self.feed.publish({**news, "status": "deleted"})
            return
        session_logging.session_ended(session)
        fields = ("content_session_id", "project", "status", "title", "subtitle", "user_prompt",
                  "prompt_counter", "started_at_epoch", "completed_at_epoch")  # fmt: skip
        self.feed.publish({**news, **{name: session[name] for name in fields}})

    def memory_changed(self, project: Project, memory_id: str, action: str, memory: News) -> None:
        """Edited, pinned or marked, by a user or an agent."""
        self.feed.publish({
            "type": "changed",
            "id": memory_id,
            "action": action,
            "project": project.name,
            "items": [memory],
        })  # fmt: skip

    def forgotten(self, forgotten: Forgotten) -> None:
        self.feed.forget()
        self._memories_changed("forgotten", forgotten)

    def forgetting_undone(self, forgotten: Forgotten) -> None:
        self._memories_changed("remembered again", forgotten)

    def _end_activity(self) -> None:
        """Of sessions that are over or gone."""
        working = self.activity.sessions
        rows = {name: self._store.session_by_content_id(name) for name in working}
        over = [name for name, row in rows.items() if row is None or row["status"] != "active"]
        if over:
            self.activity.end(over, self._clock())

    def _memories_changed(self, event_type: str, forgotten: Forgotten) -> None:
        projects: list[Json] = [project.name for project in forgotten.projects]
        counts: News = dict(forgotten.counts)
        self.feed.publish({"type": event_type, "counts": counts, "projects": projects})
        self._end_activity()
        self.processing()

    def set_processing(self, active: bool, ms: int) -> None:
        """As reported by another editor."""
        self.activity.set(active, ms)

    def processing(self) -> News:
        """The current state; published if it is new, so that the feed never says another."""
        with self._comparing:
            queue = self._store.queue_state()
            state: News = {
                "type": "processing",
                "isProcessing": self.activity.is_processing,
                "queueDepth": queue["pending"] + queue["processing"],
            }
            if state != self._processing:
                self._processing = state
                self.feed.publish(state)
            return state
