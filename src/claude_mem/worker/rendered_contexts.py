"""Rendered contexts on disk, for sessions that start while no worker is running."""

import json
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from claude_mem import paths
from claude_mem.config import Layout, Settings, write_private
from claude_mem.hook.wake import wake
from claude_mem.intake.git_head import current_branch
from claude_mem.intake.rule_files import read_rule_files
from claude_mem.recall.context import build_context
from claude_mem.store import Store
from claude_mem.types import SESSION_START, Event, Project

MAX_FILES = 500
_BUDGET = ".budget"
_SOURCES_WITH_CONTEXT = ("startup", "clear", "compact")


class StaleContexts:
    """The projects whose memories changed since their contexts were rendered."""

    def __init__(self) -> None:
        self._keys: set[str] = set()

    def add(self, *projects: Project) -> None:
        self._keys.update(project.key for project in projects)

    def add_all(self, store: Store) -> None:
        self._keys.update(str(project["key"]) for project in store.projects())

    def take(self) -> set[str]:
        """Their keys, each once."""
        taken, self._keys = self._keys, set()
        return taken


Build = Callable[[int, int, str, str], str]  # project, budget, rule files and branch


def render_contexts(
    layout: Layout,
    store: Store,
    project_id: int,
    budget: int,
    home: str,
    build: Build | None = None,
) -> None:
    """One file for each directory in which the project was used recently, for its branch at that
    time. `build` may have a context of the current memories."""
    for directory in store.recent_directories(project_id):
        rules, branch = read_rule_files(directory, home), current_branch(directory)
        if build is not None:
            text = build(project_id, budget, rules, branch)
        else:
            text = build_context(store, project_id, budget, rule_files=rules, branch=branch)
        literal = json.dumps(text).encode()
        target = rendered_path(layout, directory)
        if not target.exists() or target.read_bytes() != literal:
            write_private(target, literal)
    _prune(layout)


def refresh_contexts(settings: Settings, store: Store, environ: Mapping[str, str]) -> None:
    """After an import: render the contexts, and let a running worker process the queue.

    Of all projects, because an import that was killed may have left any of them out of date.
    """
    budget = settings.context.tokens
    for project in store.projects():
        project_id = store.project_by_key(str(project["key"]))
        if project_id is not None:
            render_contexts(settings.layout, store, project_id, budget, environ.get("HOME", ""))
    wake(os.fsencode(settings.layout.root))


def are_of_other_budget(layout: Layout, budget: int) -> bool:
    """Whether the contexts were rendered for another budget."""
    mark = layout.contexts / _BUDGET
    return mark.exists() and mark.read_text("ascii") != str(budget)


def use_budget(layout: Layout, budget: int) -> None:
    """For contexts from now on; those of another one are deleted."""
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
