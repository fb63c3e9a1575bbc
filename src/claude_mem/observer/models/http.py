"""One POST of JSON to a model's API, with the standard library: no dependency for an option.

In a thread of its own, which a cancelled call does not wait for: its connection is shut, and the
thread ends with it. Nothing follows a redirect, so that a key goes only where it was meant to go.
"""

import asyncio
import contextlib
import json
import socket
import ssl
import threading
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from urllib.parse import SplitResult, urlsplit
from urllib.request import getproxies, proxy_bypass

from claude_mem import __version__
from claude_mem.observer.models.failures import Refused, Transient, failure_of
from claude_mem.types import Json

LARGEST_ANSWER = 16 * 1024 * 1024
CONNECT_SECONDS = 20.0
SHORTEST_SECRET = 6  # a local server's "x" is none


def check_url(url: str) -> str:
    """What is wrong with it; nothing when it can be used."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return "is not an address"
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        return "is not an http or https address"
    if parts.username or parts.password:
        return "must not hold a name or password"
    if parts.scheme == "http" and not is_here(parts.hostname):
        return "would send your key and your sessions unencrypted: use https"
    return ""


def is_here(host: str) -> bool:
    return host in ("localhost", "::1") or host.startswith("127.")


async def post_json(
    url: str, headers: Mapping[str, str], body: dict[str, Json], seconds: float, secret: str = ""
) -> dict[str, Json]:
    """`secret` is taken out of whatever comes back: some servers repeat a key that they refuse."""
    call = _Call(url, headers, json.dumps(body).encode())
    try:
        async with asyncio.timeout(seconds):
            status, answer_headers, data = await call.run()
    except TimeoutError:
        raise Transient(f"no answer within {seconds:.0f} seconds") from None
    finally:
        call.abort()
    text = data.decode("utf-8", "replace")
    text = text.replace(secret, "(key)") if len(secret) >= SHORTEST_SECRET else text
    if status != 200:
        raise failure_of(status, text, answer_headers)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise Transient("the answer is not JSON") from None
    if not isinstance(value, dict):
        raise Transient("the answer is no JSON object")
    return value


_Answer = tuple[int, dict[str, str], bytes]


class _Call:
    def __init__(self, url: str, headers: Mapping[str, str], body: bytes) -> None:
        self._parts, self._body = urlsplit(url), body
        self._headers = {
            "content-type": "application/json",
            "user-agent": f"claude-mem/{__version__}",
            **headers,
        }
        self._connection: HTTPConnection | None = None
        self._aborted = False

    async def run(self) -> _Answer:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[_Answer] = loop.create_future()

        def work() -> None:
            try:
                outcome: _Answer | Exception = self._exchange()
            except (OSError, HTTPException, ValueError) as error:
                outcome = error
            if not self._aborted and not loop.is_closed():
                loop.call_soon_threadsafe(_settle, future, outcome)

        threading.Thread(target=work, name="claude-mem-model", daemon=True).start()
        return await future

    def abort(self) -> None:
        self._aborted = True
        connection = self._connection
        sock = connection.sock if connection is not None else None
        if sock is not None:
            with contextlib.suppress(OSError):  # it is over already
                sock.shutdown(socket.SHUT_RDWR)

    def _exchange(self) -> _Answer:
        connection, target = _connect(self._parts)
        self._connection = connection
        try:
            connection.connect()
            if connection.sock is not None:
                connection.sock.settimeout(None)  # the whole call has one limit, kept by the loop
            if self._aborted:
                raise OSError("aborted")
            connection.request("POST", target, self._body, self._headers)
            with connection.getresponse() as response:  # which holds the socket by itself
                return response.status, dict(response.getheaders()), _read(response)
        finally:
            connection.close()


def _settle(future: "asyncio.Future[_Answer]", outcome: "_Answer | Exception") -> None:
    if future.done():
        return
    if not isinstance(outcome, Exception):
        future.set_result(outcome)
    elif isinstance(outcome, ssl.SSLCertVerificationError):
        future.set_exception(Refused(f"its certificate is not valid: {outcome.verify_message}"))
    else:
        # The type alone: a message of a library may hold the request, and with it the key.
        future.set_exception(Transient(f"the connection failed ({type(outcome).__name__})"))


def _connect(parts: SplitResult) -> tuple[HTTPConnection, str]:
    """A connection, and what to ask it for: by way of the proxy that the environment names."""
    host, port = parts.hostname or "", parts.port
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    proxy = "" if is_here(host) or proxy_bypass(host) else getproxies().get(parts.scheme, "")
    via = urlsplit(proxy if "//" in proxy else f"//{proxy}") if proxy else None
    at, at_port = (via.hostname or "", via.port) if via else (host, port)
    if parts.scheme == "https":
        context = ssl.create_default_context()
        secure = HTTPSConnection(at, at_port, timeout=CONNECT_SECONDS, context=context)
        if via:
            secure.set_tunnel(host, port or 443)
        return secure, target
    plain = HTTPConnection(at, at_port, timeout=CONNECT_SECONDS)
    return plain, parts.geturl() if via else target


def _read(response: HTTPResponse) -> bytes:
    data = response.read(LARGEST_ANSWER + 1)
    if len(data) > LARGEST_ANSWER:
        raise ValueError("the answer is too large")
    if response.length:  # it promised more: read(amount) does not complain by itself
        raise ConnectionError("the answer was cut off")
    return data
