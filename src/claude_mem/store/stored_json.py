"""Values that are stored as JSON. One that is damaged must not hide the others: it counts as empty,
and is reported once."""

import json
import logging
from typing import Any, TypeVar

T = TypeVar("T", list[Any], dict[str, Any])

log = logging.getLogger(__name__)

_SHOWN = 60
_MOST_REPORTED = 100
_reported: set[int] = set()


def parse_stored(text: str, empty: T) -> T:
    """`empty` also for a value of another type."""
    value = parse_any(text)
    if isinstance(value, type(empty)):
        return value
    if value is not None:
        _report(text)
    return empty


def parse_any(text: str) -> Any:
    """None for what is no JSON."""
    try:
        return json.loads(text)
    except (ValueError, TypeError, RecursionError):
        _report(text)
        return None


def _report(text: object) -> None:
    key = hash(text)
    if key not in _reported and len(_reported) < _MOST_REPORTED:
        _reported.add(key)
        start = repr(text)[:_SHOWN]
        log.error("a stored value is damaged and is left out (%s): claude-mem doctor", start)
