"""Announces what the worker did: to subscribers of live events, in the log of the session, and in
activity.flag."""

import threading

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
from claude_mem.worker.live_events import LiveEvents

EVENT_TEXT = 300  # longest text of a tool use or message; its memory comes later

LiveEvent = dict[str, Json]


class Announcer:
    def __init__(self, layout: Layout, store: Store, clock: Clock = now_ms) -> None:
        self._store, self._clock = store, clock
        self.activity = Activity(layout)
        self.live_events = LiveEvents()
        self._processing: LiveEvent = {"type": "processing", "isProcessing": False, "queueDepth": 0}
        self._comparing = threading.Lock()

    def events_recorded(self, recorded: list[tuple[Event, Recorded]]) -> None:
        for event, outcome in recorded:
            session_logging.event_recorded(event, outcome)
        self.activity.update(recorded)
        self.processing()
        stored = [(event, outcome) for event, outcome in recorded if outcome.outcome == "stored"]
        names = self._store.project_names() if stored and self.live_events.is_followed else {}
        for event, outcome in stored:
            if self.live_events.is_followed:
                project = names.get(outcome.project_id, "")
                self.live_events.publish(self._recorded_event(event, outcome, project))
            if event.kind == SESSION_END:
                self.session_changed(outcome.session_db_id)

    def _recorded_event(self, event: Event, outcome: Recorded, project: str) -> LiveEvent:
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
        self.live_events.publish({
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
        """Announces a memory that a user or an agent saved, outside a turn."""
        rows = self._store.get_many("observations", [observation_id])
        items: list[Json] = [{**item, "kind": "observation"} for item in rows]
        for item in rows:
            session_logging.observation_stored(str(item["content_session_id"]), item)
        self.live_events.publish(
            {"type": "memory", "project": project.name, "observations": 1, "items": items}
        )

    def session_changed(self, session_db_id: int) -> None:
        """Announces that a session was completed, interrupted or stopped, or no longer exists."""
        self._end_activity()
        event: LiveEvent = {"type": "session", "session_db_id": session_db_id}
        try:
            session = self._store.session(session_db_id)
        except NotFound:
            self.live_events.publish({**event, "status": "deleted"})
            return
        session_logging.session_ended(session)
        fields = ("content_session_id", "project", "status", "title", "subtitle", "user_prompt",
                  "prompt_counter", "started_at_epoch", "completed_at_epoch")  # fmt: skip
        self.live_events.publish({**event, **{name: session[name] for name in fields}})

    def memory_changed(
        self, project: Project, memory_id: str, action: str, memory: LiveEvent
    ) -> None:
        """Announces that a user or an agent edited, pinned or marked a memory."""
        self.live_events.publish({
            "type": "changed",
            "id": memory_id,
            "action": action,
            "project": project.name,
            "items": [memory],
        })  # fmt: skip

    def forgotten(self, forgotten: Forgotten) -> None:
        self.live_events.forget()
        self._memories_changed("forgotten", forgotten)

    def forgetting_undone(self, forgotten: Forgotten) -> None:
        self._memories_changed("restored", forgotten)

    def _end_activity(self) -> None:
        """Ends the activity of sessions that are over or gone."""
        working = self.activity.sessions
        rows = {name: self._store.session_by_content_id(name) for name in working}
        over = [name for name, row in rows.items() if row is None or row["status"] != "active"]
        if over:
            self.activity.end(over, self._clock())

    def _memories_changed(self, event_type: str, forgotten: Forgotten) -> None:
        projects: list[Json] = [project.name for project in forgotten.projects]
        counts: LiveEvent = dict(forgotten.counts)
        self.live_events.publish({"type": event_type, "counts": counts, "projects": projects})
        self._end_activity()
        self.processing()

    def set_processing(self, active: bool, ms: int) -> None:
        """Sets the activity as another editor reports it."""
        self.activity.set(active, ms)

    def processing(self) -> LiveEvent:
        """The current state; published if it is new, so that the live events never say another."""
        with self._comparing:
            queue = self._store.queue_state()
            state: LiveEvent = {
                "type": "processing",
                "isProcessing": self.activity.is_processing,
                "queueDepth": queue["pending"] + queue["processing"],
            }
            if state != self._processing:
                self._processing = state
                self.live_events.publish(state)
            return state
