"""The feed: a card for each turn, by day and session."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from claude_mem import params
from claude_mem.errors import BadInput
from claude_mem.server.requests import MAX_ID
from claude_mem.server.viewer.cards import cards_of
from claude_mem.server.viewer.rendering import fragment, id_of, page, read, reader_of, shows_errors
from claude_mem.store.viewer_pages import TurnCursor, TurnPage, TurnQuery
from claude_mem.types import OBSERVATION_TYPES

_FEED = ("project", "type", "before")


@shows_errors
async def feed(request: Request) -> Response:
    """GET /"""
    return await page(request, "feed.html", **await _feed(request))


@shows_errors
async def more(request: Request) -> Response:
    """GET /feed: the cards of the next page"""
    return fragment(request, "cards.html", **await _feed(request))


@shows_errors
async def card(request: Request) -> Response:
    """GET /turn/{id}/card; empty if the turn does not exist or does not pass the filters"""
    query = _query(request)
    turn_id = id_of(request)
    pages = await read(request, lambda worker: worker.store.get_turns([turn_id]))
    pages = [turn for turn in pages if _passes(turn, query)]
    cards = cards_of(pages, reader_of(request))
    return fragment(request, "cards.html", cards=cards, more="", filters="")


async def _feed(request: Request) -> dict[str, object]:
    query = _query(request)
    pages, cursor = await read(request, lambda worker: worker.store.turns(query))
    return {
        "cards": cards_of(pages, reader_of(request)),
        "more": f"{cursor.created_ms}-{cursor.turn_id}" if cursor else "",
        "filters": _filters(query),
        "project_id": query.project_id,
        "type": query.type,
        "is_first_page": query.before is None,
    }


def _query(request: Request) -> TurnQuery:
    values = {name: value for name, value in request.query_params.items() if value}
    params.check_names(values, _FEED)
    kind = values.get("type")
    if kind is not None and kind not in OBSERVATION_TYPES:
        raise BadInput(f"type must be one of {', '.join(OBSERVATION_TYPES)}", "type")
    has_project = "project" in values
    return TurnQuery(
        project_id=params.integer(values, "project", 0, 1, MAX_ID) if has_project else None,
        type=kind,
        before=_cursor(values["before"]) if "before" in values else None,
    )


def _cursor(text: str) -> TurnCursor:
    created, _, turn_id = text.partition("-")
    if not all(
        part.isascii() and part.isdecimal() and len(part) < 19 for part in (created, turn_id)
    ):
        raise BadInput("before is not a place in the feed", "before")
    return TurnCursor(int(created), int(turn_id))


def _filters(query: TurnQuery) -> str:
    """Writes the filters as a query string, for links to other pages of the same feed."""
    parts = (("project", query.project_id), ("type", query.type))
    return "".join(f"&{name}={value}" for name, value in parts if value is not None)


def _passes(turn: TurnPage, query: TurnQuery) -> bool:
    of_project = query.project_id in (None, turn.turn["project_id"])
    of_type = query.type is None or any(o["type"] == query.type for o in turn.observations)
    return of_project and of_type


routes = [Route("/", feed), Route("/feed", more), Route("/turn/{id}/card", card)]
