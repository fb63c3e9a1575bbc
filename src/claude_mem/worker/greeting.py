"""The line for the user at the start of a session: what the agent was given, in few words."""

from datetime import datetime, tzinfo

from claude_mem.recall.fence import escape_fences
from claude_mem.store import StoreReader
from claude_mem.store.listing import JsonRow
from claude_mem.text import one_line, shorten

MAX_SESSIONS = 12
_SHOWN = 40  # characters by which a text is recognised in the context

_ON = "claude-mem: memory is on."
_LOOK = "To look at it: claude-mem open."
_NOTHING_YET = (
    f"{_ON} The next session will know what this one did. {_LOOK}"
    " Tip: text inside <private></private> is never stored."
)


def greeting(
    store: StoreReader,
    project_id: int,
    session_id: str,
    context: str,
    *,
    has_hints: bool,
    zone: tzinfo | None = None,
) -> str:
    """Empty for a session that was given nothing and is not the first of all."""
    if store.is_first_session(session_id):
        return _welcome(store)
    earlier = store.recent_sessions(project_id, MAX_SESSIONS, session_id)
    if context and earlier:
        parts = [*_sessions(earlier, context, zone), *_rules(store, project_id, context)]
        hints = _hints(store, str(earlier[0]["content_session_id"])) if has_hints else ""
        return f"claude-mem: the agent got {', '.join(parts)}{hints}"
    return ""


def _welcome(store: StoreReader) -> str:
    """To the first session after the installation, which may have imported others."""
    counts = store.remembered_counts()
    if not counts.sessions:
        return _NOTHING_YET
    return (
        f"{_ON} It covers {_count(counts.sessions, 'earlier session')} in"
        f" {_count(counts.projects, 'project')}. {_LOOK}"
        " Tip: ask about earlier work in your own words, the agent can search all of it."
    )


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _sessions(earlier: list[JsonRow], context: str, zone: tzinfo | None) -> list[str]:
    last, *before = earlier
    moment = datetime.fromtimestamp(int(str(last["updated_at_epoch"])) / 1000, zone)
    shown = sum(_is_in(context, session["title"]) for session in before)
    parts = [f"the last session ({moment.day} {moment:%b})"]
    return [*parts, f"{shown} earlier"] if shown else parts


def _rules(store: StoreReader, project_id: int, context: str) -> list[str]:
    rules = store.facts(project_id, ("rule",), ("holds",))
    shown = sum(_is_in(context, rule.value) for rule in rules)
    return [f"{shown} {'rule' if shown == 1 else 'rules'}"] if shown else []


def _hints(store: StoreReader, last_session: str) -> str:
    count = store.count_hints(last_session)
    return f"; hints are on ({count} last time)" if count else "; hints are on"


def _is_in(context: str, text: object) -> bool:
    start = shorten(escape_fences(one_line(str(text or ""))), _SHOWN).rstrip("…")
    return bool(start) and start in context
