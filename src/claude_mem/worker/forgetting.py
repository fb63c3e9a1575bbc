"""Forgetting: a preview first, done with the token of that preview, undone for a while."""

import asyncio
import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from claude_mem import paths
from claude_mem.config import Layout
from claude_mem.errors import BadInput, NotFound
from claude_mem.hook import trouble
from claude_mem.hook.kill_points import reach
from claude_mem.index import indexing
from claude_mem.index.text.filters import Filters
from claude_mem.intake import rejected_events
from claude_mem.recall.memory_ids import MemoryId
from claude_mem.recall.search import Query, search
from claude_mem.recall.weights import WEIGHTS
from claude_mem.store import Store, StoreReader
from claude_mem.store.forgetting import Forgotten, Preview, Selection
from claude_mem.types import Project
from claude_mem.worker.contexts import Contexts, clear_contexts, remove_rendered

if TYPE_CHECKING:  # the commands and the MCP server read requests without a worker
    from claude_mem.worker.worker import Worker

MAX_QUERY_MATCHES = 200
_PAGE = 200
_WITHOUT_NEIGHBOURS = replace(
    WEIGHTS, next_shares=(), previous_shares=()
)  # only matches are forgotten
HOUR_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class ForgetRequest:
    """Memories by id, a session, what matches a file or a query, or a whole project.

    Names are resolved only when it runs: a repeated request may name a project that is gone.
    """

    ids: tuple[MemoryId, ...] = ()
    session: str = ""
    file: str = ""
    query: str = ""
    project: str = ""  # with a file or query, limits them to it
    hard: bool = False  # for good, without undo
    confirm: str = ""  # the token of a preview


@dataclass(frozen=True, slots=True)
class Undoable:
    """What was forgotten, and until when that can be undone."""

    forgotten: Forgotten
    until_epoch: int


@dataclass(frozen=True, slots=True)
class Erased:
    """What was forgotten for good."""

    forgotten: Forgotten
    is_scrubbed: bool  # False: the worker repeats it until the text has left every file


async def forget(
    worker: "Worker", request: ForgetRequest, now: datetime
) -> Preview | Undoable | Erased:
    """A preview of what would go; with its token in `confirm`, it goes."""
    store = worker.store
    if request.confirm and (done := await asyncio.to_thread(store.find_forgotten, request.confirm)):
        return _result_of(worker, done)  # repeated: the first answer may have been lost
    if request.hard:
        await worker.catch_up()  # what waits in the spool goes, too
    selection = await asyncio.to_thread(select, store, request, now)
    preview = await asyncio.to_thread(store.preview_forgetting, selection, hard=request.hard)
    if preview.is_empty:
        raise NotFound("no memories match")
    if not request.confirm:
        return preview
    if request.hard:
        await _end_requests(worker, selection)
    directories = await asyncio.to_thread(_directories_of_project, store, selection.project)
    sessions = await asyncio.to_thread(store.sessions_of, selection)
    forgotten = await asyncio.wrap_future(
        store.forget(selection, request.confirm, hard=request.hard)
    )
    worker.unsaved_contexts.withdraw()
    directories += await asyncio.to_thread(_directories_of, store, forgotten.projects)
    remove_rendered(worker.settings.layout, directories)
    worker.contexts.mark_stale(*forgotten.projects)
    worker.announcer.forgotten(forgotten)
    for session in await asyncio.to_thread(store.missing_sessions, sessions):
        worker.announcer.session_changed(session)
    if request.hard:
        await worker.scrub_data_directory()
        await worker.refiner.clean_up_conversations()
    worker.wake()  # the main loop renders the contexts again
    return _result_of(worker, forgotten)


async def _end_requests(worker: "Worker", selection: Selection) -> None:
    """A request to a model that is running would be kept as a conversation to resume."""
    seconds = worker.settings.sessions.delete_timeout / 1000
    for session in await asyncio.to_thread(worker.store.sessions_of, selection):
        await worker.refiner.cancel_session(session, seconds)


def _result_of(worker: "Worker", forgotten: Forgotten) -> Undoable | Erased:
    if forgotten.is_erased:
        return Erased(forgotten, is_scrubbed=not worker.store.needs_scrub())
    return _undoable(worker, forgotten)


