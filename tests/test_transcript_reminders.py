"""The reminders of a client in its transcripts are removed as any private text is, only faster."""

import json

from hypothesis import example, given
from hypothesis import strategies as st

from claude_mem.hook.private_text import strip_private, with_plain_tags
from claude_mem.intake.transcripts import transcript

PIECES = (
    "<system-reminder>", "</system-reminder>", "< system-reminder>", "</ system-reminder >",
    "<System-Reminder>", "<system-reminder", "<private>", "</private>", "<", ">", "/", "\\", '"',
    "\n", " ", "system-reminder", "a", "é", "\u200b", "&lt;", "<system-<system-reminder>",
    "reminder>", "<pri<system-reminder>x</system-reminder>vate>", "<claude-mem-context>",
)  # fmt: skip
texts = st.lists(st.sampled_from(PIECES), max_size=14).map("".join)


def without_private(line: bytes) -> bytes:
    has_escapes = line.rfind(b"\\u") >= 0 or line.rfind(b"\\U") >= 0
    return transcript._without_private(line, has_escapes)


@given(st.lists(texts, max_size=3), st.booleans())
@example(["a<system-reminder>b\nc</system-reminder>d"], True)
@example(["<system-reminder>", "</system-reminder>"], True)
@example(['<system-reminder>"</system-reminder>'], True)
@example(["<system-reminder>" * 60 + "</system-reminder>" * 60], True)
@example(["<system-reminder>x</system-reminder>" * 130 + "<private>y</private>"], True)
def test_a_line_loses_what_it_loses_otherwise(parts: list[str], ascii_only: bool) -> None:
    value = {"type": "user", "message": {"content": parts}, "toolUseResult": "".join(parts)}
    line = json.dumps(value, ensure_ascii=ascii_only).encode() + b"\n"
    assert without_private(line) == strip_private(line)


@given(texts)
def test_a_line_that_is_not_json_does_too(text: str) -> None:
    line = text.encode()
    assert without_private(line) == strip_private(line)


def hides_private(data: bytes) -> bool:
    """Every chunk, also those in which nothing seems to be disguised."""
    chunk = with_plain_tags(data).lower()
    place = chunk.find(b"private")
    while place >= 0:
        if transcript._BEFORE_PRIVATE.search(chunk, max(0, place - 80), place):
            return True
        place = chunk.find(b"private", place + 1)
    return False


LETTERS = st.sampled_from(
    [*"private<", "\u200b", "\u200c", "\u200d", "\u2060", "\ufeff", "\u00ad", "\\u200b", "\\u00AD",
     "\\\\u200b", "\\ufeff", "\\u2060", "é", "private", "priv", "ate", " "]
)  # fmt: skip


@given(st.lists(LETTERS, max_size=16).map("".join))
@example("<p\u200br\u200ci\u200dv\u2060a\ufefft\u00ade>")
@example("<p\\u200b\\u200crivate>")
@example("<priv\\u00ad\u200bate>")
def test_a_title_is_dropped_where_invisible_characters_hide_a_private_tag(text: str) -> None:
    data = text.encode()
    assert transcript._has_private(data) == hides_private(data)  # type: ignore[arg-type]
