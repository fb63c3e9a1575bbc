"""Search as one types, and the timeline around a memory; ranked as everywhere else."""

import asyncio
from dataclasses import dataclass
from datetime import datetime

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from claude_mem import params
from claude_mem.recall.parsed_query import ParsedQuery, parse_query
from claude_mem.recall.search import SearchResult, SearchRow, mark_words
from claude_mem.server.viewer.rendering import Reader, fragment, page, reader_of, shows_errors
from claude_mem.types import Json
from claude_mem.worker.worker import Worker

LIMIT = 20
DEPTH = 12
_NAMES = ("q", "project", "type", "dateStart", "dateEnd", "page")
_MAX_PAGE = 100


@dataclass(frozen=True, slots=True)
class ResultView:
    id: str
    kind: str
    type: str
    moment: datetime
    project: str
    title: str
    snippet: tuple[tuple[str, bool], ...]  # texts, and whether each is a word of the query
    is_strong: bool
    also: int
    owner: str  # who recorded it, if it comes from a team


@shows_errors
async def search(request: Request) -> Response:
    """GET /search"""
    values = await _search(request)
    if request.headers.get("x-part") == "results":
        return fragment(request, "results.html", **values)
    return await page(request, "search.html", **values)


async def _search(request: Request) -> dict[str, object]:
    worker: Worker = request.app.state.worker
    query_params = {name: value for name, value in request.query_params.items() if value}
    params.check_names(query_params, _NAMES)
    reader = reader_of(request)
    number = params.integer(query_params, "page", 1, 1, _MAX_PAGE)
    query_values: dict[str, Json] = {
        name: value for name, value in query_params.items() if name not in ("q", "page")
    }
    query_values.update(query=query_params.get("q", ""), limit=LIMIT, offset=(number - 1) * LIMIT)

    has_query = any(name != "page" for name in query_params)
    result = SearchResult((), False, 0)
    if has_query:
        result = await worker.recall.search(
            lambda store: params.search_query(store, query_values, reader.now), reader.now
        )
    parsed = parse_query(query_params.get("q", ""), reader.now)
    views = [_result(row, parsed, reader) for row in result.rows]
    return {
        "query_text": query_params.get("q", ""),
        "query_params": query_params,
        "has_query": has_query,
        "strong": [view for view in views if view.is_strong],
        "weak": [view for view in views if not view.is_strong],
        "waiting": result.waiting,
        "embedder_error": result.embedder_error,
        "team_error": result.team_error,
        "number": number,
        "has_more": result.has_more and number < _MAX_PAGE,
        "projects": await asyncio.to_thread(worker.store.project_list),
    }


def _result(row: SearchRow, parsed: ParsedQuery, reader: Reader) -> ResultView:
    snippet = row.snippet if row.snippet != row.title else ""
    return ResultView(
        id=str(row.id).removeprefix("#"),
        kind=row.id.kind,
        type=row.type,
        moment=reader.moment(row.created_at_epoch),
        project=row.project,
        title=row.title,
        snippet=tuple(mark_words(snippet, parsed)),
        is_strong=row.is_strong,
        also=len(row.also),
        owner=row.owner,
    )


@shows_errors
async def timeline(request: Request) -> Response:
    """GET /timeline/{id}"""
    params.check_names(request.query_params, ())
    worker: Worker = request.app.state.worker
    reader = reader_of(request)
    values: dict[str, Json] = {
        "anchor": request.path_params["id"], "depth_before": DEPTH, "depth_after": DEPTH,
    }  # fmt: skip

    query = await asyncio.to_thread(params.timeline_query, worker.store, values, reader.now)
    result = await worker.recall.timeline(query, reader.now)
    assert result is not None  # an anchor that does not exist is an error
    nothing = parse_query("", reader.now)
    views = [_result(row, nothing, reader) for row in result.rows]
    anchor = str(result.anchor.id).removeprefix("#")
    return await page(request, "timeline.html", rows=views[::-1], anchor=anchor)


routes = [Route("/search", search), Route("/timeline/{id}", timeline)]
