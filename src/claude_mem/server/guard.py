"""Access to the TCP port: Host and Origin must be this machine's own, and the token is required.

A browser has the viewer's cookie instead. Other servers on this machine count as the same site for
it, so a request by cookie that changes something must also name our origin.

The Unix socket needs no guard: only its owner can open the file. Over TCP any web page can send
requests to 127.0.0.1, and with DNS rebinding it can read the responses; so Host and Origin are
checked before the token.
"""

import hmac
import secrets
from collections.abc import Callable

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from claude_mem.config import Layout, write_private
from claude_mem.server import viewer_cookie
from claude_mem.server.viewer import entrance
from claude_mem.store.clock import now_ms

TRUSTED = "claude_mem.trusted"  # in the scope of a request over TCP: whether it has the token
BY_COOKIE = "claude_mem.by_cookie"  # whether it has only the viewer's cookie
COOKIE = "claude_mem_token"
OPEN_ROUTES = ("/health", entrance.OPEN)
_READING = ("GET", "HEAD", "OPTIONS")
_HOSTS = ("127.0.0.1", "localhost", "[::1]")


class Guard:
    def __init__(
        self, app: ASGIApp, token: str, viewer_key: bytes, clock: Callable[[], int] = now_ms
    ) -> None:
        self._app, self._token, self._viewer_key, self._clock = app, token, viewer_key, clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        send = _uncached(send)
        headers = Headers(scope=scope)
        refusal = self._refusal(scope["method"], scope["path"], headers)
        scope[TRUSTED] = self._is_known(headers)
        scope[BY_COOKIE] = scope[TRUSTED] and not self._has_token(headers)
        if refusal is None:
            await self._app(scope, receive, send)
            return
        status, reason = refusal
        if status == 401 and "text/html" in headers.get("accept", ""):
            await entrance.entrance_page()(scope, receive, send)
        else:
            await JSONResponse({"error": reason}, status)(scope, receive, send)

    def _refusal(self, method: str, path: str, headers: Headers) -> tuple[int, str] | None:
        if not _is_own_host(headers.get("host", "")):
            return 403, "this Host is not allowed"
        origin = headers.get("origin")
        if origin is not None and origin != f"http://{headers['host']}":
            return 403, "this Origin is not allowed"
        if path in OPEN_ROUTES:
            return None
        if not self._is_known(headers):
            return 401, "the token of this installation is required: Authorization: Bearer <token>"
        if _bearer(headers) is None and method not in _READING and origin is None:
            return 403, "a request with a cookie needs an Origin"
        return None

    def _is_known(self, headers: Headers) -> bool:
        if self._has_token(headers):
            return True
        host = headers.get("host", "")
        value = _cookie(headers.get("cookie", ""), viewer_cookie.cookie_name(host))
        return _bearer(headers) is None and viewer_cookie.COOKIE.is_valid(
            value, self._viewer_key, host, self._clock()
        )

    def _has_token(self, headers: Headers) -> bool:
        token = _bearer(headers)
        return self._is_token(
            _cookie(headers.get("cookie", ""), COOKIE) if token is None else token
        )

    def _is_token(self, token: str) -> bool:
        # Without a token of our own, an empty one would match.
        return bool(self._token) and hmac.compare_digest(token.encode(), self._token.encode())


def _uncached(send: Send) -> Send:
    """Memories stay out of the caches of browsers, and are never read as another type."""

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers.setdefault("cache-control", "no-store")
            headers.setdefault("x-content-type-options", "nosniff")
        await send(message)

    return send_with_headers


def _bearer(headers: Headers) -> str | None:
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def _is_own_host(host: str) -> bool:
    name, separator, port = host.rpartition(":")
    if not separator or not port.isdigit():
        name = host
    return name.lower() in _HOSTS


def _cookie(header: str, name: str) -> str:
    for part in header.split(";"):
        key, _, value = part.strip().partition("=")
        if key == name:
            return value
    return ""


def ensure_token(layout: Layout) -> str:
    """The token of this installation; created at first use, readable only by the owner."""
    try:
        token = layout.token.read_text("ascii").strip()
    except (FileNotFoundError, ValueError):
        token = ""
    if len(token) < 32:
        token = secrets.token_urlsafe(32)
        write_private(layout.token, token.encode())
    return token
