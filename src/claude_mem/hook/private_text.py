r"""Removes private sections from raw JSON bytes, in linear time and without parsing.

A section begins at an opening tag and ends where every tag opened in it is closed. Tags may be in
any case, nested, with attributes and with spaces (`< private >`, a no-break space), and any of
their characters may be escaped (`\u003cprivate>`, `<\/private>`, `\\u003c` in JSON inside JSON).
Their brackets may be full-width, of HTML (`&lt;`, `&#60;`, `&amp;lt;`), of a URL (`%3C`) or of
source code (`\x3c`), and `private` may have invisible characters in it or around it.

A section that its string does not close reaches through the strings after it, keys and numbers
included, to its closing tag or to the end of the value: a member of the top-level object, else the
document. Strings become empty and numbers 0, so the payload stays valid JSON; words of the
client's own format stay, so that the blocks after the section can still be read.

When in doubt the text goes: after MAX_SECTIONS in a string, and in bytes that are not JSON, where
only a closing tag ends a section.
"""

NAMES = (
    b"private",
    b"claude-mem-context",
    b"system-reminder",
    b"system_instruction",
    b"persisted-output",
)
MAX_SECTIONS = 100  # in one string
# A member of a payload from which text of the user was removed: a prompt that is empty now was
# private, any other empty prompt is an image or has only words of the client.
MARK = "claude_mem_private"

_LONGEST_NAME = max(len(name) for name in NAMES)
_BACKSLASH, _SLASH, _GREATER, _SPACE, _OTHER = 0x5C, 0x2F, 0x3E, 0x20, 0x7F
_QUOTE, _COMMA, _MINUS, _ZERO = 0x22, 0x2C, 0x2D, 0x30
_OUTSIDE_STRINGS = b" \t\r\n{}[],:0123456789+-.Eetrufalsn"
_WHITESPACE_ESCAPES = b"nrtbfv"
_DIGITS = b"0123456789"
_HEX = b"0123456789abcdef"
_SPACES = frozenset(
    chr(code).encode()
    for code in (0x85, 0xA0, 0xAD, 0x1680, 0x180E, *range(0x2000, 0x2010), *range(0x2028, 0x2030),
                 *range(0x205F, 0x2065), 0x3000, 0xFEFF)
)  # fmt: skip
# What can follow a "<": anything else is no tag, which is quickly seen.
_BEGINNINGS = frozenset(
    [b"/", b"\\", b" ", b"\t", b"\n", b"\r"]
    + [name[:1] for name in NAMES]
    + [space[:1] for space in _SPACES]
)
_FORMAT_WORDS = frozenset((
    b"type", b"text", b"content", b"role", b"user", b"assistant", b"message", b"id", b"name",
    b"input", b"tool_use", b"tool_result", b"tool_use_id", b"is_error", b"thinking", b"image",
    b"lines", b"oldStart", b"oldLines", b"newStart", b"newLines", b"structuredPatch", b"stdout",
    b"stderr", b"interrupted", b"isImage", b"file", b"filePath", b"numLines", b"startLine",
    b"totalLines", b"usage", b"stop_reason",
))  # fmt: skip

