"""Pausing the capture of events: a file whose modification time says until when.

So a hook finds out with a single call, and a pause ends without any process.
"""

import os
import re
import time
from dataclasses import dataclass

from claude_mem.config.layout import Layout
from claude_mem.errors import BadInput

FOREVER_S = 4_102_444_800  # the year 2100
_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_DURATION = re.compile(r"([0-9]{1,6})([smhd])")


@dataclass(frozen=True, slots=True)
class Pause:
    until_epoch: int | None  # None: until `resume`


def pause(layout: Layout, seconds: int | None) -> Pause:
    layout.root.mkdir(mode=0o700, parents=True, exist_ok=True)
    until = FOREVER_S if seconds is None else int(time.time()) + seconds
    layout.paused.touch(mode=0o600)
    os.utime(layout.paused, (until, until))
    return Pause(None if seconds is None else until * 1000)


def resume(layout: Layout) -> bool:
    """Whether it was paused."""
    was_paused = current_pause(layout) is not None
    layout.paused.unlink(missing_ok=True)
    return was_paused


def current_pause(layout: Layout) -> Pause | None:
    try:
        until = int(layout.paused.stat().st_mtime)
    except OSError:
        return None
    if until <= time.time():
        return None
    return Pause(None if until >= FOREVER_S else until * 1000)


def parse_duration(text: str) -> int:
    """Seconds of a duration such as 90s, 30m, 2h or 1d."""
    match = _DURATION.fullmatch(text.strip().lower())
    if match is None or not int(match[1]):
        raise BadInput(f"{text!r} is not a duration such as 30m, 2h or 1d", "for")
    return int(match[1]) * _UNITS[match[2]]
