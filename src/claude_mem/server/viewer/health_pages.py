"""The pages of the health of claude-mem: what `doctor` checks, its figures, and the settings."""

import asyncio
import json
import subprocess
import sys
from datetime import datetime
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from claude_mem.config import DATA_DIR, OBSERVER, SETTINGS, section_of
from claude_mem.errors import WorkerError
from claude_mem.observer.models.estimates import daily_use
from claude_mem.server.viewer.rendering import Reader, fragment, page, reader_of, shows_errors
from claude_mem.store.backups import newest_first
from claude_mem.worker import forgetting
from claude_mem.worker.worker import Worker

_SECTIONS = {
    "observer": "Observer", "embedder": "Search by meaning", "context": "Context and hints",
    "capture": "Recording", "sessions": "Sessions", "retention": "How long raw data is kept",
    "record": "The record", "worker": "Worker", "commands": "Commands", "": "Data",
}  # fmt: skip
_HOOKS_SHOWN = 6


DOCTOR = ("-P", "-m", "claude_mem", "doctor", "--json")
_DOCTOR_SECONDS = 60


@shows_errors
async def health(request: Request) -> Response:
    """GET /doctor"""
    worker: Worker = request.app.state.worker
    values = await asyncio.to_thread(_figures, worker, reader_of(request))
    return await page(request, "doctor.html", **values)


@shows_errors
async def checks(request: Request) -> Response:
    """GET /doctor/checks: the checks take a while, so the page loads them afterwards"""
    results = await asyncio.to_thread(_run_doctor, request.app.state.worker)
    if request.headers.get("x-part"):
        return fragment(request, "checks.html", checks=results)
    return await page(request, "checks_page.html", checks=results)


def _run_doctor(worker: Worker) -> list[dict[str, Any]]:
    """Runs doctor in a process of its own: it opens the database file, and a process that closes a
    file loses all its locks on it, also those of its own connections."""
    done = subprocess.run(
        [sys.executable, *DOCTOR], env=dict(worker.environ), capture_output=True,
        stdin=subprocess.DEVNULL, timeout=_DOCTOR_SECONDS,
    )  # fmt: skip
    try:
        results: list[dict[str, Any]] = json.loads(done.stdout)
    except ValueError:
        raise WorkerError("the checks could not be run: `claude-mem doctor`") from None
    return results


def _figures(worker: Worker, reader: Reader) -> dict[str, Any]:
    layout, store = worker.settings.layout, worker.store
    index = worker.semantic_index
    copies = newest_first(layout.backups)
    hooks = sorted(store.last_event_ms().items(), key=lambda item: -item[1])[:_HOOKS_SHOWN]
    return {
        "counts": store.counts(),
        "size": layout.database.stat().st_size,
        "record_size": store.record_bytes(),
        "observing": worker.observer_status(),
        "queue": store.queue_state(),
        "dead": store.dead_letters(),
        "vectors": index.progress(store) if index is not None else None,
        "embedder": index.id if index is not None else "",
        "backups": len(copies),
        "last_backup": _modified(copies[0], reader) if copies else None,
        "hooks": [(name, reader.moment(ms)) for name, ms in hooks],
        "forgotten": _forgotten(worker, reader),
    }


def _modified(path: Any, reader: Reader) -> datetime:
    return reader.moment(int(path.stat().st_mtime * 1000))


def _forgotten(worker: Worker, reader: Reader) -> list[dict[str, Any]]:
    return [
        {
            "token": entry.forgotten.token,
            "counts": {n: c for n, c in entry.forgotten.counts.items() if c},
            "projects": [project.name for project in entry.forgotten.projects],
            "at": reader.moment(entry.forgotten.at_epoch),
            "until": reader.moment(entry.until_epoch),
        }
        for entry in forgetting.undoable(worker)
    ]


@shows_errors
async def settings(request: Request) -> Response:
    """GET /settings"""
    worker: Worker = request.app.state.worker
    current = worker.settings
    groups: dict[str, list[dict[str, Any]]] = {}
    for setting in SETTINGS:
        source = current.source_of(setting)
        groups.setdefault(_SECTIONS[section_of(setting)], []).append({
            "setting": setting,
            "value": setting.mask(current.text_of(setting)),
            "source": source,
            "is_fixed": setting.secret or setting is DATA_DIR or source == "environment",
            "is_observer": setting is OBSERVER,
        })  # fmt: skip
    groups[_SECTIONS[""]] = groups.pop(_SECTIONS[""])  # last: it cannot be changed here
    observing = await asyncio.to_thread(worker.observer_status)
    use = await asyncio.to_thread(daily_use, worker.store, current)
    return await page(request, "settings.html", groups=groups, observing=observing, use=use)


routes = [
    Route("/doctor", health),
    Route("/doctor/checks", checks),
    Route("/settings", settings),
]
