"""Values of a payload that are too long to be searched for secrets, or to be stored, as a whole."""

import json
from dataclasses import dataclass

from claude_mem.text import shorten_middle
from claude_mem.types import Json

_LEAF_LIMITS = (4096, 1024, 256, 64)
_TEXT_CHARACTERS = 256 * 1024  # far beyond what is stored, so that no secret is cut in two there
_FIELD_CHARACTERS = 512 * 1024
_FIELD_ITEMS = 20_000


def limit_work(fields: dict[str, Json]) -> dict[str, Json]:
    """The payload with so much of each field as one event may take of the worker's time."""
    return {name: _Allowance().cut(value) for name, value in fields.items()}


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
