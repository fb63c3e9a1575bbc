"""A text as it reads: escapes decoded, terminal codes and invisible characters out of the way.

A finder knows where a token begins by the character before it. In `\\x1b[32mghp_…` and
`\\u0022ghp_…` this is the end of an escape, and a letter where a word of Chinese is before it. What
reads otherwise than it is written is searched twice: as it is written, and as it reads. Only lines
that read otherwise are part of a view.
"""

import html
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterator
from functools import cache, lru_cache

from claude_mem.redaction.spans import Span

# What a terminal does not show: colours, the addresses of links, titles, characters without width.
_INVISIBLE = (
    r"\x00-\x08\x0e-\x1f\x7f-\x9f\xad\u034f\u061c\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    r"\ufe00-\ufe0f\ufeff"
)
_CODE = r"(?:\[[0-9;:?<=>]{0,40}[A-Za-z]|\](?:8;[^;\s]{0,80};|\d{1,4};)|\\{1,16})"
# Each alternative begins behind its first character: a search for a set of characters is fast.
_WRITTEN = re.compile(
    rf"[\\%&=^#\u241b{_INVISIBLE}](?:"
    rf"(?P<hidden>(?<=[\x1b\u241b]){_CODE}|(?<=\x9b)[0-9;:?]{{0,40}}[A-Za-z]|(?<=\^)\[{_CODE}"
    rf"|(?<=\\)\\{{0,15}}(?:x1[bB]|u001[bB]|u\{{1b\}}|e|0?33){_CODE}|(?<=%)1[bB]{_CODE}"
    rf"|(?<=\#)033{_CODE}|(?<=&)\#(?:27|x1[bB]);{_CODE}|(?<=[{_INVISIBLE}]))"
    r"|(?<=\\)\\{0,15}(?:u(?:\{(?P<braced>[0-9a-fA-F]{1,5})\}|(?P<four>[0-9a-fA-F]{4}))"
    r"|x(?P<two>[0-9a-fA-F]{2})|0(?P<octal>[0-7]{2})|(?P<letter>[nrtabfv]))"
    r"|(?<=%)(?:25){0,4}(?P<percent>[2-7][0-9a-fA-F]|0[9aAdD])"
    r"|(?<==)(?P<printable>3D|20|22)"
    r"|(?<=&)(?P<entity>(?:amp;){0,4}(?:[a-z]{2,6}|\#\d{1,5}|\#[xX][0-9a-fA-F]{1,4});))"
)
_HIDES = re.compile(
    rf"[\\%^#&\u241b{_INVISIBLE}](?:(?<=[\u241b{_INVISIBLE}])"
    r"|(?<=\\)(?:x1[bB]|u001[bB]|e\[|0?33\[)|(?<=%)1[bB]|(?<=\^)\[\[|(?<=\#)033\[|(?<=&)\#(?:27|x1[bB]);)"
)
_CONTROL = {"n": "\n", "r": "\n", "t": "\t"}

# Letters beyond ASCII, full-width forms and quotes; not the arrows, lines and signs of outputs.
_FOREIGN = re.compile(
    r"[\xc0-\xd6\xd8-\xf6\xf8-\u1fff\u3000-\ud7ff\uf900-\ufaff\uff01-\uffef\u201c-\u201f\xab\xbb]+"
)
# How other languages call a password and a secret; names in Latin letters are in names.py.
_NAMES = re.compile(
    "(?P<password>密码|密碼|口令|パスワード|暗証番号|비밀번호|암호|парол[ьяи]|гасло|парола|лозинка|κωδικός"
    "|סיסמ[הא]|المرور|السر|पासवर्ड|รหัสผ่าน)"
    "|(?P<secret>密钥|密鑰|秘钥|令牌|秘密鍵|トークン|シークレット|토큰|비밀키|токен|секрет)",
    re.IGNORECASE,
)
_VERBS = re.compile("^[是为為はが는은이]")
_QUOTES = frozenset("“”„‟«»「」『』〝〞")
_PLAIN = str.maketrans("łŁøØđĐı", "lLoOdDi")


