"""Whether two places, each a name and a value (port, host, address, path), are one that moved."""

import re

from claude_mem.store.fact_comparison.parsed_statement import canonical, read_wording

Place = tuple[str, str]
_GENERIC = frozenset(
    map(canonical, ("directory", "path", "location", "host", "hostname", "url", "address", "link"))
)
_LOOPBACK = re.compile(r"localhost|127\.0\.0\.1|\[::1\]|:?\d{2,5}\b")
_LOCAL = canonical("local")
_URL = re.compile(r"[a-z][a-z0-9+.-]{0,20}://")


def is_same_place(older: Place, newer: Place) -> bool:
    if _plain(older[0]) == _plain(newer[0]):
        return True
    if _shape(older[1]) != _shape(newer[1]):
        return False
    old, new = _name(older), _name(newer)
    if not old & new or (old - new and new - old):
        return False
    if _has_all(old - new, newer[1]) and _has_all(new - old, older[1]):
        return True
    is_moved = _end(older[1]) == _end(newer[1]) != "" and len(old ^ new) == 1
    return is_moved and not _qualifies(old ^ new, (older, newer))


def _name(place: Place) -> frozenset[str]:
    """The words that tell which place: on this machine is the usual one."""
    terms = read_wording(place[0]).terms
    usual = {_LOCAL} if _LOOPBACK.match(place[1]) else set()
    return (terms - _GENERIC - usual) or terms


def _has_all(words: frozenset[str], value: str) -> bool:
    """Words that one name lacks and its value has: the fixtures in `tests/data`."""
    return words <= _words(value)


def _words(value: str) -> set[str]:
    return {canonical(word) for word in re.findall(r"[a-z0-9]+", value.lower())}


def _end(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2] if "/" in path else ""


def _qualifies(words: frozenset[str], places: tuple[Place, Place]) -> bool:
    """A word that tells one of several, or that is also part of the value."""
    return any(
        words & read_wording(name).qualifiers or words & _words(value) for name, value in places
    )


def _shape(value: str) -> str:
    if (scheme := _URL.match(value)) and "/" in value[scheme.end() :].rstrip("/"):
        return "url"
    value = value[scheme.end() :].rstrip("/") if scheme else value
    return "path" if "/" in value else "host"


def _plain(name: str) -> str:
    return " ".join(name.lower().strip(" .`'\"").split())
