"""Values of the TypeScript database's columns, converted to ours; None if they make no sense."""

import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from claude_mem.store.transfer.export_reader import LARGEST_NUMBER
from claude_mem.text import shorten

LARGEST_TITLE = 80


def time_of(row: Mapping[str, Any], name: str) -> int | None:
    """Returns a time in milliseconds, from an epoch in any unit or from a date."""
    for value in (row.get(f"{name}_epoch"), row.get(name)):
        ms = _epoch(value) if isinstance(value, int | float) else _date(value)
        if ms is not None:
            return ms
    return None


def _epoch(value: float) -> int | None:
    """Seconds until the year 5138, or milliseconds since 1973, or microseconds."""
    if not 0 < value < 1e18:
        return None
    ms = value * 1000 if value < 1e11 else value / 1000 if value > 1e14 else value
    return int(ms) if ms <= LARGEST_NUMBER else None


def _date(value: object) -> int | None:
    if not isinstance(value, str):
        return None
    if re.fullmatch(r"\d{9,16}", value):
        return _epoch(int(value))
    try:
        moment = datetime.fromisoformat(value)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)  # SQLite writes dates so
        return _epoch(moment.timestamp())
    except (ValueError, OverflowError):
        return None


def number_of(value: object) -> int | None:
    return value if isinstance(value, int) and 0 < value <= 1_000_000 else None


def field_of(row: Mapping[str, Any], names: Sequence[str]) -> str | None:
    value = next((row[name] for name in names if row.get(name) is not None), None)
    if not is_text(value):
        return None
    return as_text(value).strip() or None


def is_text(value: object) -> bool:
    return isinstance(value, str | bytes)


def as_text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def as_list(value: object, separator: str) -> list[object]:
    """Reads a JSON list, else text with one item per line or with separators."""
    if not isinstance(value, str | bytes) or not value.strip():
        return []
    text = as_text(value)
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        return list(text.split("\n" if "\n" in text else separator))
    if not isinstance(parsed, list):
        return [parsed if isinstance(parsed, str) else text]
    return [item if isinstance(item, str) else json.dumps(item) for item in parsed]


def headline(text: str) -> str:
    """The first line, cut at a word if it is too long for a title."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return shorten(line, LARGEST_TITLE)
