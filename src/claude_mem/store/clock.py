"""Times as stored in the tables: Unix milliseconds, and the same in ISO 8601."""

import time
from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], int]


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def awake_ms() -> int:
    """Returns the time now, less the time that the machine slept since this process began. It never
    goes back."""
    return _BEGAN_MS + time.monotonic_ns() // 1_000_000


_BEGAN_MS = now_ms() - time.monotonic_ns() // 1_000_000


def iso(ms: int) -> str:
    moment = datetime.fromtimestamp(ms / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
