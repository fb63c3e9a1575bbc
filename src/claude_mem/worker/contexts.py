"""Contexts rendered ahead, so that a session that starts without a worker is given one too."""

import json
import os
from collections.abc import Iterable
from pathlib import Path

from claude_mem import paths
from claude_mem.config import Layout, write_private
from claude_mem.recall.context import build_context
from claude_mem.store import Store

KEPT = 500
_BUDGET = ".budget"


def render_contexts(layout: Layout, store: Store, project_id: int, budget: int) -> None:
    """One file for each directory that the project was worked on in of late."""
    literal = json.dumps(build_context(store, project_id, budget)).encode()
    for directory in store.recent_directories(project_id):
        target = rendered_path(layout, directory)
        if not target.exists() or target.read_bytes() != literal:
            write_private(target, literal)
    _prune(layout)


def clear_contexts_of_another_budget(layout: Layout, budget: int) -> bool:
    """Whether the setting has changed since: then a cold start shall not give them."""
    mark = layout.contexts / _BUDGET
    changed = mark.exists() and mark.read_text("ascii") != str(budget)
    if changed:
        for file in layout.contexts.iterdir():
            file.unlink()
    write_private(mark, str(budget).encode())
    return changed


def remove_rendered(layout: Layout, directories: Iterable[str]) -> None:
    for directory in directories:
        rendered_path(layout, directory).unlink(missing_ok=True)


def rendered_path(layout: Layout, directory: str) -> Path:
    return layout.contexts / os.fsdecode(paths.context_name(os.fsencode(directory)))


def rendered_context(layout: Layout, directory: str) -> str:
    """What a hook without a worker gives in this directory."""
    try:
        text = json.loads(rendered_path(layout, directory).read_bytes())
    except (OSError, ValueError):
        return ""
    return text if isinstance(text, str) else ""


def _prune(layout: Layout) -> None:
    files = [file for file in layout.contexts.iterdir() if file.name != _BUDGET]
    if len(files) > KEPT:
        files.sort(key=lambda file: file.stat().st_mtime)
        for file in files[: len(files) - KEPT]:
            file.unlink(missing_ok=True)
