"""Limits of the TCP port, to which any process of this machine can connect.

Hooks use the Unix socket, in the same process: silent connections must not use up its descriptors.
"""

import asyncio
import resource
from dataclasses import dataclass

from uvicorn.protocols.http.auto import AutoHTTPProtocol

MAX_CONNECTIONS = 128
MAX_LISTENERS = 32  # of /stream
REQUEST_SECONDS = 15.0
DESCRIPTORS = 4096
_PORT_SHARE = 4  # of the descriptors at most a quarter; the rest is for hooks and the database


@dataclass(frozen=True, slots=True)
class PortLimits:
    connections: int = MAX_CONNECTIONS
    request_seconds: float = REQUEST_SECONDS  # within which a request must have arrived
    limits_body: bool = True  # or only its head; then the application has to limit the rest


def raise_descriptor_limit() -> int:
    """Raises the limit to what this process needs, as far as it may; returns the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = DESCRIPTORS if hard == resource.RLIM_INFINITY else min(DESCRIPTORS, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        return wanted
    return DESCRIPTORS if soft == resource.RLIM_INFINITY else soft


def limits_for(descriptors: int) -> PortLimits:
    return PortLimits(connections=min(MAX_CONNECTIONS, descriptors // _PORT_SHARE))


def bounded_protocol(limits: PortLimits) -> type[asyncio.Protocol]:
    """Limits uvicorn's protocol, which by itself waits for a request for any time."""

    class BoundedProtocol(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
        _deadline: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            super().connection_made(transport)
            if len(self.connections) > limits.connections:
                self.transport.abort()
            else:
                self._watch()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._watch()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_watching()
            super().connection_lost(exc)

        def _watch(self) -> None:
            if not self._is_incomplete():
                self._stop_watching()
            elif self._deadline is None:
                self._deadline = self.loop.call_later(limits.request_seconds, self._end)

        def _is_incomplete(self) -> bool:
            """Whether a request has begun to arrive, or the first is still to come. uvicorn itself
            ends connections without a further request."""
            cycle = self.cycle
            if cycle is None or cycle.response_complete:
                return True
            return bool(limits.limits_body and cycle.more_body)

        def _end(self) -> None:
            self._deadline = None
            if self._is_incomplete():
                self.transport.abort()

        def _stop_watching(self) -> None:
            if self._deadline is not None:
                self._deadline.cancel()
                self._deadline = None

    return BoundedProtocol
