"""Pages from templates, escaped by default, with the headers that every page needs.

jinja2 is imported when the first page is requested: a worker without a viewer never loads it.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from zoneinfo import ZoneInfo

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from claude_mem import __version__, params
from claude_mem.errors import AmbiguousProject, BadInput, ClaudeMemError, NotFound
from claude_mem.server.pausing import capture_state
from claude_mem.server.requests import MAX_ID
from claude_mem.text import without_controls
from claude_mem.types import OBSERVATION_TYPES
from claude_mem.worker.worker import Worker

if TYPE_CHECKING:
    from jinja2 import Environment

T = TypeVar("T")
Handler = Callable[[Request], Any]

THEME_COOKIE, ZONE_COOKIE = "claude_mem_theme", "claude_mem_zone"
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "cache-control": "no-cache, private",
}


@dataclass(frozen=True, slots=True)
class Reader:
    """What a page has to know of the one who reads it."""

    theme: str  # "light", "dark", or "" for that of the system
    now: datetime  # in the zone of the browser

    @property
    def zone(self) -> tzinfo | None:
        return self.now.tzinfo

    @property
    def offset_minutes(self) -> int:
        return int((self.now.utcoffset() or timedelta()).total_seconds() // 60)

    def moment(self, ms: int) -> datetime:
        return datetime.fromtimestamp(ms / 1000, self.zone)


def reader_of(request: Request) -> Reader:
    worker: Worker = request.app.state.worker
    theme = request.cookies.get(THEME_COOKIE, "")
    zone = _zone(request.cookies.get(ZONE_COOKIE, ""))
    now = datetime.fromtimestamp(worker.clock() / 1000, zone)
    return Reader(theme if theme in ("light", "dark") else "", now if zone else now.astimezone())


def _zone(name: str) -> tzinfo | None:
    """None for a name that this machine does not know; then its own zone is used."""
    try:
        return ZoneInfo(name.replace("%2F", "/")) if name else None
    except (ValueError, OSError, LookupError):
        return None


@lru_cache(maxsize=1)
def _environment() -> "Environment":
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    from claude_mem.server.viewer import template_filters

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(template_filters.FILTERS)
    environment.globals.update(version=__version__, observation_types=OBSERVATION_TYPES)
    return environment


async def page(
    request: Request, template: str, status: int = 200, /, **values: Any
) -> HTMLResponse:
    """A whole page, with the menu."""
    worker: Worker = request.app.state.worker
    reader = reader_of(request)
    menu = await asyncio.to_thread(_menu, worker)
    return _response(template, status, reader=reader, menu=menu, path=request.url.path, **values)


def fragment(request: Request, template: str, /, **values: object) -> HTMLResponse:
    """A part of a page, for a script to insert."""
    return _response(template, 200, reader=reader_of(request), **values)


def _response(template: str, status: int, /, **values: Any) -> HTMLResponse:
    text = _environment().get_template(template).render(values)
    # No field of a memory may turn the direction of the page or hide in it.
    return HTMLResponse(without_controls(text).encode(), status, headers=HEADERS)


def _menu(worker: Worker) -> dict[str, object]:
    queue = worker.store.queue_state()
    return {
        "projects": worker.store.project_list(),
        "waiting": queue["pending"] + queue["processing"],
        "dead": queue["dead"],
        "is_working": worker.announcer.activity.is_processing,
        "observer": worker.observer.active,
        "capture": capture_state(worker),
        # Before the page reads anything, so that the stream repeats what happens meanwhile.
        "cursor": worker.announcer.live_events.give_cursor(),
    }


def shows_errors(handler: Handler) -> Handler:
    """Errors of a page are a page."""

    async def handle(request: Request) -> Response:
        try:
            response: Response = await handler(request)
        except (NotFound, BadInput, AmbiguousProject) as error:
            status = 404 if isinstance(error, NotFound) else 400
            return await page(request, "error.html", status, message=str(error), status=status)
        except ClaudeMemError as error:
            return await page(request, "error.html", 500, message=str(error), status=500)
        return response

    return handle


async def read(request: Request, work: Callable[[Worker], T]) -> T:
    """The result of reading from the store, in a thread."""
    return await asyncio.to_thread(work, request.app.state.worker)


def id_of(request: Request) -> int:
    return params.integer(request.path_params, "id", 0, 1, MAX_ID)