# Other spellings of brackets and slashes, as web forms, URLs and source code have them.
_OPENERS = (
    "\uff1c".encode(), "\ufe64".encode(), b"\\uff1c", b"\\ufe64",
    b"&lt", b"&#60", b"&#060", b"&#x3c", b"&#x003c", b"&amp;lt", b"%3c", b"%253c", b"\\x3c",
)  # fmt: skip
_CLOSERS = (
    b">", "\uff1e".encode(), "\ufe65".encode(), b"\\uff1e", b"\\ufe65",
    b"&gt;", b"&#62;", b"&#062;", b"&#x3e;", b"&#x003e;", b"&amp;gt;", b"%3e", b"%253e", b"\\x3e",
)  # fmt: skip
_SLASHES = (
    b"&#47;", b"&#x2f;", b"&sol;", b"%2f", b"%252f", b"x2f", "\uff0f".encode(), b"uff0f",
)  # fmt: skip
# Characters that cannot be seen: zero width, directions, fillers, variation selectors and tags.
_INVISIBLE = (
    0xAD, 0x34F, 0x61C, 0x115F, 0x1160, 0x17B4, 0x17B5, *range(0x180B, 0x1810),
    *range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2070), 0x3164,
    *range(0xFE00, 0xFE10), 0xFEFF, 0xFFA0, *range(0xE0000, 0xE0200),
)  # fmt: skip
# Beginnings of their bytes (those of E2 80 are common, so these are whole), each with its byte that
# few other characters have: a byte is found in a tenth of the time.
_INVISIBLE_MARKS = (
    *((chr(code).encode()[-1:], chr(code).encode())
      for code in (*range(0x200B, 0x2010), *range(0x202A, 0x202F))),
    (b"\x81", b"\xe2\x81"), (b"\xb8", b"\xef\xb8"), (b"\xbf", b"\xef\xbb\xbf"),
    (b"\xf3", b"\xf3\xa0"),
    (b"\xc2", b"\xc2\xad"), (b"\xcd", b"\xcd\x8f"), (b"\xd8", b"\xd8\x9c"), (b"\xe1", b"\xe1\x85"),
    (b"\xe1", b"\xe1\x9e"), (b"\xe1", b"\xe1\xa0"), (b"\xe3", b"\xe3\x85\xa4"),
    (b"\xef", b"\xef\xbe\xa0"),
)  # fmt: skip
_HIGH_SURROGATE = b"db40"  # of tags and of more variation selectors
_ESCAPED = frozenset((*(b"%04x" % code for code in _INVISIBLE), _HIGH_SURROGATE))
_NOT_ASCII = bytes(range(128, 256))
_LONGEST_SLASH = 20  # with spaces
_LONGEST_TAG = 200  # with its attributes, where its brackets are disguised

Tag = tuple[int, int, bytes, bool]  # start, end, name, closing


def strip_private(data: bytes) -> bytes:
    """The same bytes without private sections."""
    return strip_and_tell(data)[0]


def strip_payload(data: bytes) -> bytes:
    """Removes private text from a JSON object, and marks it if some of that was the user's."""
    clean, had_private = strip_and_tell(data)
    if not had_private:
        return clean
    head, brace, rest = clean.partition(b"{")
    if head.strip() or not brace:
        return clean
    comma = b"" if rest.lstrip()[:1] == b"}" else b","
    return b'%s{"%s":true%s%s' % (head, MARK.encode(), comma, rest)


def strip_and_tell(data: bytes) -> tuple[bytes, bool]:
    """Removes private text; also returns whether some was the user's, and not only the client's."""
    has_escapes = b"\\u" in data
    if has_escapes or not data.isascii():
        data = _with_visible_names(data)
    has_others = has_escapes or may_be_disguised(data)
    if not has_others and b"<" not in data and b"u003" not in data:
        return data, False
    lowered = data.lower()
    has_names = any(name in lowered for name in NAMES)
    if has_others and has_names:
        data = _with_plain_brackets(data, lowered)
        lowered = data.lower()
    if not has_names and b"u00" not in lowered:
        return data, False
    return _strip(data, lowered, is_json=_has_json_shape(data))


def with_plain_tags(data: bytes) -> bytes:
    """Spells brackets and names of tags plainly; all other text stays as it is."""
    data = _with_visible_names(data)
    return _with_plain_brackets(data, data.lower())


def may_be_disguised(data: bytes) -> bool:
    """Whether brackets may be spelled in another way, or a name may hide invisible characters."""
    return (
        not data.isascii()
        or b"&" in data
        or (b"%" in data and (b"%3" in data or b"%253" in data))
        or b"\\x3" in data
    )


