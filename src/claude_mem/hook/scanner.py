r"""Removes what must not be remembered from raw JSON bytes, in linear time and without parsing.

A tag is bounded by the JSON string it stands in: unclosed, it takes the rest of that string and
no more, so the payload stays valid JSON. Tags count in any case, nested, with attributes, and
with any character written as an escape (`\u003cprivate>`, `<\/private>`, `\\u003c` in JSON
inside JSON). When in doubt the text goes: past MAX_TAGS, and for bytes that are not JSON, where
nothing bounds a tag but its end.
"""

NAMES = (
    b"private",
    b"claude-mem-context",
    b"system-reminder",
    b"system_instruction",
    b"persisted-output",
)
MAX_TAGS = 100

_BEGINNINGS = {b"/", b"\\"} | {name[:1] for name in NAMES}  # of what can follow a "<"
_LONGEST = max(len(name) for name in NAMES)
_BACKSLASH, _SLASH, _GREATER = 0x5C, 0x2F, 0x3E
_OUTSIDE_STRINGS = b" \t\r\n{}[],:0123456789+-.Eetrufalsn"
_WHITESPACE_ESCAPES = b"nrtbf"
_HEX = b"0123456789abcdef"


def strip_private(data: bytes) -> bytes:
    """The same bytes without the tags and what they enclose."""
    if b"<" not in data and b"u003" not in data:
        return data
    lowered = data.lower()
    if b"u00" not in lowered and not any(name in lowered for name in NAMES):
        return data
    return _strip(data, lowered, within_strings=_has_json_shape(data))


def _has_json_shape(data: bytes) -> bool:
    """Strings are closed and nothing stands between them that JSON does not allow there."""
    parts = data.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
    return len(parts) % 2 == 1 and not b"".join(parts[::2]).translate(None, _OUTSIDE_STRINGS)


class _Cursor:
    """The next place of a needle at or behind a position that only grows: linear in all."""

    def __init__(self, data: bytes, needle: bytes) -> None:
        self.data, self.needle = data, needle
        self.at = data.find(needle)

    def seek(self, position: int) -> int:
        if 0 <= self.at < position:
            self.at = self.data.find(self.needle, position)
        return self.at


class _Tags:
    """The tags of a text in order, each as (start, end, name, closing)."""

    def __init__(self, lowered: bytes) -> None:
        self.lowered = lowered
        self.literal, self.escaped = _Cursor(lowered, b"<"), _Cursor(lowered, b"u003c")
        self.closers = _Cursor(lowered, b">"), _Cursor(lowered, b"u003e")

    def next_from(self, position: int) -> tuple[int, int, bytes, bool] | None:
        while True:
            literal, escaped = self.literal.seek(position), self.escaped.seek(position)
            if literal < 0 and escaped < 0:
                return None
            if escaped < 0 or 0 <= literal < escaped:
                start, behind = literal, literal + 1
            else:
                start, behind = escaped, escaped + 5
                while start > position and self.lowered[start - 1] == _BACKSLASH:
                    start -= 1
                if start == escaped:  # the letters u003c without a backslash
                    position = behind
                    continue
            if self.lowered[behind : behind + 1] in _BEGINNINGS:
                tag = self._read(start, behind)
                if tag is not None:
                    return tag
            position = behind

    def _read(self, start: int, position: int) -> tuple[int, int, bytes, bool] | None:
        character, position = _decode(self.lowered, position)
        closing = character == _SLASH
        if closing:
            character, position = _decode(self.lowered, position)
        word = bytearray()
        while len(word) <= _LONGEST and (0x61 <= character <= 0x7A or character in b"-_"):
            word.append(character)
            character, position = _decode(self.lowered, position)
        name = bytes(word)
        if name not in NAMES:
            return None
        if character == _GREATER:
            return start, position, name, closing
        if character > 0x20 and character != _SLASH:
            return None
        return start, self._behind_attributes(position), name, closing

    def _behind_attributes(self, position: int) -> int:
        literal, escaped = (cursor.seek(position) for cursor in self.closers)
        found = [at for at in (literal + 1, escaped + 5) if at > position]
        return min(found, default=len(self.lowered) + 1)


def _strip(data: bytes, lowered: bytes, within_strings: bool) -> bytes:
    tags = _Tags(lowered)
    kept: list[bytes] = []
    done = end = seen = 0
    while (tag := tags.next_from(done)) is not None:
        start = tag[0]
        if start >= end:
            end = _string_end(data, start) if within_strings else len(data)
            seen = 0
        kept.append(data[done:start])
        done, seen = _enclosed_end(tags, tag, end, seen)
    kept.append(data[done:])
    return b"".join(kept)


def _enclosed_end(
    tags: _Tags, tag: tuple[int, int, bytes, bool], end: int, seen: int
) -> tuple[int, int]:
    """Where what `tag` opens is over: every name closed again, or the string at its end."""
    depth = dict.fromkeys(NAMES, 0)
    while True:
        _, behind, name, closing = tag
        seen += 1
        if behind > end or seen > MAX_TAGS:
            return end, seen
        if not closing:
            depth[name] += 1
        elif depth[name]:
            depth[name] -= 1
        if not any(depth.values()):
            return behind, seen
        following = tags.next_from(behind)
        if following is None or following[0] >= end:
            return end, seen
        tag = following


def _decode(lowered: bytes, position: int) -> tuple[int, int]:
    """One character, escapes undone, and the position behind it; 0 at the end."""
    end = len(lowered)
    if position >= end:
        return 0, position
    byte = lowered[position]
    if byte != _BACKSLASH:
        return byte, position + 1
    while position < end and lowered[position] == _BACKSLASH:
        position += 1
    if position >= end:
        return 0, position
    byte = lowered[position]
    if byte == 0x75:  # u
        digits = lowered[position + 1 : position + 5]
        if len(digits) == 4 and not digits.translate(None, _HEX):
            character = min(int(digits, 16), 0x7F)
            return character | 0x20 if 0x41 <= character <= 0x5A else character, position + 5
    if byte in _WHITESPACE_ESCAPES:
        return 0x20, position + 1
    return byte, position + 1


def _string_end(data: bytes, position: int) -> int:
    """The closing quote of the string that `position` is in."""
    while True:
        quote = data.find(b'"', position)
        if quote < 0:
            return len(data)
        run = quote
        while run > position and data[run - 1] == _BACKSLASH:
            run -= 1
        if (quote - run) % 2 == 0:
            return quote
        position = quote + 1
