"""Getting in: a link that works once sets the cookie; without it a page says how to get one."""

import base64
import hashlib

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from claude_mem.errors import BadInput
from claude_mem.server.requests import read_object
from claude_mem.server.viewer_cookie import CONFIRMATION, COOKIE, cookie_name
from claude_mem.worker.viewer_links import VALID_SECONDS
from claude_mem.worker.worker import Worker

OPEN = "/open"

_STYLE = """
:root { color-scheme: light dark }
body { font: 17px/1.55 system-ui, sans-serif; margin: 0; min-height: 100vh; display: grid;
  place-items: center; background: light-dark(#faf9f7, #16171a);
  color: light-dark(#1d1e22, #e8e8ea) }
main { max-width: 30rem; padding: 2rem }
h1 { font-size: 1.35rem; margin: 0 0 .75rem; letter-spacing: -.01em }
p { margin: 0 0 1rem; color: light-dark(#55565e, #a6a8b0) }
pre { margin: 0 0 1rem; padding: .8rem 1rem; border-radius: 10px;
  font: 15px ui-monospace, monospace;
  background: light-dark(#efece7, #212329); color: inherit; overflow-x: auto }
"""
_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>claude-mem</title>
<meta name="viewport" content="width=device-width, initial-scale=1">{head}
<style>{style}</style></head>
<body><main><h1>{title}</h1>{text}</main></body></html>
"""
_HOW = (
    "<p>This page shows what claude-mem remembers, so it opens only for you. "
    "In a terminal on this machine, type:</p><pre>claude-mem open</pre>"
    "<p>It opens this page in your browser with a link that works once. "
    "On a machine without a browser, <code>claude-mem open --print</code> prints the link.</p>"
)
_hash = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
HEADERS = {
    "content-security-policy": (
        f"default-src 'none'; style-src 'sha256-{_hash}'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    ),
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
}


def entrance_page(title: str = "You are almost in") -> Response:
    """Answers a request of a browser that was not let in yet."""
    page = _PAGE.format(head="", style=_STYLE, title=title, text=_HOW)
    return HTMLResponse(page, 401, headers=HEADERS)


async def open_viewer(request: Request) -> Response:
    """GET /open: uses up the key of a link and sets the cookie"""
    if request.method == "HEAD":  # a preview of the link, by a chat or a mail program
        return HTMLResponse(headers=HEADERS)
    worker: Worker = request.app.state.worker
    if not worker.viewer_links.use(request.query_params.get("key", "")):
        return entrance_page("This link has expired or was used before")
    # A page that loads the next one, not a redirect: the browser sends a strict cookie only with
    # requests that our own page makes, and the link may have been clicked on another site.
    host, now = request.headers.get("host", ""), worker.clock()
    key = worker.viewer_links.signing_key
    target = f"/#confirm={CONFIRMATION.issue(key, host, now)}"  # not sent to any server
    page = _PAGE.format(
        head=f'<meta http-equiv="refresh" content="0; url={target}">',
        style=_STYLE,
        title="Opening claude-mem",
        text=f'<p><a href="{target}">Continue</a></p>',
    )
    response = HTMLResponse(page, headers=HEADERS)
    response.set_cookie(
        cookie_name(host),
        COOKIE.issue(key, host, now),
        max_age=COOKIE.seconds,
        path="/",
        httponly=True,
        samesite="strict",
    )
    return response


async def new_link(request: Request) -> JSONResponse:
    """POST /viewer/link, on the Unix socket only: a link that works once"""
    await read_object(request)
    worker: Worker = request.app.state.worker
    port = request.app.state.describe().get("port")
    if not port:
        raise BadInput(
            "the viewer needs a port, and the worker has none: "
            "`claude-mem settings WORKER_PORT 37777`, then `claude-mem worker restart`"
        )
    url = f"http://127.0.0.1:{port}{OPEN}?key={worker.viewer_links.issue()}"
    return JSONResponse({"url": url, "seconds": VALID_SECONDS, "port": port})


routes = [Route(OPEN, open_viewer)]
socket_routes = [Route("/viewer/link", new_link, methods=["POST"])]
