"""A turn, with everything that is stored of it, and a session, turn after turn."""

import asyncio
import sqlite3
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from claude_mem import params
from claude_mem.errors import NotFound
from claude_mem.index import indexing
from claude_mem.index.text import passage_queries
from claude_mem.index.text.documents import document_id, memory_id_of
from claude_mem.language.prompt import parse_prompt
from claude_mem.observer.local.observer import distil
from claude_mem.recall.memory_ids import MemoryId, parse_any_id
from claude_mem.recall.team_interface import TEAM
from claude_mem.server.viewer.cards import UNTITLED, cards_of
from claude_mem.server.viewer.event_views import event_views
from claude_mem.server.viewer.rendering import fragment, id_of, page, read, reader_of, shows_errors
from claude_mem.server.viewer.texts import line
from claude_mem.store.sessions import MANUAL
from claude_mem.store.viewer_pages import TurnPage, TurnQuery, TurnStory
from claude_mem.worker.worker import Worker

MAX_TURNS = 300  # of a session on one page
SUMMARY_FIELDS = (
    ("completed", "Done"), ("learned", "Learned"), ("investigated", "Investigated"),
    ("next_steps", "Next"), ("notes", "Notes"),
)  # fmt: skip


@shows_errors
async def turn(request: Request) -> Response:
    """GET /turn/{id}"""
    turn_id = id_of(request)
    story = await read(request, lambda worker: worker.store.turn_story(turn_id))
    reader = reader_of(request)
    of_turn: dict[str, Any] = story.page.turn
    summary: dict[str, Any] = story.page.summary or {}
    return await page(
        request,
        "turn.html",
        story=story,
        turn=of_turn,
        title=_title(story.page),
        moment=reader.moment(of_turn["created_at_epoch"]),
        minutes=round((of_turn["updated_at_epoch"] - of_turn["created_at_epoch"]) / 60_000),
        is_saved=of_turn["dialect"] == MANUAL,
        summary=summary,
        summary_texts=[
            (label, summary[name]) for name, label in SUMMARY_FIELDS if summary.get(name)
        ],
        turn_ids=_memory_ids(story.page),
        has_draft=_has_draft(story),
        duplicates=await read(request, lambda worker: _duplicates(worker, story.page)),
        events=event_views(story.events, reader),
        has_raw=any(event["bytes"] for event in story.events),
    )  # fmt: skip


def _memory_ids(turn: TurnPage) -> list[str]:
    """Lists the ids of everything that forgetting the turn would forget."""
    ids = [str(observation["id"]) for observation in turn.observations]
    ids += [f"S{turn.summary['id']}"] if turn.summary else []
    return [*ids, f"P{turn.turn['id']}"] if turn.turn["prompt_text"] else ids


def _title(turn: TurnPage) -> str:
    for observation in turn.observations:
        if title := line(observation["title"], 200):
            return title
    if turn.turn["notice"]:
        return "A message of the client"
    request = turn.summary["request"] if turn.summary else None
    prompt = parse_prompt(str(turn.turn["prompt_text"] or "")).own
    return line(prompt or request, 120) or "A turn without a prompt"


@shows_errors
async def draft(request: Request) -> Response:
    """GET /turn/{id}/draft: what the local observer writes of a turn that a model revised"""
    turn_id = id_of(request)
    stored = await read(request, lambda worker: worker.store.turn_with_events(turn_id))
    verbosity = request.app.state.worker.settings.observer.verbosity
    if stored is None:
        raise NotFound(f"there is no turn {turn_id}")
    distillate = await asyncio.to_thread(distil, stored, verbosity)
    texts = [
        (label, text)
        for name, label in SUMMARY_FIELDS
        if (text := getattr(distillate.summary, name))
    ]
    values = {"texts": texts, "observations": distillate.observations, "turn_id": turn_id}
    if request.headers.get("x-part"):
        return fragment(request, "draft.html", **values)
    return await page(request, "draft_page.html", **values)


def _has_draft(story: TurnStory) -> bool:
    """A draft is not stored beside its revision, but the same events make the same draft."""
    memories = [*story.page.observations, *([story.page.summary] if story.page.summary else [])]
    has_raw = any(event["bytes"] for event in story.events)
    return has_raw and any(memory["model"] for memory in memories)


