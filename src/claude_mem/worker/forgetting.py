"""Forgetting: looked at first, done with the token of what was seen, undone for a while."""

import asyncio
from dataclasses import dataclass, replace
from datetime import datetime

from claude_mem.errors import BadInput, NotFound
from claude_mem.index.text.matches import Filters
from claude_mem.recall.parameters import Params, known, memory_ids, session_id, text
from claude_mem.recall.ranking import WEIGHTS
from claude_mem.recall.search import Row, search
from claude_mem.store import StoreReader
from claude_mem.store.forgetting import Forgotten, Preview, Selection
from claude_mem.worker.contexts import remove_rendered
from claude_mem.worker.loop import Worker

FORGETTING = ("ids", "session", "file", "query", "project", "confirm")
MOST_OF_QUERY = 200
_PAGE = 200
_ITSELF = replace(WEIGHTS, forward=(), backward=())  # no neighbour is forgotten with a hit
HOUR = 3_600_000


@dataclass(frozen=True, slots=True)
class Undoable:
    """What was forgotten, and until when it can be brought back."""

    forgotten: Forgotten
    until_epoch: int


async def forget(worker: Worker, given: Params, now: datetime) -> Preview | Undoable:
    """What would go; with `confirm`, the token of having seen that, it goes."""
    known(given, FORGETTING)
    confirm = text(given, "confirm")
    store = worker.store
    if confirm and (done := await asyncio.to_thread(_done, store, confirm)):
        return _undoable(worker, done)  # said twice: the answer to the first may have been lost
    selection = await asyncio.to_thread(choose, store, given, now)
    preview = await asyncio.to_thread(store.preview_forgetting, selection)
    if preview.is_empty:
        raise NotFound("nothing that is remembered fits that")
    if not confirm:
        return preview
    directories = await asyncio.to_thread(_directories, store, selection)
    forgotten = await asyncio.wrap_future(store.forget(selection, confirm))
    remove_rendered(worker.settings.layout, directories)
    await _tell(worker, forgotten, "forgotten")
    return _undoable(worker, forgotten)


async def undo(worker: Worker, token: str | None) -> Forgotten:
    forgotten = await asyncio.wrap_future(worker.store.undo_forgetting(token))
    await _tell(worker, forgotten, "remembered again")
    return forgotten


def undoable(worker: Worker) -> list[Undoable]:
    return [_undoable(worker, one) for one in worker.store.forgotten()]


def _undoable(worker: Worker, forgotten: Forgotten) -> Undoable:
    hours = worker.settings.number("CLAUDE_MEM_UNDO_HOURS")
    return Undoable(forgotten, forgotten.at_epoch + hours * HOUR)


def _done(store: StoreReader, token: str) -> Forgotten | None:
    return next((one for one in store.forgotten() if one.token == token), None)


async def _tell(worker: Worker, forgotten: Forgotten, news: str) -> None:
    """Whoever starts next is given a context without it, or with it again."""
    await worker.render_contexts([project.key for project in forgotten.projects])
    worker.feed.tell({"type": news, "counts": dict(forgotten.counts)})


def choose(store: StoreReader, given: Params, now: datetime) -> Selection:
    """By ids, by session, by file or query (in a project or in all), or a project as a whole."""
    ways = [name for name in ("ids", "session", "file", "query") if given.get(name)]
    if len(ways) > 1 and set(ways) != {"file", "query"}:
        raise BadInput(f"say one of them, not {' and '.join(ways)}", ways[1])
    project = text(given, "project")
    project_id = store.find_project(project) if project else None
    if not ways:
        if project_id is None:
            raise BadInput("say what: ids, session, file, query or project", "ids")
        return Selection(project=project_id)
    if ways == ["ids"]:
        return _by_ids(store, given)
    if ways == ["session"]:
        return Selection(session=session_id(store, given))
    return _found(store, given, project_id, now)


def _by_ids(store: StoreReader, given: Params) -> Selection:
    wanted = memory_ids(given)
    by_kind = {kind: tuple(i for k, i in wanted if k == kind) for kind, _ in wanted}
    return Selection(
        observations=by_kind.get("observation", ()),
        summaries=by_kind.get("summary", ()),
        prompts=by_kind.get("prompt", ()),
    )


def _found(store: StoreReader, given: Params, project_id: int | None, now: datetime) -> Selection:
    """All that names the file; of a query, what search shows for it, which may not be all."""
    query, file = text(given, "query") or "", text(given, "file")
    if file is not None and not file.strip("/\\ "):
        raise BadInput("file is empty", "file")
    filters = Filters(project_id=project_id, files=(file,) if file else ())
    rows: list[Row] = []
    while True:
        found = search(store, query, now, filters, _PAGE, len(rows), weights=_ITSELF)
        rows += found.rows
        if found.waiting:
            raise BadInput("not all memories are indexed yet: try again soon")
        if not found.has_more or (query and len(rows) >= MOST_OF_QUERY):
            break
    by_kind = {kind: tuple(r.memory_id for r in rows if r.kind == kind) for kind in _KINDS}
    return Selection(None, None, *(by_kind[kind] for kind in _KINDS))


_KINDS = ("observation", "summary", "prompt")


def _directories(store: StoreReader, selection: Selection) -> list[str]:
    """Of a project that goes as a whole: nobody renders contexts for them any more."""
    if selection.project is None:
        return []
    return store.recent_directories(selection.project, limit=1_000_000)
