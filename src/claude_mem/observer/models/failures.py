"""Why a model gave no memory, as the worker must tell apart.

ObserverError
├── Transient       a network or server fault: again soon
├── RateLimited     too many requests for now: again when it says
├── QuotaSpent      nothing left for hours: the draft stands
├── NotAllowed      the key or login is refused: the person must act
├── TooLong         more than the model's context: again, fresh and shorter
├── LostSession     what was to be resumed is gone: again, fresh
├── Refused         this request will never be answered
└── UnusableReply   it answered, but not in any form that can be read; carries the answer
"""

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from claude_mem.errors import ClaudeMemError
from claude_mem.types import Json

LONGEST_SAID = 200
LONGEST_WAIT = 86_400.0
LONG_WAIT = 900.0  # seconds; who must wait longer has spent a quota

# Read only where a status is shared by several causes.
_QUOTA = re.compile(
    r"insufficient.{0,20}(quota|credit|balance|fund)|quota.{0,20}exceed|exceed.{0,30}quota|"
    r"credit balance|billing|usage limit|weekly limit|daily limit|out of credits|limit reached",
    re.IGNORECASE,
)
_TOO_LONG = re.compile(
    r"prompt is too long|context.{0,20}(length|window|limit|size)|too many tokens|"
    r"maximum.{0,20}tokens|request_too_large|exceeds? the (model|maximum)",
    re.IGNORECASE,
)
_LOGIN = re.compile(
    r"invalid.{0,20}(api key|x-api-key|token)|not logged in|/login|authentication|unauthori[sz]ed|"
    r"oauth|please run .{0,20}login|api key.{0,20}(invalid|not valid|missing)",
    re.IGNORECASE,
)
_RESETS = re.compile(r"limit reached\|(\d{10})\b")  # as the client says until when


class ObserverError(ClaudeMemError):
    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after  # seconds


class Transient(ObserverError):
    pass


class RateLimited(ObserverError):
    pass


class QuotaSpent(ObserverError):
    pass


class NotAllowed(ObserverError):
    pass


class TooLong(ObserverError):
    pass


class LostSession(ObserverError):
    pass


class Refused(ObserverError):
    pass


class UnusableReply(ObserverError):
    def __init__(self, message: str, reply: str) -> None:
        super().__init__(message)
        self.reply = reply


def failure_of(status: int, said: str, headers: Mapping[str, str]) -> ObserverError:
    """What an HTTP status and the words with it mean."""
    wait = retry_after(headers)
    message = f"HTTP {status}: {_first_words(said)}"
    if status in (401, 403) or (status == 400 and _LOGIN.search(said)):
        return NotAllowed(message)
    if status == 402 or (status in (400, 403, 429) and _QUOTA.search(said)):
        return QuotaSpent(message, wait)
    if status == 429:
        lasting = wait is not None and wait > LONG_WAIT
        return QuotaSpent(message, wait) if lasting else RateLimited(message, wait)
    if status == 413 or (status in (400, 422) and _TOO_LONG.search(said)):
        return TooLong(message)
    if status in (408, 409, 425) or status >= 500:
        return Transient(message, wait)
    return Refused(message)


def failure_in_words(said: str) -> ObserverError:
    """Where there are only words: the client's own, of a login or a limit."""
    message = _first_words(said)
    if _TOO_LONG.search(said):
        return TooLong(message)
    if _LOGIN.search(said):
        return NotAllowed(message)
    if _QUOTA.search(said):
        resets = _RESETS.search(said)
        wait = int(resets.group(1)) - datetime.now(UTC).timestamp() if resets else None
        return QuotaSpent(message, wait and min(LONGEST_WAIT, max(0.0, wait)))
    return Transient(message)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds, from a number or a date."""
    said = next((value for name, value in headers.items() if name.lower() == "retry-after"), "")
    said = said.strip()[:60]
    try:
        seconds = float(said)
    except ValueError:
        try:
            moment = parsedate_to_datetime(said)
        except (ValueError, TypeError, IndexError):
            return None
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        seconds = (moment - datetime.now(UTC)).total_seconds()
    return min(LONGEST_WAIT, max(0.0, seconds)) if seconds == seconds else None


def _first_words(said: str) -> str:
    """An error body's own message, where it has one; never long."""
    try:
        value: Json = json.loads(said)
    except (ValueError, RecursionError):
        value = said
    for name in ("error", "message"):
        if isinstance(value, dict) and name in value:
            value = value[name]
    text = value if isinstance(value, str) else str(value)
    return " ".join(text.split())[:LONGEST_SAID] or "no words with it"
