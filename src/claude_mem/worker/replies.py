"""What a hook prints for the agent that runs it: context for the agent, a line for the user."""

import json

from claude_mem.hook import other_agents
from claude_mem.types import Json

CLAUDE = other_agents.CLAUDE.decode()


def reply(dialect: str, event: str, context: str, message: str = "") -> dict[str, Json]:
    """No two agents take quite the same JSON."""
    if dialect in (CLAUDE, "http"):
        return _claude_reply(event, context, message)
    line = other_agents.line(
        dialect.encode("utf-8", "replace"), event.encode(), _literal(context), _literal(message)
    )
    value: dict[str, Json] = json.loads(line)
    return value


def _literal(text: str) -> bytes:
    """As UTF-8: escapes would count against the limit of an agent."""
    return json.dumps(text, ensure_ascii=False).encode("utf-8", "replace") if text else b""


def _claude_reply(event: str, context: str, message: str) -> dict[str, Json]:
    line: dict[str, Json] = {"continue": True, "suppressOutput": True}
    if context:
        line["hookSpecificOutput"] = {"hookEventName": event, "additionalContext": context}
    if message:
        line["systemMessage"] = message
    return line
