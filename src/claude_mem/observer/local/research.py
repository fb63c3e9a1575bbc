"""What a turn looked into beyond the project's files: what subagents were sent for, and the web."""

from collections.abc import Iterator

from claude_mem.observer.local.passages import plain
from claude_mem.text import shorten
from claude_mem.types import ToolUse, Turn

SENT_FOR = ("Task", "Agent", "WebSearch", "WebFetch")
MOST, LONGEST = 4, 120


def looked_into(turn: Turn) -> str:
    """In the words that the agent used for it; empty where it sent for nothing."""
    found: dict[str, None] = {}
    for event in turn.events:
        if event.kind == "PostToolUse" and event.tool_name in SENT_FOR and not event.agent_id:
            found.update(dict.fromkeys(_errands(event)))
    return "; ".join(list(found)[:MOST])


def _errands(event: ToolUse) -> Iterator[str]:
    given = event.tool_input if isinstance(event.tool_input, dict) else {}
    for name, told in (("description", "{}"), ("query", "the web for “{}”"), ("url", "{}")):
        value = given.get(name)
        if isinstance(value, str) and value.strip():
            yield told.format(shorten(plain(value), LONGEST))
            return
