"""What a turn looked into beyond the project's files: tasks of subagents, and the web."""

from collections.abc import Iterator

from claude_mem.observer.local.markdown import without_markup
from claude_mem.text import shorten
from claude_mem.types import ToolUse, Turn

RESEARCH_TOOLS = ("Task", "Agent", "WebSearch", "WebFetch")
MAX_TOPICS, LONGEST_TOPIC = 4, 120
_TOPICS = (("description", "{}"), ("query", "the web for “{}”"), ("url", "{}"))


def research_topics(turn: Turn) -> str:
    """In the agent's own words; empty if it did no research."""
    topics: dict[str, None] = {}
    for event in turn.events:
        is_research = event.kind == "PostToolUse" and event.tool_name in RESEARCH_TOOLS
        if is_research and not event.agent_id:
            topics.update(dict.fromkeys(_topic(event)))
    return "; ".join(list(topics)[:MAX_TOPICS])


def _topic(event: ToolUse) -> Iterator[str]:
    params = event.tool_input if isinstance(event.tool_input, dict) else {}
    for name, template in _TOPICS:
        value = params.get(name)
        if isinstance(value, str) and value.strip():
            yield template.format(shorten(without_markup(value), LONGEST_TOPIC))
            return
