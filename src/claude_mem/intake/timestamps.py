"""Timestamps that clients write into payloads and transcripts."""

from datetime import UTC, datetime

from claude_mem.types import Json

# No client wrote anything outside these years: such a timestamp is broken.
_EARLIEST_MS, _LATEST_MS = (
    int(datetime(year, 1, 1, tzinfo=UTC).timestamp() * 1000) for year in (2000, 2100)
)
_SECONDS_BELOW = 100_000_000_000  # as milliseconds this is 1973; as seconds, the year 5138


def milliseconds(timestamp: Json) -> int | None:
    """Of a time in ISO 8601; None if it is not one."""
    if not isinstance(timestamp, str):
        return None
    try:
        at = datetime.fromisoformat(timestamp)
    except ValueError:
        return None
    ms = round((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000)
    return ms if _EARLIEST_MS <= ms < _LATEST_MS else None


def payload_time(timestamp: Json, arrived_ms: int) -> int | None:
    """ISO 8601, or a Unix time in seconds or milliseconds; never later than the arrival."""
    ms = milliseconds(timestamp)
    if isinstance(timestamp, int | float) and not isinstance(timestamp, bool):
        ms = _from_number(timestamp)
    return None if ms is None else min(ms, arrived_ms)


def _from_number(value: float) -> int | None:
    if not _EARLIEST_MS / 1000 <= value < _LATEST_MS:  # also false for nan
        return None
    ms = round(value * 1000 if value < _SECONDS_BELOW else value)
    return ms if _EARLIEST_MS <= ms < _LATEST_MS else None
