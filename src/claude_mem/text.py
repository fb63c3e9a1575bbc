"""Text made to fit: shortened, on one line, without control characters; counts and times."""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TypeVar

Name = TypeVar("Name", bound=str)

# Escape sequences of terminals, control characters but tab and newline, and lone surrogates.
_CONTROLS = re.compile("\x1b\\[[0-?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
# Characters that cannot be seen: directions, zero width, tags, fillers.
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]"
)
_JOINERS = re.compile("[\u200c\u200d]++")
QUESTION_MARKS = ("?", "？", "؟")
COLONS = (":", "：")
NO_MEMORIES = "No memories yet. Recording starts with the first session after claude-mem install."


def shorten(text: str, limit: int) -> str:
    """Shortens a text to `limit` characters; a longer text ends at a word, with an ellipsis."""
    text = text.strip()
    if len(text) <= limit:
        return text
    head = text[: limit - 1]
    space = head.rfind(" ")
    return (head[:space] if space > limit // 2 else head).rstrip(" ,;:—–-(") + "…"


def shorten_middle(text: str, limit: int, head_share: float = 0.75) -> str:
    """Shortens a text to `limit` characters: head and tail, with a note of what is missing."""
    if len(text) <= limit:
        return text
    note = f"\n[… {len(text) - limit} characters cut …]\n"
    length = max(0, limit - len(note))
    head = int(length * head_share)
    tail = length - head
    return text[:head] + note + (text[-tail:] if tail else "")


def one_line(text: str) -> str:
    return " ".join(text.split())


def without_controls(text: str) -> str:
    """Safe to print and to store: a memory may hold what a program wrote to its terminal, or text
    that a reader cannot see."""
    text = _CONTROLS.sub("", text)
    if text.isascii():
        return text
    return _JOINERS.sub(_one_joiner, _INVISIBLE.sub("", text))


def _one_joiner(run: re.Match[str]) -> str:
    """Keeps one joiner between letters of the scripts that need it, and in emoji."""
    start, end = run.span()
    before, after = run.string[max(0, start - 1) : start], run.string[end : end + 1]
    is_needed = before and after and not before.isascii() and not after.isascii()
    return run[0][0] if is_needed else ""


def pluralize(count: object, noun: str) -> str:
    return f"{count} {noun if count == 1 else plural(noun)}"


def plural(noun: str) -> str:
    """Returns the plural of the last word."""
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}es" if noun.endswith(("s", "x", "ch", "sh")) else f"{noun}s"


def spellings(choices: Iterable[Name]) -> dict[str, Name]:
    """Each choice by its name and by the plural of it."""
    choices = tuple(choices)
    return {plural(name): name for name in choices} | {str(name): name for name in choices}


def format_counts(counts: Mapping[str, object]) -> str:
    """Writes {"pending": 2, "dead": 0} as "2 pending"."""
    return ", ".join(f"{count} {name}" for name, count in counts.items() if count) or "empty"


def format_pairs(pairs: Sequence[tuple[str, object]]) -> list[str]:
    """Names and values in two columns."""
    width = max((len(name) for name, _ in pairs), default=0)
    return [f"{name.ljust(width)}  {value}" for name, value in pairs]


def local_time(ms: object) -> str:
    if not isinstance(ms, int):
        return ""
    return datetime.fromtimestamp(ms / 1000).astimezone().strftime("%Y-%m-%d %H:%M")
