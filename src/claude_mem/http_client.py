"""Requests to servers that the user configured: models and embedding endpoints. One policy for all:

- https, or plain http to this machine: a request carries a key and the text of sessions.
- No redirects: a key goes to the configured host only.
- One time limit for the whole request, one size limit for the response.
- The proxy of the environment is used, but never for this machine.

httpx is imported with the first request: an idle worker does not load it.
"""

import asyncio
import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from claude_mem import __version__
from claude_mem.errors import InvalidCertificate, RequestFailed
from claude_mem.text import pluralize
from claude_mem.types import Json
from claude_mem.urls import is_this_machine, url_problem

if TYPE_CHECKING:
    import httpx

MAX_RESPONSE_BYTES = 16 * 1024 * 1024
CONNECT_SECONDS = 20.0
MIN_SECRET_CHARS = 6  # a shorter key, like a local server's "x", is no secret


@dataclass(frozen=True, slots=True)
class Response:
    status: int
    headers: Mapping[str, str]  # with lower-case names
    text: str

    def json_object(self) -> dict[str, Json]:
        try:
            value = json.loads(self.text)
        except (ValueError, RecursionError):
            raise RequestFailed("the response is not JSON") from None
        if not isinstance(value, dict):
            raise RequestFailed("the response is not a JSON object")
        return value


async def post_json(
    url: str, headers: Mapping[str, str], body: Mapping[str, Json], seconds: float, secret: str = ""
) -> Response:
    return await send_json("POST", url, headers, body, seconds, secret)


async def send_json(
    method: str,
    url: str,
    headers: Mapping[str, str],
    body: Mapping[str, Json],
    seconds: float,
    secret: str = "",
) -> Response:
    """Raises RequestFailed if there is no complete response; any status is a response.

    `secret` is removed from the response: some servers repeat a key that they refuse.
    """
    if problem := url_problem(url):
        raise RequestFailed(f"{url} {problem}")
    # Importing httpx and reading the certificates takes 100 ms: not in the event loop.
    await asyncio.to_thread(_prepare)
    import httpx

    try:
        async with asyncio.timeout(seconds):
            response = await _send(method, url, headers, json.dumps(body).encode())
    except TimeoutError:
        raise RequestFailed(f"no response within {pluralize(round(seconds), 'second')}") from None
    except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError, ImportError) as error:
        raise _failure(error) from None
    if len(secret) < MIN_SECRET_CHARS:
        return response
    return Response(response.status, response.headers, response.text.replace(secret, "(key)"))


def post_json_blocking(
    url: str, headers: Mapping[str, str], body: Mapping[str, Json], seconds: float, secret: str = ""
) -> Response:
    """The same for a thread without an event loop."""
    return asyncio.run(post_json(url, headers, body, seconds, secret))


def send_json_blocking(method: str, url: str, body: Mapping[str, Json], seconds: float) -> Response:
    return asyncio.run(send_json(method, url, {}, body, seconds))


async def _send(method: str, url: str, headers: Mapping[str, str], content: bytes) -> Response:
    async with (
        open_client(url) as client,
        client.stream(method, url, headers=dict(headers), content=content) as response,
    ):
        data = bytearray()
        # Undecoded: a small compressed response could become a large one.
        async for chunk in response.aiter_raw():
            data += chunk
            if len(data) > MAX_RESPONSE_BYTES:
                raise ValueError("the response is too large")
        return Response(
            response.status_code, dict(response.headers), data.decode("utf-8", "replace")
        )


def open_client(url: str) -> "httpx.AsyncClient":
    import httpx

    return httpx.AsyncClient(
        headers={
            "content-type": "application/json",
            "accept-encoding": "identity",
            "user-agent": f"claude-mem/{__version__}",
        },
        # The certificates of the system, to which companies add their own; httpx brings others.
        verify=_tls_context(),
        proxy=_proxy(url),
        trust_env=False,
        follow_redirects=False,
        timeout=httpx.Timeout(None, connect=CONNECT_SECONDS),
    )


def _prepare() -> None:
    import httpx  # noqa: F401

    _tls_context()


@cache
def _tls_context() -> ssl.SSLContext:
    return ssl.create_default_context()


def _proxy(url: str) -> str | None:
    parts = urlsplit(url)
    host = parts.hostname or ""
    if is_this_machine(host) or proxy_bypass(host):
        return None
    proxy = getproxies().get(parts.scheme)
    return f"http://{proxy}" if proxy and "//" not in proxy else proxy


def _failure(error: Exception) -> RequestFailed:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return InvalidCertificate(f"its certificate is not valid: {cause.verify_message}")
        cause = cause.__cause__ or cause.__context__
    # The type alone: a library's message may contain the request, and with it the key.
    return RequestFailed(f"the connection failed ({type(error).__name__})")
