"""The fence around recalled text: it is data, and nothing in it can open or close a fence."""

import re
import unicodedata

from claude_mem.hook.private_text import NAMES
from claude_mem.text import without_controls

FENCE = "claude-mem-context"
# After a line with words of tools, files, web pages or subagents. Nothing in a text can forge its
# absence, and a forged mark only warns.
OUTSIDE_KINDS = ("report",)  # parts of a record
OUTSIDE_MARK = " [outside]"
OUTSIDE_NOTE = " [outside]: has words of tools, files, web pages or subagents; nobody checked them."
# Tags that mean something to an agent.
_TAG = re.compile(
    rf"(?:{'|'.join(name.decode() for name in NAMES)}|claude-mem|antml|local-command-)"
    r"|(?:function_calls|function_results|command-(?:name|message|args)|task-notification|system"
    r"|user-prompt-submit-hook|tool_use_error|bash-(?:input|stdout|stderr))(?![\w-])"
)
_OPENING = re.compile(r"<(?=([\s/／]*[^\s<>]{1,80}))")
_JOINERS = str.maketrans("", "", "\u200c\u200d")
_BRACKETS = str.maketrans("＜﹤", "‹‹")  # normalisation would make "<" of them


def fenced(*lines: str) -> str:
    """Lines that are escaped already, between the tags."""
    return "\n".join((f"<{FENCE}>", *lines, f"</{FENCE}>"))


def escape_fences(text: str) -> str:
    """Replaces the bracket of tags that an agent would heed; other markup and code stay as they
    are. What cannot be seen is removed first: it could part a tag that a later step puts together.
    """
    return _OPENING.sub(_escape, without_controls(text).translate(_BRACKETS))


def escape_block(text: str) -> str:
    """Several lines that cannot be taken for lines of another memory: they are indented."""
    return "\n  ".join(escape_fences(text).splitlines())


def _escape(opening: re.Match[str]) -> str:
    name = unicodedata.normalize("NFKC", opening[1].translate(_JOINERS)).lower().lstrip("/ \t\n")
    return "‹" if _TAG.match(name) else "<"