def _with_visible_names(data: bytes) -> bytes:
    """Removes invisible characters where one of them is in "private" or next to it."""
    if b"\\u" in data:
        data = _without_invisible_escapes(data)
    if data.isascii():
        return data
    for byte, mark in _INVISIBLE_MARKS:
        if byte in data and mark in data:
            break
    else:
        return data
    if NAMES[0] not in data.translate(None, _NOT_ASCII).lower():
        return data
    text = data.decode("utf-8", "surrogateescape").translate(dict.fromkeys(_INVISIBLE))
    visible = text.encode("utf-8", "surrogateescape")
    return data if _has_same_names(visible.lower(), data.lower()) else visible


def _without_invisible_escapes(data: bytes) -> bytes:
    if not any(escape[:4].lower() in _ESCAPED for escape in data.split(b"\\u")[1:]):
        return data
    visible = data.replace(b"\\\\", b"\0")  # a backslash is no beginning of an escape
    first, *escapes = visible.split(b"\\u")
    pieces = [first]
    after_high = False
    for escape in escapes:
        code = escape[:4].lower()
        is_low = after_high and code[:2] in (b"dc", b"dd")
        pieces.append(escape[4:] if is_low or code in _ESCAPED else b"\\u" + escape)
        after_high = escape.lower() == _HIGH_SURROGATE
    visible = b"".join(pieces).replace(b"\0", b"\\\\")
    return data if _has_same_names(visible.lower(), data.lower()) else visible


def _has_same_names(visible: bytes, lowered: bytes) -> bool:
    """Whether each "private" is there already, next to the same characters."""
    name = NAMES[0]
    place, done = visible.find(name), 0
    while place >= 0:
        end = place + len(name)
        before = 2 if visible[place - 1 : place] == b"/" else 1
        done = lowered.find(visible[max(0, place - before) : end + 1], done) + 1
        if not done:
            return False
        place = visible.find(name, end)
    return True


def _with_plain_brackets(data: bytes, lowered: bytes) -> bytes:
    """Replaces other brackets with which a tag may begin; all other text stays as it is."""
    for opener in _OPENERS:
        if opener in lowered:
            data = _with_plain_bracket(data, lowered, opener)
            lowered = data.lower()
    return data


def _with_plain_bracket(data: bytes, lowered: bytes, opener: bytes) -> bytes:
    pieces: list[bytes] = []
    position = 0
    while (start := lowered.find(opener, position)) >= 0:
        behind = start + len(opener)
        if opener[:1] == b"&" and lowered[behind : behind + 1] == b";":
            behind += 1
        name, slash = _skip_slash(lowered, behind)
        if not lowered.startswith(NAMES, name):
            pieces.append(data[position:behind])
            position = behind
            continue
        while opener[0] == _BACKSLASH and start > position and data[start - 1] == _BACKSLASH:
            start -= 1  # in JSON inside JSON
        pieces += (data[position:start], b"<", slash or data[behind:name])
        end, closer = _nearest(lowered, _CLOSERS, name, name + _LONGEST_TAG)
        pieces += (data[name:end].rstrip(b"\\"), b">" if closer else b"")
        position = end + len(closer)
    return b"".join(pieces) + data[position:]


def _skip_slash(lowered: bytes, position: int) -> tuple[int, bytes]:
    """Returns where the name begins, and a slash if one is spelled in another way."""
    slash = b""
    end = position + _LONGEST_SLASH
    while position < end:
        if lowered[position : position + 1] in (b" ", b"/", b"\\"):
            position += 1
        elif match := next((s for s in _SLASHES if lowered.startswith(s, position)), b""):
            position += len(match)
            slash = b"/"
        else:
            break
    return position, slash


def _nearest(lowered: bytes, needles: tuple[bytes, ...], start: int, end: int) -> tuple[int, bytes]:
    """The first of them and its place; (start, b"") if there is none."""
    places = [(at, needle) for needle in needles if (at := lowered.find(needle, start, end)) >= 0]
    return min(places, default=(start, b""))


