"""The title that the client gave a session, from lines that are not part of the conversation.

A `custom-title` is the user's and counts before an `ai-title`, and that before a `summary`. A
`summary` names the last message it covers: many are about other sessions of the project. The bytes
of the file are searched from the end, because the client repeats such lines and the last counts.
"""

import json
import mmap
import os
import re
from collections.abc import Iterator
from pathlib import Path

from claude_mem.hook.private_text import strip_private, with_visible_names
from claude_mem.intake.transcripts.transcript import Payload, open_regular_file
from claude_mem.redaction import Redactor
from claude_mem.text import one_line, shorten
from claude_mem.types import SessionTitle

LONGEST_TITLE = 120
MAX_LINES = 200  # of one kind, from the end
LONGEST_LINE = 10_000
_TITLES = (("custom-title", "customTitle", True), ("ai-title", "aiTitle", False))
# A client's model may have put into the title what the user marked as private.
_BEFORE_PRIVATE = re.compile(rb"(?:<|u003c|&lt;|uff1c|\xef\xbc\x9c)[\s\\/]{0,8}\Z")
CHUNK, _OVERLAP = 1024 * 1024, 80  # longer than a tag whose characters are escaped


def session_title(path: Path, session_id: str, redactor: Redactor) -> SessionTitle | None:
    """None where there is no title, or where some of the session is private."""
    with open_regular_file(path) as file:
        if os.fstat(file.fileno()).st_size == 0:
            return None
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            title = _last_title(data, session_id)
            if title is None or _has_private(data):
                return None
    text = shorten(one_line(redactor.redact(title.text)), LONGEST_TITLE)
    return SessionTitle(text, title.by_user) if text else None


def _has_private(data: mmap.mmap) -> bool:
    """Word by word, as that is much faster than a pattern that matches any case."""
    for start in range(0, len(data), CHUNK):
        chunk = with_visible_names(data[max(0, start - _OVERLAP) : start + CHUNK].lower())
        place = chunk.find(b"private")
        while place >= 0:
            if _BEFORE_PRIVATE.search(chunk, max(0, place - _OVERLAP), place):
                return True
            place = chunk.find(b"private", place + 1)
    return False


def _last_title(data: mmap.mmap, session_id: str) -> SessionTitle | None:
    has_title = data.rfind(b'-title"') >= 0  # most files have none: one search for both
    for kind, field, by_user in _TITLES if has_title else ():
        for line in _lines_from_end(data, kind):
            if line.get("sessionId") == session_id:
                text = line.get(field)
                if isinstance(text, str) and text.strip():
                    return SessionTitle(text, by_user)
                break  # the user removed it
    for line in _lines_from_end(data, "summary"):
        text, leaf = line.get("summary"), line.get("leafUuid")
        if isinstance(text, str) and text.strip() and _has_message(data, leaf):
            return SessionTitle(text, by_user=False)
    return None


def _lines_from_end(data: mmap.mmap, kind: str) -> Iterator[Payload]:
    end, mark = len(data), json.dumps(kind).encode()
    for _ in range(MAX_LINES):
        position = data.rfind(mark, 0, end)
        if position < 0:
            return
        start = data.rfind(b"\n", 0, position) + 1
        stop = data.find(b"\n", position)
        line = data[start : stop if stop >= 0 else len(data)]
        end = start
        if len(line) <= LONGEST_LINE and (value := _parsed(line, kind)) is not None:
            yield value


def _parsed(line: bytes, kind: str) -> Payload | None:
    try:
        value = json.loads(strip_private(line))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and value.get("type") == kind else None


def _has_message(data: mmap.mmap, uuid: object) -> bool:
    if not isinstance(uuid, str):
        return False
    quoted = json.dumps(uuid).encode()
    return data.find(b'"uuid":' + quoted) >= 0 or data.find(b'"uuid": ' + quoted) >= 0
