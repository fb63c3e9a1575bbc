"""The contexts of new sessions: kept in memory until their memories change, rendered to files for
sessions that start while no worker is running, and stored once a session has received one."""

import asyncio
import json
import logging
import os
import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path

from claude_mem import paths
from claude_mem.config import Layout, Settings, write_private
from claude_mem.hook.spooling import wake
from claude_mem.intake.working_directory import current_branch, read_rule_files
from claude_mem.recall.context import build_context
from claude_mem.store import Store
from claude_mem.store.change_counters import ChangeCounts
from claude_mem.store.database import is_of_file
from claude_mem.types import SESSION_START, Event, Project

log = logging.getLogger("claude_mem.worker")

MAX_FILES = 500
MAX_IN_MEMORY = 64
MAX_UNSAVED = 64
MAX_WAIT_SECONDS = 0.2
_BUDGET = ".budget"
_SOURCES_WITH_CONTEXT = ("startup", "clear", "compact")

_Key = tuple[int, int, str, bytes]


class Contexts:
    """The contexts of projects; in a process that changes memories, the store must watch them
    (`Store.watch_memories`)."""

    def __init__(
        self,
        layout: Layout,
        store: Store,
        home: str,
        budget: int,
        before_rendering: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._layout, self._store, self._home = layout, store, home
        self.budget = budget  # tokens of a context
        self._before_rendering = before_rendering
        self.stale: set[str] = set()  # keys of projects that changed since they were rendered
        self._lock = threading.Lock()  # of both
        self._in_memory: OrderedDict[_Key, tuple[ChangeCounts, str]] = OrderedDict()

    def mark_stale(self, *projects: Project) -> None:
        self._mark(project.key for project in projects)

    def mark_all_stale(self) -> None:
        self._mark([str(project["key"]) for project in self._store.projects()])

    def _mark(self, keys: Iterable[str]) -> None:
        with self._lock:
            self.stale.update(keys)

    async def render_stale(self) -> None:
        """The files of all projects that have changed. What fails is rendered the next time."""
        with self._lock:
            keys = sorted(self.stale)
        if keys and self._before_rendering is not None:
            await self._before_rendering()
        for key in keys:
            with self._lock:
                self.stale.discard(key)  # before: it may change while it is rendered
            try:
                project_id = self._store.project_by_key(key)
                if project_id is not None:
                    await asyncio.to_thread(self.render, project_id)
            except BaseException:
                self._mark([key])
                raise

    def render(self, project_id: int) -> None:
        """One file for each directory in which the project was used recently, for its branch at
        that time."""
        for directory in self._store.recent_directories(project_id):
            rule_files, branch = read_rule_files(directory, self._home), current_branch(directory)
            text = self.text_for(project_id, self.budget, rule_files, branch)
            literal = json.dumps(text).encode()
            target = rendered_path(self._layout, directory)
            if not target.exists() or target.read_bytes() != literal:
                write_private(target, literal)
        _prune(self._layout)

    async def for_directory(
        self,
        project_id: int,
        directory: str,
        without_session: str | None = None,
        budget: int | None = None,
    ) -> str:
        """Returns the context for the branch of this directory, without what its instructions say;
        `budget`: instead of the setting."""
        tokens = self.budget if budget is None else budget

        def build() -> str:
            rule_files, branch = read_rule_files(directory, self._home), current_branch(directory)
            if without_session is None or not self._store.has_prompts(without_session):
                return self.text_for(project_id, tokens, rule_files, branch)
            return build_context(
                self._store, project_id, tokens, without_session, rule_files, branch
            )

        return await asyncio.to_thread(build)

    def text_for(self, project_id: int, budget: int, rule_files: str, branch: str) -> str:
        """Returns the text as `build_context` does, without leaving out any session."""
        try:  # before anything is read
            changes = self._store.change_counts(project_id).result(MAX_WAIT_SECONDS)
        except TimeoutError:  # the writer is busy, and a session waits
            return build_context(self._store, project_id, budget, None, rule_files, branch)
        key = project_id, budget, branch, blake2b(rule_files.encode("utf-8", "replace")).digest()
        with self._lock:
            cached = self._in_memory.get(key)
        if cached is not None and cached[0] == changes:
            return cached[1]
        text = build_context(self._store, project_id, budget, None, rule_files, branch)
        with self._lock:
            self._in_memory[key] = changes, text
            self._in_memory.move_to_end(key)
            if len(self._in_memory) > MAX_IN_MEMORY:
                self._in_memory.popitem(last=False)
        return text


class UnsavedContexts:
    """The contexts that sessions received and that are not stored yet.

    A session that is resumed must receive the same context again, even if a process died in
    between:

    - The context that a hook without a worker prints (the rendered file) is stored in
      the transaction that stores the start of the session.
    - The worker usually answers with that same text. It waits here until the start is stored, which
      happens right after the answer, and before the file is rendered again.
    - Any other text is stored before it is sent (`worker/session_start.py`).
    - After forgetting, nothing that waits here is stored.
    """

    def __init__(self, layout: Layout, store: Store) -> None:
        self._layout, self._store = layout, store
        self._waiting: dict[str, str] = {}  # by session

    def add(self, session_id: str, text: str) -> bool:
        """Adds a context, to be stored with the session's start; False if that is stored
        already."""
        while len(self._waiting) >= MAX_UNSAVED:  # their starts were rejected
            self._waiting.pop(next(iter(self._waiting)), None)
        self._waiting[session_id] = text
        if self._store.has_session(session_id):
            self._waiting.pop(session_id, None)
            return False
        return True

    def waiting(self, session_id: str) -> str | None:
        return self._waiting.get(session_id)

    def received(self, session_id: str) -> str | None:
        """Returns the context that the session received, whether or not it is stored; None if it
        received none."""
        text = self.waiting(session_id)
        return self._store.start_context(session_id) if text is None else text

    def are_waiting(self) -> bool:
        return bool(self._waiting)

    def withdraw(self) -> None:
        """Withdraws contexts after forgetting: what they hold must not be stored any more."""
        self._waiting.clear()

    def of_starts(self, events: Sequence[Event]) -> dict[str, str]:
        """Returns by session what to store together with these events."""
        contexts: dict[str, str] = {}
        for event in events:
            text = self._waiting.get(event.session_id)
            if text is None:
                text = printed_context(self._layout, event)
            if text is not None:
                contexts.setdefault(event.session_id, text)
        return contexts

    def store_waiting(self, events: Sequence[Event]) -> None:
        """Stores contexts that came in the meantime, since these events are stored."""
        for session_id in {event.session_id for event in events}.intersection(self._waiting):
            self._store_one(session_id)

    def _store_one(self, session_id: str) -> None:
        text = self._waiting.get(session_id)
        if text is not None and self._store.start_context(session_id) != text:
            try:
                self._store.remember_start_context(session_id, text).result()
            except Exception as error:
                if is_of_file(error):
                    raise  # the next drain tries it again
                log.exception("the context of session %s is not stored", session_id)
        self._waiting.pop(session_id, None)


def render_all_contexts(settings: Settings, store: Store, environ: Mapping[str, str]) -> None:
    """Renders the contexts after an import, and lets a running worker process the queue.

    It renders those of all projects, because an import that was killed may have left any of them
    out of date.
    """
    home, budget = environ.get("HOME", ""), settings.context.tokens
    contexts = Contexts(settings.layout, store, home, budget)
    for project in store.projects():
        project_id = store.project_by_key(str(project["key"]))
        if project_id is not None:
            contexts.render(project_id)
    wake(os.fsencode(settings.layout.root))


def are_of_other_budget(layout: Layout, budget: int) -> bool:
    """Whether the contexts were rendered for another budget."""
    mark = layout.contexts / _BUDGET
    return mark.exists() and mark.read_text("ascii") != str(budget)


def use_budget(layout: Layout, budget: int) -> None:
    """Uses this budget for later contexts; those of another one are deleted."""
    if are_of_other_budget(layout, budget):
        clear_contexts(layout)
    write_private(layout.contexts / _BUDGET, str(budget).encode())


def clear_contexts(layout: Layout) -> None:
    for file in layout.contexts.iterdir():
        if file.name != _BUDGET:
            file.unlink(missing_ok=True)


def remove_rendered(layout: Layout, directories: Iterable[str]) -> None:
    for directory in directories:
        rendered_path(layout, directory).unlink(missing_ok=True)


def rendered_path(layout: Layout, directory: str) -> Path:
    return layout.contexts / os.fsdecode(paths.context_name(os.fsencode(directory)))


def printed_context(layout: Layout, event: Event) -> str | None:
    """The context that a hook without a response prints at this start: a resume must repeat it."""
    if event.kind == SESSION_START and event.detail.get("source") in _SOURCES_WITH_CONTEXT:
        return rendered_context(layout, event.project_dir)
    return None


def rendered_context(layout: Layout, directory: str) -> str:
    """The context that a hook without a worker prints in this directory."""
    try:
        text = json.loads(rendered_path(layout, directory).read_bytes())
    except (OSError, ValueError):
        return ""
    return text if isinstance(text, str) else ""


def _prune(layout: Layout) -> None:
    files = [file for file in layout.contexts.iterdir() if file.name != _BUDGET]
    if len(files) > MAX_FILES:
        files.sort(key=lambda file: file.stat().st_mtime)
        for file in files[: len(files) - MAX_FILES]:
            file.unlink(missing_ok=True)
