"""The three steps over HTTP: search, timeline, and the memories themselves."""

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from claude_mem import params
from claude_mem.errors import BadInput
from claude_mem.recall.formatting import memories_text, search_text, timeline_text
from claude_mem.recall.memories import get_memories
from claude_mem.recall.related import related as find_related
from claude_mem.recall.search import SearchResult
from claude_mem.recall.search import search as find_memories
from claude_mem.recall.timeline import Timeline
from claude_mem.recall.timeline import timeline as find_timeline
from claude_mem.server.requests import known_parameters, read_object
from claude_mem.types import Json
from claude_mem.worker.loop import Worker

T = TypeVar("T")

_FORMATS = ("json", "text")
_PAGE = ("project", "limit", "offset")


async def search(request: Request) -> Response:
    """GET /api/search"""
    given, as_text = _parameters(request)
    return await _search(request, given, as_text)


async def by_file(request: Request) -> Response:
    """GET /api/search/by-file"""
    return await _search_by(request, "files", "filePath")


async def by_concept(request: Request) -> Response:
    """GET /api/search/by-concept"""
    return await _search_by(request, "concepts", "concept")


async def by_type(request: Request) -> Response:
    """GET /api/search/by-type"""
    return await _search_by(request, "type")


async def recent(request: Request) -> Response:
    """GET /api/recent: the newest memories"""
    given, as_text = _parameters(request)
    params.check_names(given, _PAGE)
    return await _search(request, given, as_text)


async def related(request: Request) -> Response:
    """GET /api/related: more like this"""
    given, as_text = _parameters(request)

    def work(worker: Worker, now: datetime) -> SearchResult:
        query = params.related_query(worker.store, given, now)
        return find_related(worker.store, query, worker.semantic_index)

    found, now = await _ask(request, work)
    if as_text:
        return PlainTextResponse(search_text(found, now.tzinfo))
    return JSONResponse(found_record(found))


async def _search_by(request: Request, name: str, alias: str | None = None) -> Response:
    given, as_text = _parameters(request)
    if alias and alias in given:
        given[name] = given.pop(alias)
    if not params.names(given, name):
        raise BadInput(f"{alias or name} is missing", alias or name)
    return await _search(request, given, as_text)


async def _search(request: Request, given: dict[str, Json], as_text: bool) -> Response:
    def work(worker: Worker, now: datetime) -> SearchResult:
        query = params.search_query(worker.store, given, now)
        return find_memories(worker.store, query, now, worker.semantic_index)

    found, now = await _ask(request, work)
    if as_text:
        return PlainTextResponse(search_text(found, now.tzinfo))
    return JSONResponse(found_record(found))


async def timeline(request: Request) -> Response:
    """GET /api/timeline"""
    return await _timeline(request, without="query")


async def timeline_by_query(request: Request) -> Response:
    """GET /api/timeline/by-query"""
    return await _timeline(request, without="anchor")


async def _timeline(request: Request, without: str) -> Response:
    given, as_text = _parameters(request)
    params.check_names(given, [name for name in params.TIMELINE if name != without])

    def work(worker: Worker, now: datetime) -> Timeline | None:
        query = params.timeline_query(worker.store, given, now)
        return find_timeline(worker.store, query, now, worker.semantic_index)

    found, now = await _ask(request, work)
    if as_text:
        return PlainTextResponse(timeline_text(found, now.tzinfo))
    return JSONResponse(timeline_record(found))


async def batch(request: Request) -> Response:
    """POST /api/observations/batch"""
    known_parameters(request, ())
    body = await read_object(request)
    as_text = _takes_text(body.pop("format", None))
    params.check_names(body, ("ids",))
    ids = params.memory_ids(body)
    memories, _ = await _ask(request, lambda worker, _: get_memories(worker.store, ids))
    if as_text:
        return PlainTextResponse(memories_text(memories))
    return JSONResponse([record for _, record in memories])


async def _ask(request: Request, work: Callable[[Worker, datetime], T]) -> tuple[T, datetime]:
    worker: Worker = request.app.state.worker
    now = datetime.fromtimestamp(worker.clock() / 1000).astimezone()
    return await asyncio.to_thread(work, worker, now), now


def _parameters(request: Request) -> tuple[dict[str, Json], bool]:
    """Each once; a name that is said twice would be half ignored."""
    given: dict[str, Json] = {}
    for name, value in request.query_params.multi_items():
        if name in given:
            raise BadInput(f"{name[:80]} is given twice", name[:80])
        given[name] = value
    return given, _takes_text(given.pop("format", None))


def _takes_text(wanted: Json) -> bool:
    if wanted is not None and wanted not in _FORMATS:
        raise BadInput("format is neither json nor text", "format")
    return wanted == "text"


def found_record(found: SearchResult) -> dict[str, Json]:
    record: dict[str, Json] = {
        "results": [row.record() for row in found.rows],
        "hasMore": found.has_more,
        "notIndexed": found.waiting,
    }
    return record | ({"wordsAlone": found.embedder_error} if found.embedder_error else {})


def timeline_record(found: Timeline | None) -> dict[str, Json]:
    if found is None:
        return {"anchor": None, "results": []}
    return {"anchor": str(found.anchor.id), "results": [row.record() for row in found.rows]}


routes = [
    Route("/api/search", search),
    Route("/api/search/by-file", by_file),
    Route("/api/search/by-concept", by_concept),
    Route("/api/search/by-type", by_type),
    Route("/api/recent", recent),
    Route("/api/related", related),
    Route("/api/timeline", timeline),
    Route("/api/timeline/by-query", timeline_by_query),
    Route("/api/observations/batch", batch, methods=["POST"]),
]
