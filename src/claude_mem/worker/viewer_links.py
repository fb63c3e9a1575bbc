"""Links that let a browser in once: `claude-mem open` gets one over the Unix socket."""

import hmac
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field

VALID_SECONDS = 120
_MAX_WAITING = 20


@dataclass
class OneTimeLinks:
    """Keys that were issued and not used yet. A restarted worker knows none of them."""

    clock: Callable[[], int]
    # Signs what a browser gets for a link; it dies with the worker.
    signing_key: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)
    _expiry: dict[str, int] = field(default_factory=dict)

    def issue(self) -> str:
        self._drop_expired()
        while len(self._expiry) >= _MAX_WAITING:
            self._expiry.pop(next(iter(self._expiry)))
        key = secrets.token_urlsafe(32)
        self._expiry[key] = self.clock() + VALID_SECONDS * 1000
        return key

    def use(self, key: str) -> bool:
        """Whether the key lets in; it does so only once."""
        self._drop_expired()
        match = next((k for k in self._expiry if hmac.compare_digest(k.encode(), key.encode())), "")
        return self._expiry.pop(match, None) is not None

    def _drop_expired(self) -> None:
        now = self.clock()
        self._expiry = {key: expiry for key, expiry in self._expiry.items() if expiry > now}
