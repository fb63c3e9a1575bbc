"""The three steps over HTTP: search, timeline, and full memories."""

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from claude_mem import params
from claude_mem.errors import BadInput
from claude_mem.recall.formatting import (
    answers_text,
    memories_text,
    next_offset,
    search_json,
    search_text,
    timeline_json,
    timeline_text,
)
from claude_mem.recall.related import related as find_related
from claude_mem.recall.search import Query, SearchResult, outside_words_of
from claude_mem.recall.timeline import TimelineQuery
from claude_mem.server.requests import read_object, reject_parameters
from claude_mem.store import StoreReader
from claude_mem.types import Json
from claude_mem.worker.worker import Worker

T = TypeVar("T")

_FORMATS = ("json", "text")
_RECENT = ("project", "limit", "offset")


async def search(request: Request) -> Response:
    """GET /api/search"""
    values, as_text = _query_values(request)
    return await _search(request, values, as_text)


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
    values, as_text = _query_values(request)
    params.check_names(values, _RECENT)
    return await _search(request, values, as_text)


async def related(request: Request) -> Response:
    """GET /api/related: memories with a similar meaning"""
    values, as_text = _query_values(request)

    def work(worker: Worker, now: datetime) -> SearchResult:
        query = params.related_query(worker.store, values, now)
        return find_related(worker.store, query, worker.semantic_index)

    result, now = await _run(request, work)
    return _search_response(result, now, as_text)


async def _search_by(request: Request, name: str, alias: str | None = None) -> Response:
    values, as_text = _query_values(request)
    if alias and alias in values:
        values[name] = values.pop(alias)
    if not params.names(values, name):
        raise BadInput(f"{alias or name} is required", alias or name)
    return await _search(request, values, as_text)


async def _search(request: Request, values: dict[str, Json], as_text: bool) -> Response:
    worker: Worker = request.app.state.worker
    now = _now(worker)

    def make_query(store: StoreReader) -> Query:
        return params.search_query(store, values, now)

    result = await worker.recall.search(make_query, now)
    more = f"set offset to {next_offset(values, result)}"
    return _search_response(result, now, as_text, more)


def _search_response(
    result: SearchResult, now: datetime, as_text: bool, more: str = "set a larger limit"
) -> Response:
    if as_text:
        return PlainTextResponse(search_text(result, now.tzinfo, more=more))
    return JSONResponse(search_json(result))


async def timeline(request: Request) -> Response:
    """GET /api/timeline"""
    return await _timeline(request, without="query")


async def timeline_by_query(request: Request) -> Response:
    """GET /api/timeline/by-query"""
    return await _timeline(request, without="anchor")


async def _timeline(request: Request, without: str) -> Response:
    values, as_text = _query_values(request)
    params.check_names(values, [name for name in params.TIMELINE if name != without])

    def work(worker: Worker, now: datetime) -> TimelineQuery:
        return params.timeline_query(worker.store, values, now)

    query, now = await _run(request, work)
    worker: Worker = request.app.state.worker
    result = await worker.recall.timeline(query, now)
    if as_text:
        return PlainTextResponse(timeline_text(result, now.tzinfo))
    return JSONResponse(timeline_json(result))


async def batch(request: Request) -> Response:
    """POST /api/observations/batch"""
    reject_parameters(request)
    body = await read_object(request)
    as_text = _is_text(body.pop("format", None))
    ids, words, with_record = params.batch(body)
    worker: Worker = request.app.state.worker
    outside = await asyncio.to_thread(worker.store.read, lambda c: outside_words_of(c, ids))
    if words:
        answers = await worker.recall.answers(ids, words, _now(worker))
        if as_text:
            return PlainTextResponse(answers_text(answers, outside))
        return JSONResponse([answer.as_json() for answer in answers])
    memories = await worker.recall.memories(ids, with_record)
    if as_text:
        return PlainTextResponse(memories_text(memories, outside))
    return JSONResponse([record for _, record in memories])


async def _run(request: Request, work: Callable[[Worker, datetime], T]) -> tuple[T, datetime]:
    """The result of the work, which runs in a thread, and the time that it was given."""
    worker: Worker = request.app.state.worker
    now = _now(worker)
    return await asyncio.to_thread(work, worker, now), now


def _now(worker: Worker) -> datetime:
    return datetime.fromtimestamp(worker.clock() / 1000).astimezone()


def _query_values(request: Request) -> tuple[dict[str, Json], bool]:
    """The query parameters, and whether the response is to be text."""
    values: dict[str, Json] = {}
    for name, value in request.query_params.multi_items():
        if name in values:
            raise BadInput(f"{name[:80]} must be set only once", name[:80])
        values[name] = value
    return values, _is_text(values.pop("format", None))


def _is_text(format_: Json) -> bool:
    if format_ is not None and format_ not in _FORMATS:
        raise BadInput(f"format must be one of {', '.join(_FORMATS)}", "format")
    return format_ == "text"


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