def _has_json_shape(data: bytes) -> bool:
    """Every string is closed, and between strings there are only bytes that JSON allows there."""
    parts = data.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
    return len(parts) % 2 == 1 and not b"".join(parts[::2]).translate(None, _OUTSIDE_STRINGS)


class _Cursor:
    """The next place of a needle at or after a position that only grows: linear in all."""

    def __init__(self, data: bytes, needle: bytes) -> None:
        self.data, self.needle = data, needle
        self.at = data.find(needle)

    def seek(self, position: int) -> int:
        if 0 <= self.at < position:
            self.at = self.data.find(self.needle, position)
        return self.at


class _Tags:
    """The tags of a text in order."""

    def __init__(self, lowered: bytes, is_json: bool) -> None:
        self.lowered = lowered
        self._string_end = 0 if is_json else len(lowered)
        self.literal, self.escaped = _Cursor(lowered, b"<"), _Cursor(lowered, b"u003c")
        self.closers = _Cursor(lowered, b">"), _Cursor(lowered, b"u003e")

    def next_from(self, position: int) -> Tag | None:
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

    def string_end(self, position: int) -> int:
        """The end of the string that `position` is in; it must not be before the last one's."""
        if position >= self._string_end:
            self._string_end = _string_end(self.lowered, position)
        return self._string_end

    def _read(self, start: int, position: int) -> Tag | None:
        character, behind = _skip_spaces(self.lowered, position)
        closing = character == _SLASH
        if closing:
            character, behind = _skip_spaces(self.lowered, behind)
        is_spaced = _decode(self.lowered, position)[0] <= _SPACE
        word = bytearray()
        while len(word) <= _LONGEST_NAME and (0x61 <= character <= 0x7A or character in b"-_"):
            word.append(character)
            character, behind = _decode(self.lowered, behind)
        name = bytes(word)
        if name not in NAMES:
            return None
        if character == _GREATER:
            return start, behind, name, closing
        end = behind if character == _QUOTE else self._attributes_end(behind)
        is_cut = end > self.string_end(start)  # a tag over several lines, each a string
        if character > _SPACE and character != _SLASH and not (character == _QUOTE and is_cut):
            return None
        if is_cut and (closing or (is_spaced and character != _QUOTE)):
            return None  # "a < private and so on"
        return start, end, name, closing

    def _attributes_end(self, position: int) -> int:
        literal, escaped = (cursor.seek(position) for cursor in self.closers)
        ends = [at for at in (literal + 1, escaped + 5) if at > position]
        return min(ends, default=len(self.lowered) + 1)


def _strip(data: bytes, lowered: bytes, is_json: bool) -> tuple[bytes, bool]:
    tags, nesting = _Tags(lowered, is_json), _Nesting(data)
    kept: list[bytes] = []
    done = string_end = sections = 0
    had_private = False
    while (tag := tags.next_from(done)) is not None:
        start, end, name, closing = tag
        if start >= string_end:
            string_end = tags.string_end(start)
            sections = 0
        kept.append(data[done:start])
        if closing:
            done = min(end, string_end)
            continue
        sections += 1
        depth = dict.fromkeys(NAMES, 0)
        done = _section_end(tags, depth, start, string_end)
        had_private = had_private or name == NAMES[0] or depth[NAMES[0]] > 0
        if is_json and any(depth.values()):
            pieces = _strip_following(nesting, tags, depth, string_end)
            done = nesting.resume_at
            had_private = had_private or NAMES[0] in lowered[string_end:done]
            if end == string_end + 1 and len(pieces) == 1 and any(depth.values()):
                pieces = [data[start:done]]  # it ends in "<private" and no string follows
            kept += pieces
        elif sections > MAX_SECTIONS:
            had_private = had_private or NAMES[0] in lowered[done:string_end]
            done = string_end
    kept.append(data[done:])
    return b"".join(kept), had_private


