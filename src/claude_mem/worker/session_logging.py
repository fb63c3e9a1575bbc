"""What the log says of a session: each stored memory, and at debug each step of each event.

Every line has `session ID:`, by which `claude-mem worker logs --session` finds it; redaction would
take `session=ID` for a cookie. An event is named by the beginning of its key, from the record that
its hook wrote to the memories that it became.
"""

import logging
from collections.abc import Iterable

from claude_mem.store.clock import iso
from claude_mem.store.memory_rows import JsonRow
from claude_mem.store.turns import Recorded
from claude_mem.text import one_line, pluralize, shorten
from claude_mem.types import Event, Turn

log = logging.getLogger("claude_mem.events")

ID_LENGTH = 12
_TITLE = 120


def session_mark(content_session_id: str) -> str:
    """Marks a session as it stands in each line about it."""
    return f"session {one_line(content_session_id)}: "


def event_recorded(event: Event, recorded: Recorded) -> None:
    if log.isEnabledFor(logging.DEBUG):
        log.debug(
            "%sevent=%s %s %scaptured %s by %s: %s, prompt %s, turn %s",
            session_mark(event.session_id),
            event.key[:ID_LENGTH],
            event.kind,
            f"{event.tool_name} " if event.tool_name else "",
            iso(event.arrived_ms),
            event.dialect,
            recorded.outcome,
            recorded.prompt_number,
            recorded.turn_id,
        )


def turn_step(turn: Turn, step: str) -> None:
    if log.isEnabledFor(logging.DEBUG):
        keys = ",".join(event.key[:ID_LENGTH] for event in turn.events if event.key)
        mark = session_mark(turn.content_session_id)
        log.debug(
            "%sevents=%s turn %d, prompt %d: %s", mark, keys, turn.id, turn.prompt_number, step
        )


def memories_stored(turn: Turn, items: Iterable[JsonRow]) -> None:
    """Logs in turn_step's line the ids of all memories, so that an event leads to its memories."""
    items = list(items)
    ids = [f"{'S' if item['kind'] == 'summary' else '#'}{item['id']}" for item in items]
    turn_step(turn, f"stored as {', '.join(ids) or 'nothing'}")
    for item in items:
        if item["kind"] == "observation":
            observation_stored(turn.content_session_id, item)
        elif item["kind"] == "summary":
            title = shorten(one_line(str(item["request"] or "")), _TITLE)
            mark = session_mark(turn.content_session_id)
            log.info("%ssummary S%s stored: %s", mark, item["id"], title)


def session_ended(session: JsonRow) -> None:
    started, ended = session["started_at_epoch"], session["completed_at_epoch"]
    if isinstance(started, int) and isinstance(ended, int):
        log.info(
            "%ssession %s %s after %d s with %s",
            session_mark(str(session["content_session_id"])),
            session["id"],
            session["status"],
            (ended - started) // 1000,
            pluralize(int(str(session["prompt_counter"])), "prompt"),
        )


def observation_stored(content_session_id: str, item: JsonRow) -> None:
    title = shorten(one_line(str(item["title"] or "")), _TITLE)
    mark = session_mark(content_session_id)
    log.info("%sobservation #%s stored (%s): %s", mark, item["id"], item["type"], title)
