"""Access to the TCP port: Host and Origin must be this machine's own, and the token is required.

The Unix socket needs no guard: only its owner can open the file. Over TCP any web page can send
requests to 127.0.0.1, and with DNS rebinding it can read the responses; so Host and Origin are
checked before the token.
"""

import hmac
import secrets

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from claude_mem.config import Layout, write_private

TRUSTED = "claude_mem.trusted"  # in the scope of a request over TCP: whether it has the token
COOKIE = "claude_mem_token"
OPEN_ROUTES = ("/health",)
_HOSTS = ("127.0.0.1", "localhost", "[::1]")


class Guard:
    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app, self._token = app, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        headers = Headers(scope=scope)
        refusal = self._refusal(scope["path"], headers)
        scope[TRUSTED] = self._has_token(headers)
        if refusal is None:
            await self._app(scope, receive, send)
        else:
            status, reason = refusal
            await JSONResponse({"error": reason}, status)(scope, receive, send)

    def _refusal(self, path: str, headers: Headers) -> tuple[int, str] | None:
        if not _is_own_host(headers.get("host", "")):
            return 403, "this Host is not allowed"
        origin = headers.get("origin")
        if origin is not None and origin != f"http://{headers['host']}":
            return 403, "this Origin is not allowed"
        if path in OPEN_ROUTES or self._has_token(headers):
            return None
        return 401, "the token of this installation is required: Authorization: Bearer <token>"

    def _has_token(self, headers: Headers) -> bool:
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            token = _cookie(headers.get("cookie", ""))
        # Without a token of our own, an empty one would match.
        return bool(self._token) and hmac.compare_digest(
            token.strip().encode(), self._token.encode()
        )


def _is_own_host(host: str) -> bool:
    name, separator, port = host.rpartition(":")
    if not separator or not port.isdigit():
        name = host
    return name.lower() in _HOSTS


def _cookie(header: str) -> str:
    for part in header.split(";"):
        name, _, value = part.strip().partition("=")
        if name == COOKIE:
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