async def undo(worker: "Worker", token: str | None) -> Forgotten:
    forgotten = await asyncio.wrap_future(worker.store.undo_forgetting(token))
    worker.contexts.mark_stale(*forgotten.projects)
    worker.announcer.forgetting_undone(forgotten)
    worker.wake()
    return forgotten


def undoable(worker: "Worker") -> list[Undoable]:
    return [_undoable(worker, forgotten) for forgotten in worker.store.forgotten()]


def _undoable(worker: "Worker", forgotten: Forgotten) -> Undoable:
    hours = worker.settings.retention.undo_hours
    return Undoable(forgotten, forgotten.at_epoch + hours * HOUR_MS)


def select(store: StoreReader, request: ForgetRequest, now: datetime) -> Selection:
    project_id = store.find_project(request.project) if request.project else None
    if request.ids:
        return _by_id(request.ids)
    if request.session:
        return Selection(session=store.find_session(request.session))
    if request.file or request.query:
        return _by_id(_matching(store, request, project_id, now))
    if project_id is None:
        raise BadInput("set one of ids, session, file, query or project", "ids")
    return Selection(project=project_id)


def _by_id(ids: Iterable[MemoryId]) -> Selection:
    numbers: dict[str, list[int]] = {"observation": [], "summary": [], "prompt": []}
    for memory_id in ids:
        numbers[memory_id.kind].append(memory_id.number)
    return Selection(None, None, *(tuple(of_kind) for of_kind in numbers.values()))


def _matching(
    store: StoreReader, request: ForgetRequest, project_id: int | None, now: datetime
) -> list[MemoryId]:
    """Finds what names the file; of a query, what search shows for it, which may be less."""
    files = (request.file,) if request.file else ()
    filters = Filters(project_id=project_id, files=files, with_wrong=True)
    query = Query(request.query, filters, _PAGE)
    ids: list[MemoryId] = []
    turns = 0
    while True:
        result = search(store, replace(query, offset=turns), now, weights=_WITHOUT_NEIGHBOURS)
        turns += len(result.rows)
        ids += [memory_id for row in result.rows for memory_id in (row.id, *row.also)]
        if result.waiting:
            raise BadInput("not all memories are indexed yet: try again soon")
        if not result.has_more or (request.query and len(ids) >= MAX_QUERY_MATCHES):
            return ids


def _directories_of(store: StoreReader, projects: Iterable[Project]) -> list[str]:
    ids = [store.project_by_key(project.key) for project in projects]
    return [directory for id_ in ids for directory in _directories_of_project(store, id_)]


def _directories_of_project(store: StoreReader, project_id: int | None) -> list[str]:
    """All in which it was used; none of a project that is gone."""
    return [] if project_id is None else store.recent_directories(project_id, limit=1_000_000)


def scrub_data_directory(layout: Layout, store: Store, contexts: Contexts) -> None:
    """Deletes, after memories were forgotten for good, what may repeat them outside of the tables.

    Rendered contexts, rejected hook payloads and logs cannot be searched for a text reliably (it
    may be escaped or cut), so they are deleted as a whole. Then the index is merged and the
    database scrubbed. The worker repeats this until it succeeds, also after a crash. Raises
    DatabaseInUse or an error of the disk; what is left to do then remains requested.
    """
    reach(b"erase.before_leftovers")
    clear_contexts(layout)
    contexts.mark_all_stale()
    rejected_events.delete_all(layout)
    _empty_logs(layout)
    for name in (paths.TROUBLE, trouble.SHOWN_FILE):
        layout.at(name).unlink(missing_ok=True)
    while store.write(indexing.refresh).result():
        pass  # what waits for the index still has its old words and rows
    store.write(indexing.tidy).result()
    reach(b"erase.before_scrub")
    store.scrub(layout.backups)


def _empty_logs(layout: Layout) -> None:
    for path in layout.worker_log.parent.iterdir():
        if _is_rotated(path):
            path.unlink(missing_ok=True)
        else:
            os.truncate(path, 0)  # not deleted: the worker has it open


def _is_rotated(path: Path) -> bool:
    return path.suffix != ".log"
