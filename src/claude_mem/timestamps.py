"""Times in ISO 8601, as clients write them, as Unix milliseconds."""

from datetime import UTC, datetime

# No client wrote anything before the year 2000: such a time is broken.
EARLIEST_MS = int(datetime(2000, 1, 1, tzinfo=UTC).timestamp() * 1000)
LATEST_MS = int(datetime(2100, 1, 1, tzinfo=UTC).timestamp() * 1000)


def milliseconds(timestamp: object) -> int | None:
    """None if it is not such a time."""
    if not isinstance(timestamp, str):
        return None
    try:
        at = datetime.fromisoformat(timestamp)
    except ValueError:
        return None
    ms = round((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000)
    return ms if EARLIEST_MS <= ms < LATEST_MS else None
