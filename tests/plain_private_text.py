"""What hook/private_text.py does, as a plain program over parsed JSON with regular expressions."""

import json
import re
from typing import Any

from claude_mem.hook.private_text import _FORMAT_WORDS, MAX_SECTIONS, NAMES

_SPACE = r"[\x01-\x20\x85\xa0\xad\u1680\u180e\u2000-\u200f\u2028-\u202f\u205f-\u2064\u3000\ufeff]"
_TAG = re.compile(
    rf"<(?P<spaced>{_SPACE}*)(?P<slash>/{_SPACE}*)?(?P<name>{'|'.join(n.decode() for n in NAMES)})"
    rf"(?:>|\Z|(?:{_SPACE}|/)(?P<attributes>[^>]*)(?P<end>>|\Z))",
    re.IGNORECASE,
)


class Pairs(list[tuple[str, Any]]):
    """A JSON object with its members in order, also those of the same name."""

    @staticmethod
    def dumps(value: object, ascii_only: bool, separators: tuple[str, str]) -> str:
        if isinstance(value, Pairs):
            members = (
                json.dumps(name, ensure_ascii=ascii_only)
                + separators[1]
                + Pairs.dumps(inner, ascii_only, separators)
                for name, inner in value
            )
            return "{" + separators[0].join(members) + "}"
        if isinstance(value, list):
            items = (Pairs.dumps(item, ascii_only, separators) for item in value)
            return "[" + separators[0].join(items) + "]"
        return json.dumps(value, ensure_ascii=ascii_only)


def strip_value(value: Any) -> Any:
    if isinstance(value, Pairs):
        stripped = Pairs()
        for name, inner in value:
            reader = _Reader(_strings_in(inner))
            stripped.append((reader.key(name), reader.value(inner)))
        return stripped
    return _Reader(_strings_in(value)).value(value)


def _strings_in(value: Any) -> int:
    if isinstance(value, str):
        return 1
    if isinstance(value, Pairs):
        return sum(1 + _strings_in(inner) for _, inner in value)
    return sum(map(_strings_in, value)) if isinstance(value, list) else 0


class _Reader:
    """Reads one value from front to back; what is open is counted by name."""

    def __init__(self, strings: int) -> None:
        self.open = dict.fromkeys((name.decode() for name in NAMES), 0)
        self.following = strings  # how many strings are still to come

    def value(self, value: Any) -> Any:
        if isinstance(value, str):
            self.following -= 1
            return self.text(value)
        if isinstance(value, Pairs):
            stripped = Pairs()
            for name, inner in value:
                self.following -= 1
                stripped.append((self.key(name), self.value(inner)))
            return stripped
        if isinstance(value, list):
            return [self.value(item) for item in value]
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return 0 if is_number and any(self.open.values()) else value

    def key(self, name: str) -> str:
        return self.text(name)

    def text(self, text: str) -> str:
        if any(self.open.values()) and text.encode() in _FORMAT_WORDS:
            return text
        result, place, sections = "", 0, 0
        while True:
            was_open = any(self.open.values())
            tag = self._next_tag(text, place)
            if tag is None:
                return result if was_open else result + text[place:]
            result += "" if was_open else text[place : tag.start()]
            place = tag.end()
            if tag["slash"]:
                self.open[tag["name"].lower()] -= self.open[tag["name"].lower()] > 0
            else:
                sections += not was_open
                self.open[tag["name"].lower()] += 1
            if not any(self.open.values()) and sections > MAX_SECTIONS:
                return result

    def _next_tag(self, text: str, place: int) -> re.Match[str] | None:
        while (tag := _TAG.search(text, place)) is not None:
            is_cut = tag.end() == len(text) and not tag[0].endswith(">")
            has_attributes = tag["attributes"] is not None
            if is_cut and (
                tag["slash"]
                or (tag["spaced"] and has_attributes)
                or not (self.following or has_attributes)
            ):
                place = tag.start() + 1
            else:
                return tag
        return None
