"""JSON from outside: bytes to objects whose strings can all be stored, and values that are too long
cut to what may be searched or stored."""

import json
from collections.abc import Iterator
from dataclasses import dataclass

from claude_mem.errors import BadInput
from claude_mem.text import shorten_middle
from claude_mem.types import Json

_LEAF_LIMITS = (4096, 1024, 256, 64)
_TEXT_CHARACTERS = 256 * 1024  # far beyond what is stored, so that no secret is cut in two there
_FIELD_CHARACTERS = 512 * 1024
_FIELD_ITEMS = 20_000
SHORT_PAYLOAD = 2 * _FIELD_ITEMS - 2  # bytes that cannot hold so many items, nor so much text
_FEW_MEMBERS, _SHORT_LEAF = 16, 16 * 1024


def parse_object(data: bytes) -> dict[str, Json]:
    """Raises BadInput for anything but a JSON object."""
    try:
        text = data.decode("utf-8")
        value: Json = json.loads(text)
        if "\\ud" in text or "\\uD" in text:
            value = replace_surrogates(value)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"not valid JSON: {error or type(error).__name__}") from None
    if not isinstance(value, dict):
        raise BadInput("not a JSON object")
    return value


def replace_surrogates(value: Json) -> Json:
    """Replaces lone surrogates of JSON, which neither UTF-8 nor the database can hold."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, list):
        return [replace_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {
            name.encode("utf-8", "replace").decode("utf-8"): replace_surrogates(inner)
            for name, inner in value.items()
        }
    return value


# Values that are too long to be searched for secrets, or to be stored, as a whole


def limit_work(fields: dict[str, Json]) -> dict[str, Json]:
    """The payload with so much of each field as one event may take of the worker's time."""
    return {
        name: value if _is_short(value) else _Allowance().cut(value)
        for name, value in fields.items()
    }


def _is_short(value: Json) -> bool:
    """Whether it is certainly within the limits; most values are."""
    if isinstance(value, str):
        return len(value) <= _TEXT_CHARACTERS
    if isinstance(value, dict):
        names = sum(map(len, value)) if len(value) <= _FEW_MEMBERS else _FIELD_CHARACTERS
        return names <= _SHORT_LEAF and all(map(_is_short_leaf, value.values()))
    return value is None or isinstance(value, bool | int | float)


def _is_short_leaf(value: Json) -> bool:
    if isinstance(value, str):
        return len(value) <= _SHORT_LEAF
    return value is None or isinstance(value, bool | int | float)


@dataclass
class _Allowance:
    characters: int = _FIELD_CHARACTERS
    items: int = _FIELD_ITEMS

    @property
    def is_spent(self) -> bool:
        return self.characters <= 0 or self.items <= 0

    def cut(self, value: Json) -> Json:
        self.items -= 1
        if isinstance(value, str):
            text = shorten_middle(value, min(_TEXT_CHARACTERS, max(0, self.characters)))
            self.characters -= len(text)
            return text
        if isinstance(value, list):
            items: list[Json] = []
            for item in value:
                if self.is_spent:
                    items.append(f"[… {len(value) - len(items)} items cut …]")
                    break
                items.append(self.cut(item))
            return items
        if isinstance(value, dict):
            members: dict[str, Json] = {}
            for name, inner in value.items():
                if self.is_spent:
                    members["…"] = f"[… {len(value) - len(members)} members cut …]"
                    break
                self.characters -= len(name)
                members[name] = self.cut(inner)
            return members
        return value


def strings_in(value: Json) -> Iterator[str]:
    """All texts in a JSON value, in order."""
    remaining = [value]
    while remaining:
        inner = remaining.pop()
        if isinstance(inner, str):
            yield inner
        elif isinstance(inner, dict):
            remaining.extend(reversed(inner.values()))
        elif isinstance(inner, list):
            remaining.extend(reversed(inner))


def shorten_json(value: Json, limit: int) -> str:
    """The value as JSON of at most `limit` characters.

    Long strings are shortened first; if that is not enough, the JSON text itself is, and becomes
    a JSON string.
    """
    text = json.dumps(value, ensure_ascii=False)
    if len(text) <= limit:
        return text
    for leaf_limit in _LEAF_LIMITS:
        text = json.dumps(_shorten_leaves(value, leaf_limit), ensure_ascii=False)
        if len(text) <= limit:
            return text
    length = limit - 2
    while len(quoted := json.dumps(shorten_middle(text, length), ensure_ascii=False)) > limit:
        length -= max(1, (len(quoted) - limit) // 2)
    return quoted


def _shorten_leaves(value: Json, limit: int) -> Json:
    if isinstance(value, str):
        return shorten_middle(value, limit)
    if isinstance(value, list):
        return [_shorten_leaves(item, limit) for item in value]
    if isinstance(value, dict):
        return {name: _shorten_leaves(inner, limit) for name, inner in value.items()}
    return value
