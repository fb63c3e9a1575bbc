"""Versions of claude-mem, ordered as PEP 440 orders them: 1.0.0rc1 is older than 1.0.0."""

from functools import lru_cache

from packaging.version import InvalidVersion, Version

OLDEST = Version("0.dev0")


@lru_cache(maxsize=64)  # the worker compares the version of every hook event
def parse_version(text: str) -> Version:
    """A text that is not a version counts as older than every release."""
    try:
        return Version(text)
    except InvalidVersion:
        return OLDEST
