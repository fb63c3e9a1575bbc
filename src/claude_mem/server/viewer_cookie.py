"""The cookie of a browser that was let in: when it expires, signed with the installation's token.

It is not the token itself: a cookie also goes to other servers on the same host, whatever their
port. A new token makes every cookie invalid.
"""

import hashlib
import hmac

DAYS = 30
SECONDS = DAYS * 86_400
_PREFIX = "claude_mem_viewer"


def cookie_name(host: str) -> str:
    """One for each port: browsers share cookies between the ports of a host."""
    return f"{_PREFIX}_{host.rpartition(':')[2] if ':' in host else '80'}"


def issue_cookie(token: str, now_ms: int) -> str:
    expiry = str(now_ms // 1000 + SECONDS)
    return f"{expiry}.{_signature(token, expiry)}"


def is_valid_cookie(value: str, token: str, now_ms: int) -> bool:
    expiry, _, signature = value.partition(".")
    if not token or not (expiry.isascii() and expiry.isdecimal() and len(expiry) < 15):
        return False
    expected = _signature(token, expiry)
    return hmac.compare_digest(signature.encode(), expected.encode()) and (
        int(expiry) * 1000 > now_ms
    )


def _signature(token: str, expiry: str) -> str:
    message = f"{_PREFIX} {expiry}".encode()
    return hmac.new(token.encode(), message, hashlib.sha256).hexdigest()
