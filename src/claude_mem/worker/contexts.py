"""Contexts rendered ahead, so that a session that starts without a worker is given one too."""

import json
import os
from pathlib import Path

from claude_mem import paths
from claude_mem.config import Layout, write_private
from claude_mem.recall.context import build_context
from claude_mem.store import Store

KEPT = 500


def render_contexts(layout: Layout, store: Store, project_id: int, budget: int) -> None:
    """One file for each directory that the project was worked on in of late."""
    literal = json.dumps(build_context(store, project_id, budget)).encode()
    for directory in store.recent_directories(project_id):
        target = rendered_path(layout, directory)
        if not target.exists() or target.read_bytes() != literal:
            write_private(target, literal)
    _prune(layout)


def rendered_path(layout: Layout, directory: str) -> Path:
    return layout.contexts / os.fsdecode(paths.context_name(os.fsencode(directory)))


def _prune(layout: Layout) -> None:
    files = list(layout.contexts.iterdir())
    if len(files) > KEPT:
        files.sort(key=lambda file: file.stat().st_mtime)
        for file in files[: len(files) - KEPT]:
            file.unlink(missing_ok=True)
