"""What is remembered, over HTTP: pages, batches, context, counts."""

import asyncio

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from claude_mem.config import SETTINGS
from claude_mem.errors import BadInput, NotFound
from claude_mem.intake import spool
from claude_mem.mcp.endpoint import endpoint
from claude_mem.server.requests import known_parameters, page_of, read_object
from claude_mem.types import Json
from claude_mem.worker.loop import Worker

_PAGE = ("limit", "offset", "before", "project")


async def page(request: Request) -> JSONResponse:
    """GET /api/observations | summaries | prompts | sessions"""
    known_parameters(request, _PAGE)
    worker: Worker = request.app.state.worker
    noun = request.url.path.rsplit("/", 1)[-1]
    name = request.query_params.get("project")
    project_id = worker.store.find_project(name) if name else None
    wanted = page_of(request)
    items, more = await asyncio.to_thread(worker.store.page, noun, wanted, project_id)
    return JSONResponse(
        {"items": items, "hasMore": more, "limit": wanted.limit, "offset": wanted.offset}
    )


async def inject(request: Request) -> Response:
    """GET /api/context/inject: what a new session of this project would be given, as text"""
    known_parameters(request, ("project", "project_dir"))
    worker: Worker = request.app.state.worker
    name = request.query_params.get("project")
    directory = request.query_params.get("project_dir")
    if bool(name) == bool(directory):
        raise BadInput("say which project: project=<name or key>, or project_dir=<path>", "project")
    await worker.catch_up()
    if name:
        project_id: int | None = worker.store.find_project(name)
    else:
        project_id = worker.store.project_by_key(worker.projects.of(directory or "").key)
    text = await worker.context_for(project_id) if project_id is not None else ""
    return PlainTextResponse(text)


async def stats(request: Request) -> JSONResponse:
    """GET /api/stats"""
    known_parameters(request, ())
    worker: Worker = request.app.state.worker
    return JSONResponse({
        "worker": request.app.state.describe(),
        "database": await asyncio.to_thread(_database, worker),
        "queue": worker.store.queue_state(),
        "spool": {
            "waiting": len(spool.waiting(worker.settings.layout)),
            "rejected": len(spool.rejected(worker.settings.layout)),
        },
        "observer": worker.provider.active,
        "observing": await asyncio.to_thread(worker.observing),
        "meaning": await asyncio.to_thread(_meaning, worker),
        "mcp": {"loaded": endpoint.is_loaded},
    })  # fmt: skip


def _meaning(worker: Worker) -> dict[str, Json] | None:
    if worker.semantic_index is None:
        return None
    done, every = worker.semantic_index.progress(worker.store)
    return {"embedder": worker.semantic_index.id, "read": done, "memories": every,
            "loaded": worker.semantic_index.is_loaded}  # fmt: skip


def _database(worker: Worker) -> dict[str, Json]:
    size = worker.settings.layout.database.stat().st_size
    return {**worker.store.counts(), "bytes": size}


async def projects(request: Request) -> JSONResponse:
    """GET /api/projects"""
    known_parameters(request, ())
    worker: Worker = request.app.state.worker
    return JSONResponse({"projects": await asyncio.to_thread(worker.store.projects)})


async def settings(request: Request) -> JSONResponse:
    """GET /api/settings"""
    known_parameters(request, ())
    worker: Worker = request.app.state.worker
    current = worker.settings
    return JSONResponse({
        "settings": [
            {
                "name": setting.name,
                "value": setting.mask(current.text_of(setting)),
                "default": setting.default_text,
                "source": current.source_of(setting),
                "help": setting.help,
            }
            for setting in SETTINGS
        ]
    })  # fmt: skip


async def reload_settings(request: Request) -> JSONResponse:
    """POST /api/settings/reload: read the settings again and apply them"""
    known_parameters(request, ())
    worker: Worker = request.app.state.worker
    await read_object(request)
    problems: list[Json] = [*await worker.reload_settings()]
    return JSONResponse({"problems": problems})


async def processing(request: Request) -> JSONResponse:
    """GET and POST /api/processing"""
    known_parameters(request, ())
    worker: Worker = request.app.state.worker
    if request.method == "POST":
        wanted = (await read_object(request)).get("isProcessing")
        if not isinstance(wanted, bool):
            raise BadInput("isProcessing is not true or false", "isProcessing")
        worker.activity.set(wanted, worker.clock())
        worker.feed.publish(worker.processing())
    state = worker.processing()
    return JSONResponse({name: state[name] for name in ("isProcessing", "queueDepth")})


async def retry(request: Request) -> JSONResponse:
    """POST /api/queue/retry: dead letters begin anew"""
    known_parameters(request, ())
    worker: Worker = request.app.state.worker
    await read_object(request)
    retried = await asyncio.wrap_future(worker.store.revive_dead_jobs())
    worker.wake()
    return JSONResponse({"retried": retried})


async def observer(request: Request) -> JSONResponse:
    """GET /api/observer: who distils and what that cost; POST: reads the settings anew for it"""
    known_parameters(request, ())
    worker: Worker = request.app.state.worker
    if request.method == "POST":
        await read_object(request)
        await worker.reload_settings(restart_observer=True)
        # Whoever asks for it may have mended what was wrong: the next turn is a new try.
        await asyncio.wrap_future(worker.store.close_breaker(worker.provider.active))
    return JSONResponse(await asyncio.to_thread(worker.observing))


async def one(request: Request) -> JSONResponse:
    """GET /api/observation/{id}: with the events that it was made from"""
    known_parameters(request, ())
    worker: Worker = request.app.state.worker
    text = request.path_params["id"]
    identity = int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else 0
    found = worker.store.get_many("observations", [identity])
    if not found:
        raise NotFound(f"there is no observation {text}")
    return JSONResponse({**found[0], "sources": worker.store.sources("observation", identity)})


routes = [
    Route("/api/observations", page),
    Route("/api/summaries", page),
    Route("/api/prompts", page),
    Route("/api/sessions", page),
    Route("/api/observation/{id}", one),
    Route("/api/context/inject", inject),
    Route("/api/stats", stats),
    Route("/api/projects", projects),
    Route("/api/settings", settings),
    Route("/api/settings/reload", reload_settings, methods=["POST"]),
    Route("/api/processing", processing, methods=["GET", "POST"]),
    Route("/api/observer", observer, methods=["GET", "POST"]),
    Route("/api/queue/retry", retry, methods=["POST"]),
]
