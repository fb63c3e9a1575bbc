"""The fence around recalled text: it is data, and nothing in it can open or close a fence."""

import re

from claude_mem.hook.private_text import NAMES

FENCE = "claude-mem-context"
_FENCES = re.compile(rf"<(?=[\s/]*(?:{'|'.join(name.decode() for name in NAMES)}))", re.IGNORECASE)


def fenced(*lines: str) -> str:
    """Lines that are escaped already, between the tags."""
    return "\n".join((f"<{FENCE}>", *lines, f"</{FENCE}>"))


def escape_fences(text: str) -> str:
    """Replaces the bracket of our tags and the client's; other markup and code stay as they are."""
    return _FENCES.sub("‹", text)
