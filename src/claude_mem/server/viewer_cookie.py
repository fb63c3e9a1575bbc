"""What a browser that was let in shows: a cookie for hours, and for minutes a confirmation.

Both are signed with a key that only this worker has, for its port. A browser sends the cookie to
every port of the host, and to whoever listens on this one after the worker: it is of no use then.
The confirmation is not a cookie: the page keeps it, where pages of other ports cannot read it.
"""

import hashlib
import hmac
from dataclasses import dataclass

_PREFIX = "claude_mem_viewer"


@dataclass(frozen=True, slots=True)
class Pass:
    use: str
    seconds: int

    def issue(self, key: bytes, host: str, now_ms: int) -> str:
        expiry = str(now_ms // 1000 + self.seconds)
        return f"{expiry}.{self._signature(key, host, expiry)}"

    def is_valid(self, value: str, key: bytes, host: str, now_ms: int) -> bool:
        expiry, _, signature = value.partition(".")
        if not (expiry.isascii() and expiry.isdecimal() and len(expiry) < 15):
            return False
        expected = self._signature(key, host, expiry)
        return hmac.compare_digest(signature.encode(), expected.encode()) and (
            int(expiry) * 1000 > now_ms
        )

    def _signature(self, key: bytes, host: str, expiry: str) -> str:
        message = f"{self.use} {_port(host)} {expiry}".encode()
        return hmac.new(key, message, hashlib.sha256).hexdigest()


COOKIE = Pass("cookie", 12 * 3600)
CONFIRMATION = Pass("confirmation", 600)
CONFIRMATION_HEADER = "claude-mem-confirmation"


def cookie_name(host: str) -> str:
    """Names one cookie for each port: browsers share cookies between the ports of a host."""
    return f"{_PREFIX}_{_port(host)}"


def _port(host: str) -> str:
    return host.rpartition(":")[2] if ":" in host else "80"