class View:
    """A text made from pieces of another one."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._starts: list[int] = []
        self._origins: list[tuple[int, int]] = []
        self._size = 0

    def add(self, piece: str, start: int, end: int) -> None:
        if piece:
            self._pieces.append(piece)
            self._starts.append(self._size)
            self._origins.append((start, end))
            self._size += len(piece)

    @property
    def text(self) -> str:
        return "".join(self._pieces)

    def original(self, span: Span) -> Span:
        return Span(self._place(span.start)[0], self._place(span.end - 1)[1], span.kind)

    def _place(self, position: int) -> tuple[int, int]:
        """Returns from where to where the character at this position was written."""
        number = bisect_right(self._starts, position) - 1
        start, end = self._origins[number]
        if end - start != len(self._pieces[number]):
            return start, end
        start += position - self._starts[number]
        return start, start + 1


def spans_as_read(text: str, find: Callable[[str], list[Span]]) -> Iterator[Span]:
    """What `find` finds in the text as it reads."""
    if (view := _view(text, _WRITTEN, _as_shown)) is not None:
        yield from map(view.original, find(view.text))
        if _HIDES.search(text) and (joined := _view(text, _WRITTEN, _as_joined)) is not None:
            yield from map(joined.original, find(joined.text))
    if not text.isascii() and (other := _view(text, _FOREIGN, _in_ascii)) is not None:
        yield from map(other.original, find(other.text))
    if view is not None and not view.text.isascii():
        other = _view(view.text, _FOREIGN, _in_ascii)
        if other is not None:
            yield from (view.original(other.original(span)) for span in find(other.text))


def _view(
    text: str, pattern: re.Pattern[str], replacement: Callable[[re.Match[str]], str]
) -> View | None:
    """The lines of the text in which the pattern matches, with its matches replaced."""
    view, done = View(), -1
    for match in pattern.finditer(text):
        start, end = match.span()
        if done < 0:
            done = text.rfind("\n", 0, start) + 1
        elif (line_end := text.find("\n", done, start)) >= 0:
            view.add(text[done : line_end + 1], done, line_end + 1)
            done = text.rfind("\n", line_end, start) + 1
        view.add(text[done:start], done, start)
        view.add(replacement(match), start, end)
        done = end
    if done < 0:
        return None
    line_end = text.find("\n", done)
    line_end = len(text) if line_end < 0 else line_end
    view.add(text[done:line_end], done, line_end)
    return view


def _as_shown(match: re.Match[str]) -> str:
    if match["hidden"] is not None:
        return " "
    if match["entity"]:
        return html.unescape(f"&{match['entity'].replace('amp;', '')}")
    digits = match["braced"] or match["four"] or match["two"] or match["percent"]
    if digits or match["printable"]:
        return _character(int(digits or match["printable"], 16))
    if match["octal"]:
        return _character(int(match["octal"], 8))
    return _CONTROL.get(match["letter"], " ")


def _character(code: int) -> str:
    character = chr(code) if code <= 0x10FFFF else " "
    return character if character.isprintable() or character in "\n\t" else " "


def _as_joined(match: re.Match[str]) -> str:
    return "" if match["hidden"] is not None else _as_shown(match)


def _in_ascii(match: re.Match[str]) -> str:
    return _ascii(match[0])


@lru_cache(maxsize=4_096)
def _ascii(letters: str) -> str:
    """Names of secrets in English, letters without their accents, and a space for any other."""
    names = list(_NAMES.finditer(letters))
    if not names:
        return "".join(map(_plain, letters))
    name = names[-1]  # what follows is its value
    english = "password" if name["password"] else "secret_key"
    rest = letters[name.end() :]
    verb = " is " if _VERBS.match(rest) else ""
    return f" {english}{verb}{''.join(map(_plain, rest))}"


@cache
def _plain(character: str) -> str:
    if character in _QUOTES:
        return '"'
    plain = unicodedata.normalize("NFKD", character.translate(_PLAIN))
    plain = "".join(part for part in plain if part.isascii())
    return plain or " "
