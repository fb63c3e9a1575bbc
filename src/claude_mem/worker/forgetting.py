"""Forgetting: a preview first, done with the token of that preview, undone for a while."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from claude_mem.errors import BadInput, NotFound
from claude_mem.index.text.matches import Filters
from claude_mem.recall.memory_ids import MemoryId
from claude_mem.recall.query import Query
from claude_mem.recall.ranking import WEIGHTS
from claude_mem.recall.search import search
from claude_mem.store import StoreReader
from claude_mem.store.forgetting import Forgotten, Preview, Selection
from claude_mem.worker.contexts import remove_rendered
from claude_mem.worker.worker import Worker

MAX_QUERY_MATCHES = 200
_PAGE = 200
_WITHOUT_NEIGHBOURS = replace(
    WEIGHTS, next_shares=(), previous_shares=()
)  # only matches are forgotten
HOUR = 3_600_000


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
    confirm: str = ""  # the token of a preview


@dataclass(frozen=True, slots=True)
class Undoable:
    """What was forgotten, and until when that can be undone."""

    forgotten: Forgotten
    until_epoch: int


async def forget(worker: Worker, request: ForgetRequest, now: datetime) -> Preview | Undoable:
    """A preview of what would go; with its token in `confirm`, it goes."""
    store = worker.store
    if request.confirm and (done := await asyncio.to_thread(_find_done, store, request.confirm)):
        return _undoable(worker, done)  # repeated: the first answer may have been lost
    selection = await asyncio.to_thread(select, store, request, now)
    preview = await asyncio.to_thread(store.preview_forgetting, selection)
    if preview.is_empty:
        raise NotFound("no memories match")
    if not request.confirm:
        return preview
    directories = await asyncio.to_thread(_directories, store, selection)
    forgotten = await asyncio.wrap_future(store.forget(selection, request.confirm))
    remove_rendered(worker.settings.layout, directories)
    worker.announcer.forgotten(forgotten)
    await worker.render_contexts()
    return _undoable(worker, forgotten)


async def undo(worker: Worker, token: str | None) -> Forgotten:
    forgotten = await asyncio.wrap_future(worker.store.undo_forgetting(token))
    worker.announcer.forgetting_undone(forgotten)
    await worker.render_contexts()
    return forgotten


def undoable(worker: Worker) -> list[Undoable]:
    return [_undoable(worker, forgotten) for forgotten in worker.store.forgotten()]


def _undoable(worker: Worker, forgotten: Forgotten) -> Undoable:
    hours = worker.settings.retention.undo_hours
    return Undoable(forgotten, forgotten.at_epoch + hours * HOUR)


def _find_done(store: StoreReader, token: str) -> Forgotten | None:
    return next((done for done in store.forgotten() if done.token == token), None)


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
    """Everything that names the file; of a query, what search shows for it, which may be less."""
    filters = Filters(project_id=project_id, files=(request.file,) if request.file else ())
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


def _directories(store: StoreReader, selection: Selection) -> list[str]:
    """The directories of a project that is forgotten completely: their contexts are deleted."""
    if selection.project is None:
        return []
    return store.recent_directories(selection.project, limit=1_000_000)
