"""What the user sees at the start of a session: a welcome, then what the agent was given.

Claude Code shows it in grey behind `SessionStart:startup says: `, keeps line breaks, indents every
line by five columns and renders no Markdown. So the welcome has lines that fit a terminal of 80
columns, and no markup or colours: other clients would show their codes.
"""

from datetime import datetime, tzinfo

from claude_mem.recall.context import EARLIER_SESSIONS, count_lines
from claude_mem.recall.fence import escape_fences
from claude_mem.store import StoreReader
from claude_mem.store.json_rows import JsonRow
from claude_mem.store.listing import RememberedCounts
from claude_mem.text import one_line, shorten

MAX_SESSIONS = 12
_SHOWN = 40  # characters by which a text is recognised in the context

FIRST_LINE_WIDTH, LINE_WIDTH = 48, 75  # that Claude Code leaves of 80 columns

_ON = "claude-mem: memory is on."
_LOOK = "To look at it: claude-mem open"
NOTHING_YET = f"""\
{_ON}
The next session will know this one. {_LOOK}
Tip: text inside <private></private> is never stored."""
_COVERED = f"""\
{_ON}
{{sessions}} in {{projects}} remembered. {_LOOK}
Tip: ask about earlier work in your own words, the agent can search it."""


def greeting(
    store: StoreReader,
    project_id: int,
    session_id: str,
    context: str,
    *,
    has_hints: bool,
    zone: tzinfo | None = None,
) -> str:
    """Empty for a session that was given nothing."""
    earlier = store.recent_sessions(project_id, MAX_SESSIONS, session_id)
    if context and earlier:
        parts = [*_sessions(earlier, context, zone), *_rules(store, project_id, context)]
        hints = _hints(store, str(earlier[0]["content_session_id"])) if has_hints else ""
        return f"claude-mem: the agent got {', '.join(parts)}{hints}"
    return ""


def welcome(counts: RememberedCounts) -> str:
    """To the first session after the installation that can show it. Others may be imported."""
    if not counts.sessions:
        return NOTHING_YET
    sessions, projects = _count(counts.sessions, "session"), _count(counts.projects, "project")
    return _COVERED.format(sessions=sessions, projects=projects)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _sessions(earlier: list[JsonRow], context: str, zone: tzinfo | None) -> list[str]:
    moment = datetime.fromtimestamp(int(str(earlier[0]["updated_at_epoch"])) / 1000, zone)
    shown = count_lines(context, EARLIER_SESSIONS)
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
