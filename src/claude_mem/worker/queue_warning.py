"""Whether the worker falls behind: for /health, doctor and the user."""

from claude_mem.text import pluralize

WARN_TURNS = 200
WARN_SECONDS = 3600


def queue_warning(waiting: int, oldest_seconds: float | None) -> str:
    """Returns the warning; empty while the turns that wait to be summarised are few and new."""
    hours = int((oldest_seconds or 0) // 3600)
    if waiting < WARN_TURNS and (oldest_seconds or 0) < WARN_SECONDS:
        return ""
    age = f", the oldest for {pluralize(hours, 'hour')}" if hours else ""
    return f"{pluralize(waiting, 'turn')} waiting to be summarised{age}"