def _section_end(tags: _Tags, depth: dict[bytes, int], position: int, string_end: int) -> int:
    """Returns where all that `depth` counts as open is closed, or the end of the string."""
    while (tag := tags.next_from(position)) is not None and tag[0] < string_end:
        _, position, name, closing = tag
        if position > string_end:  # its attributes do not end in this string
            depth[name] += not closing
            break
        if not closing:
            depth[name] += 1
        elif depth[name]:
            depth[name] -= 1
        if not any(depth.values()):
            return position
    return string_end


def _strip_following(
    nesting: "_Nesting", tags: _Tags, depth: dict[bytes, int], string_end: int
) -> list[bytes]:
    """What stays of the data from this end of a string to `nesting.resume_at`."""
    data, position = nesting.data, string_end
    pieces: list[bytes] = []
    nesting.advance(string_end)
    while True:
        start, ends_value = nesting.gap()
        pieces.append(_without_numbers(data[position:start]))
        nesting.resume_at = start
        if ends_value:
            return pieces
        position = nesting.skip_string()
        nesting.resume_at = _section_end(tags, depth, start, position)
        if not any(depth.values()):
            return pieces
        if data[start:position] in _FORMAT_WORDS:
            pieces.append(data[start:position])


class _Nesting:
    """The brackets around a position that only grows."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0  # outside of strings, or behind an opening quote
        self.open = bytearray()
        self.resume_at = 0

    def advance(self, string_end: int) -> None:
        """Moves to behind the string that ends there."""
        while self.at <= string_end:
            self.at = self._follow(self.at, only_count=True) + 1
            self.skip_string()

    def skip_string(self) -> int:
        """Moves from the inside of a string to behind it; returns its end."""
        end = _string_end(self.data, self.at)
        self.at = end + 1
        return end

    def gap(self) -> tuple[int, bool]:
        """Returns (start of the next string, False), or first (end of the value, True)."""
        end = self._follow(self.at, only_count=False)
        if self.data[end : end + 1] == b'"':
            self.at = end + 1
            return end + 1, False
        self.at = end
        return end, True

    def _follow(self, position: int, *, only_count: bool) -> int:
        """Moves to the next quote; unless only counting, at most to the end of the value."""
        quote = self.data.find(b'"', position)
        end = quote if quote >= 0 else len(self.data)
        for at in range(position, end):
            byte = self.data[at]
            if byte in b"{[":
                self.open.append(byte)
            elif byte in b"}]":
                if not only_count and len(self.open) <= 1:
                    return at
                del self.open[-1:]
            elif byte == _COMMA and not only_count and self.open == b"{":
                return at
        return end


def _without_numbers(gap: bytes) -> bytes:
    if not any(digit in gap for digit in _DIGITS):
        return gap
    result = bytearray()
    in_number = False
    for byte in gap:
        if byte in _DIGITS or byte == _MINUS or (in_number and byte in b".eE+"):
            if not in_number:
                result.append(_ZERO)
            in_number = True
        else:
            result.append(byte)
            in_number = False
    return bytes(result)


def _skip_spaces(lowered: bytes, position: int) -> tuple[int, int]:
    """The first character that is no space, and the position behind it."""
    character, position = _decode(lowered, position)
    while 0 < character <= _SPACE:
        character, position = _decode(lowered, position)
    return character, position


def _decode(lowered: bytes, position: int) -> tuple[int, int]:
    """Decodes one character, escapes undone; also returns the position behind it, 0 at the end."""
    end = len(lowered)
    if position >= end:
        return 0, position
    byte = lowered[position]
    if byte >= 0x80:
        size = 2 if byte < 0xE0 else 3
        is_space = lowered[position : position + size] in _SPACES
        return (_SPACE if is_space else _OTHER), position + size
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
            return _character(int(digits, 16)), position + 5
    if byte in _WHITESPACE_ESCAPES:
        return _SPACE, position + 1
    return byte, position + 1


def _character(code: int) -> int:
    if code < 0x80:
        return code | 0x20 if 0x41 <= code <= 0x5A else code
    is_surrogate = 0xD800 <= code < 0xE000
    return _SPACE if not is_surrogate and chr(code).encode() in _SPACES else _OTHER


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
