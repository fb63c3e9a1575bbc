"""Projects: what is known of one, and exactly what its next session would be given."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from claude_mem import params
from claude_mem.recall.tokens import tokens_of_bytes
from claude_mem.server.viewer.cards import cards_of
from claude_mem.server.viewer.plots import Plot, weekly_plot
from claude_mem.server.viewer.rendering import HEADERS, Reader, id_of, page, reader_of, shows_errors
from claude_mem.store import StoreReader
from claude_mem.store.viewer_pages import DAY_MS, TurnQuery
from claude_mem.types import Fact
from claude_mem.worker.worker import Worker

WEEKS, SMALL_WEEKS = 26, 16
MAX_TOKENS = 4000
_RECENT = 5
_SHOWN_FACTS = 12


@dataclass(frozen=True, slots=True)
class KnownFacts:
    rules: list[Fact]
    candidates: list[Fact]
    decisions: list[Fact]
    commands: list[Fact]
    faults: list[Fact]
    open_steps: list[Fact]
    places: list[Fact]


@shows_errors
async def projects(request: Request) -> Response:
    """GET /projects"""
    worker: Worker = request.app.state.worker
    reader = reader_of(request)

    def work() -> list[dict[str, Any]]:
        ids = {project["key"]: project["id"] for project in worker.store.project_list()}
        rows = []
        for project in worker.store.projects():
            project_id = int(str(ids[project["key"]]))
            updated: Any = project["updated_at_epoch"]
            rows.append({
                **project, "id": project_id,
                "updated": reader.moment(updated) if updated else None,
                "plot": _plot(worker.store, project_id, reader, SMALL_WEEKS),
            })  # fmt: skip
        return rows

    return await page(request, "projects.html", rows=await asyncio.to_thread(work))


@shows_errors
async def project(request: Request) -> Response:
    """GET /project/{id}"""
    worker: Worker = request.app.state.worker
    reader, project_id = reader_of(request), id_of(request)
    of_project = await asyncio.to_thread(worker.store.project, project_id)
    tokens = worker.settings.context.tokens

    def work() -> dict[str, Any]:
        recent, _ = worker.store.turns(TurnQuery(project_id=project_id, limit=_RECENT))
        return {
            "plot": _plot(worker.store, project_id, reader, WEEKS),
            "files": worker.store.touched_files(project_id),
            "facts": _known_facts(worker.store.facts(project_id)),
            "directories": worker.store.recent_directories(project_id, 5),
            "claims": worker.store.project_access().claims.get(of_project.key),
            "cards": cards_of(recent, reader),
        }

    context, content = await asyncio.gather(
        _context(worker, project_id, tokens), asyncio.to_thread(work)
    )
    return await page(
        request,
        "project.html",
        project=of_project,
        project_id=project_id,
        context=context,
        used=tokens_of_bytes(len(context.encode("utf-8", "replace"))),
        tokens=tokens,
        max_tokens=max(MAX_TOKENS, tokens),
        is_excluded=worker.reader.exclusions.cover(of_project, ""),
        **content,
    )


@shows_errors
async def context(request: Request) -> Response:
    """GET /project/{id}/context: with another budget"""
    params.check_names(request.query_params, ("tokens",))
    worker: Worker = request.app.state.worker
    project_id = id_of(request)
    await asyncio.to_thread(worker.store.project, project_id)
    default = worker.settings.context.tokens
    tokens = params.integer(request.query_params, "tokens", default, 0, 1_000_000)
    text = await _context(worker, project_id, tokens)
    used = str(tokens_of_bytes(len(text.encode("utf-8", "replace"))))
    body = text.encode("utf-8", "replace")
    return PlainTextResponse(body, headers={**HEADERS, "x-tokens": used})


async def _context(worker: Worker, project_id: int, tokens: int) -> str:
    """Returns the context for the directory used last: its instructions are not repeated."""
    directories = await asyncio.to_thread(worker.store.recent_directories, project_id, 1)
    directory = directories[0] if directories else ""
    return await worker.contexts.for_directory(project_id, directory, budget=tokens)


def _plot(store: StoreReader, project_id: int, reader: Reader, weeks: int) -> Plot:
    since = int(reader.now.timestamp() * 1000) - (weeks + 1) * 7 * DAY_MS
    days = store.turns_per_day(project_id, since, reader.offset_minutes * 60_000)
    return weekly_plot(days, reader.now.date(), weeks)


def _known_facts(facts: Sequence[Fact]) -> KnownFacts:
    def of(kind: str, status: str = "holds") -> list[Fact]:
        return [f for f in facts if (f.kind, f.status) == (kind, status)][:_SHOWN_FACTS]

    return KnownFacts(
        rules=of("rule"),
        candidates=of("rule", "candidate"),
        decisions=of("decision"),
        commands=of("command"),
        faults=of("fault"),
        open_steps=of("open"),
        places=of("place"),
    )


routes = [
    Route("/projects", projects),
    Route("/project/{id}", project),
    Route("/project/{id}/context", context),
]
