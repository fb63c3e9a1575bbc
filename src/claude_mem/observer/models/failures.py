"""Why a model produced no memory. The worker treats each kind differently.

ObserverError
├── Transient       a network or server fault: retry soon
├── RateLimited     too many requests: retry when the provider allows it
├── QuotaSpent      no quota for hours: keep the draft
├── NotAllowed      the key or login is refused: the user must act
│   └── UnknownModel    the provider has no such model, or the address is wrong
├── TooLong         longer than the model's context: retry once, fresh and shorter
├── LostSession     the conversation to resume is gone: retry once, fresh
├── Refused         this request will never succeed
└── UnusableReply   a reply without any memory in it; carries the reply
"""

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from claude_mem.errors import ClaudeMemError
from claude_mem.text import one_line, shorten
from claude_mem.types import Json

MAX_MESSAGE_CHARS = 200
MAX_WAIT_SECONDS = 86_400.0
QUOTA_WAIT_SECONDS = 900.0  # a longer wait means a spent quota, not a rate limit

# Matched only where several causes share a status.
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
_UNKNOWN_MODEL = re.compile(
    r"model.{0,120}(not found|not exist|not_found|not supported|unknown)|unknown model|"
    r"invalid model|not a valid model",
    re.IGNORECASE,
)
_RESET_TIME = re.compile(r"limit reached\|(\d{10})\b")  # the format of Claude Code


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


class UnknownModel(NotAllowed):
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


def failure_for_status(status: int, body: str, headers: Mapping[str, str]) -> ObserverError:
    wait = retry_after(headers)
    message = f"HTTP {status}: {_error_message(body)}"
    if status in (401, 403) or (status == 400 and _LOGIN.search(body)):
        return NotAllowed(message)
    if status == 402 or (status in (400, 403, 429) and _QUOTA.search(body)):
        return QuotaSpent(message, wait)
    if status == 429:
        is_quota = wait is not None and wait > QUOTA_WAIT_SECONDS
        return QuotaSpent(message, wait) if is_quota else RateLimited(message, wait)
    if status == 404 or (status in (400, 422) and _UNKNOWN_MODEL.search(body)):
        return UnknownModel(message)
    if status == 413 or (status in (400, 422) and _TOO_LONG.search(body)):
        return TooLong(message)
    if status in (408, 409, 425) or status >= 500:
        return Transient(message, wait)
    return Refused(message)


def failure_for_message(text: str) -> ObserverError:
    """Reads Claude Code's own messages about a login or a limit, which have no status."""
    message = _error_message(text)
    if _TOO_LONG.search(text):
        return TooLong(message)
    if _LOGIN.search(text):
        return NotAllowed(message)
    if _UNKNOWN_MODEL.search(text):
        return UnknownModel(message)
    if _QUOTA.search(text):
        reset = _RESET_TIME.search(text)
        wait = int(reset.group(1)) - datetime.now(UTC).timestamp() if reset else None
        return QuotaSpent(message, wait and min(MAX_WAIT_SECONDS, max(0.0, wait)))
    return Transient(message)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """The Retry-After header in seconds; it holds a number or a date."""
    values = (value for name, value in headers.items() if name.lower() == "retry-after")
    value = next(values, "").strip()[:60]
    try:
        seconds = float(value)
    except ValueError:
        try:
            moment = parsedate_to_datetime(value)
        except (ValueError, TypeError, IndexError):
            return None
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        seconds = (moment - datetime.now(UTC)).total_seconds()
    return min(MAX_WAIT_SECONDS, max(0.0, seconds)) if seconds == seconds else None


def _error_message(body: str) -> str:
    """The message of a JSON error body, else the body itself; shortened to one line."""
    try:
        value: Json = json.loads(body)
    except (ValueError, RecursionError):
        value = body
    for name in ("error", "message"):
        if isinstance(value, dict) and name in value:
            value = value[name]
    text = value if isinstance(value, str) else str(value)
    return shorten(one_line(text), MAX_MESSAGE_CHARS) or "no message"