def _duplicates(worker: Worker, turn: TurnPage) -> dict[int, list[int]]:
    """Observations of other turns that say the same, by observation; search shows one of them."""
    documents = {
        document_id("observation", number): number
        for number in (int(str(observation["id"])) for observation in turn.observations)
    }

    def work(connection: sqlite3.Connection) -> dict[int, list[int]]:
        if not indexing.is_current(connection):
            return {}
        linked = passage_queries.duplicates_of(connection, documents)
        return {documents[d]: [memory_id_of(other) for other in linked[d]] for d in linked}

    return worker.store.read(work)


@shows_errors
async def memory(request: Request) -> Response:
    """GET /memory/{id}: the turn of an observation (12), a summary (S3) or a prompt (P4); a turn
    that another machine of a team recorded (T6)"""
    memory_id = parse_any_id(request.path_params["id"])
    if memory_id is not None and memory_id.kind == TEAM:
        return await _team_turn(request, memory_id)
    if memory_id is None or memory_id.kind == "fact":
        raise NotFound(f"{request.path_params['id'][:40]!r} is not an id: 12, S3 or P4")
    kind, number = memory_id.kind, memory_id.number
    turn_id = await read(request, lambda worker: worker.store.turn_of_memory(kind, number))
    anchor = {"observation": f"#m{number}", "summary": "#summary"}.get(kind, "")
    return RedirectResponse(f"/turn/{turn_id}{anchor}", 302)


async def _team_turn(request: Request, memory_id: MemoryId) -> Response:
    worker: Worker = request.app.state.worker
    memories = await worker.recall.memories([memory_id], False)
    if not memories:
        raise NotFound(f"there is no memory {memory_id}, or the team server does not respond")
    memory: dict[str, Any] = memories[0][1]
    fields = (("prompt_text", "Request"), ("narrative", "Memory"), *SUMMARY_FIELDS)
    return await page(
        request,
        "team_turn.html",
        id=str(memory_id),
        memory=memory,
        moment=reader_of(request).moment(memory["created_at_epoch"]),
        texts=[(label, memory[name]) for name, label in fields if memory.get(name)],
    )


@shows_errors
async def session(request: Request) -> Response:
    """GET /session/{id}"""
    params.check_names(request.query_params, ())
    session_db_id = id_of(request)
    worker: Worker = request.app.state.worker
    record: dict[str, Any] = await asyncio.to_thread(worker.store.session, session_db_id)
    query = TurnQuery(session_db_id=session_db_id, limit=MAX_TURNS)
    pages, cursor = await read(request, lambda worker: worker.store.turns(query))
    reader = reader_of(request)
    context = await read(
        request, lambda worker: worker.store.start_context(record["content_session_id"])
    )
    return await page(
        request,
        "session.html",
        session=record,
        title=line(record["title"], 200) or UNTITLED,
        project_id=await read(
            request, lambda worker: worker.store.project_by_key(record["project_key"])
        ),
        started=reader.moment(record["started_at_epoch"]),
        updated=reader.moment(record["updated_at_epoch"]),
        cards=cards_of(pages, reader)[::-1],
        is_cut=cursor is not None,
        files=_files(pages),
        context=context or "",
    )


def _files(pages: list[TurnPage]) -> list[tuple[str, int]]:
    """Files that the session changed, with the number of turns that did."""
    turns: dict[str, int] = {}
    for turn in pages:
        summary: dict[str, Any] = turn.summary or {}
        of_turn = {str(file) for file in summary.get("files_edited") or ()}
        for observation in turn.observations:
            modified: Any = observation["files_modified"]
            of_turn |= set(map(str, modified))
        for file in of_turn:
            turns[file] = turns.get(file, 0) + 1
    return sorted(turns.items(), key=lambda item: (-item[1], item[0]))


routes = [
    Route("/turn/{id}", turn),
    Route("/turn/{id}/draft", draft),
    Route("/memory/{id}", memory),
    Route("/session/{id}", session),
]
