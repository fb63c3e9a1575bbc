"""The state of the worker over HTTP: counts and settings."""

import asyncio
import resource
import sys
from pathlib import Path

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from claude_mem.config import SETTINGS
from claude_mem.intake import rejected_events, spool
from claude_mem.mcp.endpoint import endpoint
from claude_mem.server.guard import TRUSTED
from claude_mem.server.pausing import capture_state
from claude_mem.server.requests import reject_parameters
from claude_mem.types import Json
from claude_mem.worker.queue_warning import queue_warning
from claude_mem.worker.worker import Worker


async def health(request: Request) -> JSONResponse:
    """GET /health: details only with the token, or over the Unix socket"""
    if not request.scope.get(TRUSTED, True):
        return JSONResponse({"status": "ok"})
    worker: Worker = request.app.state.worker
    details = await asyncio.to_thread(_health, worker, request.app.state.describe())
    return JSONResponse({"status": "ok", **details})


def _health(worker: Worker, process: dict[str, Json]) -> dict[str, Json]:
    queue, now = worker.store.queue_state(), worker.clock()
    oldest, started = worker.store.oldest_waiting(), process.get("started_at_epoch")
    waiting = queue["pending"] + queue["processing"]
    age = None if oldest is None else max(0, now - oldest) / 1000
    return {
        "pid": process["pid"],
        "port": process["port"],
        "version": process["version"],
        "uptime": (now - started) / 1000 if isinstance(started, int) else None,
        "activeSessions": worker.store.count_active_sessions(),
        "memory": {"rss": resident_bytes()},
        "queue": {
            "depth": waiting,
            "oldestSeconds": age,
            "dead": queue["dead"],
            "warning": queue_warning(waiting, age) or None,
        },
        "observer": worker.observer.active,
        "lastError": worker.last_error.describe(),
    }


def resident_bytes() -> int:
    """Returns the memory of this process; without /proc, the most that it ever had."""
    try:
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
        return pages * resource.getpagesize()
    except (OSError, ValueError, IndexError):
        largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return largest if sys.platform == "darwin" else largest * 1024


async def stats(request: Request) -> JSONResponse:
    """GET /api/stats"""
    reject_parameters(request)
    worker: Worker = request.app.state.worker
    return JSONResponse({
        "worker": request.app.state.describe(),
        "database": await asyncio.to_thread(_database, worker),
        "queue": worker.store.queue_state(),
        "spool": {
            "waiting": len(spool.waiting(worker.settings.layout)),
            "rejected": len(rejected_events.rejected(worker.settings.layout)),
            "set_aside": len(rejected_events.records_set_aside(worker.settings.layout)),
        },
        "capture": capture_state(worker),
        "observer": worker.observer.active,
        "observing": await asyncio.to_thread(worker.observer_status),
        "meaning": await asyncio.to_thread(_semantic_index, worker),
        "mcp": {"loaded": endpoint.is_loaded},
        "cycles": worker.cycles,
        "obstacle": worker.obstacle,
    })  # fmt: skip


def _database(worker: Worker) -> dict[str, Json]:
    size = worker.settings.layout.database.stat().st_size
    return {**worker.store.counts(), "bytes": size}


def _semantic_index(worker: Worker) -> dict[str, Json] | None:
    index = worker.semantic_index
    if index is None:
        return None
    done, total = index.progress(worker.store)
    return {"embedder": index.id, "read": done, "memories": total, "loaded": index.is_loaded}


async def settings(request: Request) -> JSONResponse:
    """GET /api/settings"""
    reject_parameters(request)
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


routes = [
    Route("/health", health),
    Route("/api/stats", stats),
    Route("/api/settings", settings),
]
