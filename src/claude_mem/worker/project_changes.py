"""Which project a directory belongs to: changes by the user, and the question that asks for one."""

import asyncio
import os
import shlex
from concurrent.futures import Future
from pathlib import Path

from claude_mem.errors import BadInput, NotFound
from claude_mem.store.project_assignments import Moved
from claude_mem.text import one_line, shorten, without_controls
from claude_mem.types import Project
from claude_mem.worker.contexts import remove_rendered
from claude_mem.worker.worker import Worker

LONGEST_KEY = 120


async def join_directory(worker: Worker, directory: str) -> Moved:
    """Give a directory the memory of the project that its git origin names."""
    worker.projects.drop_cached(directory)
    decision = await asyncio.to_thread(worker.projects.decision, directory)
    if decision.claimed is None or decision.own is None:
        raise BadInput(
            f"{directory} already belongs to the project {decision.project.key}", "directory"
        )
    own, claimed = decision.own, decision.claimed
    return await _apply(worker, worker.store.join_directory(own.key, own, claimed))


async def join_own_project(worker: Worker, own: Project, target: Project) -> None:
    await _apply(worker, worker.store.join_directory(own.key, own, target))


async def split_directory(worker: Worker, directory: str) -> Moved:
    """Make a directory, and everything below it, a project of its own."""
    path = _existing(directory)
    target = Project(path, Path(path).name or path)
    worker.projects.drop_cached(directory)
    decision = await asyncio.to_thread(worker.projects.decision, directory)
    if decision.project.key == target.key and decision.claimed is None:
        raise BadInput(f"{path} is a project of its own already", "directory")
    return await _apply(worker, worker.store.assign_directory(path, target))


async def move_directory(worker: Worker, directory: str, name: str) -> Moved:
    """Give a directory, everything below it and its sessions to another project."""
    target = worker.store.project(worker.store.find_project(name))
    return await _apply(worker, worker.store.assign_directory(_existing(directory), target))


async def merge_projects(worker: Worker, source: Project, target: Project) -> Moved:
    """Move everything of one project to another, also what claims its key later."""
    return await _apply(worker, worker.store.merge_projects(source, target))


async def project_question(worker: Worker, directory: str, project_id: int | None) -> str:
    """A line for the user, once: about a project that the directory claims or belonged to."""
    decision = worker.projects.decision(directory)
    if decision.claimed is not None and decision.own is not None:
        claimed = decision.claimed
        if not await asyncio.wrap_future(worker.store.is_new_claim(decision.own.key, claimed.key)):
            return ""
        return (
            f"claude-mem: this directory says that it is {_shown(claimed.key)}, which has memories"
            " from other directories. It is recorded on its own. To give it those memories, run"
            " this here: claude-mem project join"
        )
    return await _changed_origin(worker, directory, decision.project, project_id)


async def _changed_origin(
    worker: Worker, directory: str, project: Project, project_id: int | None
) -> str:
    if project_id is None or not directory:
        return ""
    previous = await asyncio.to_thread(worker.store.previous_project, directory, project_id)
    if previous is None or not await asyncio.wrap_future(
        worker.store.claim_one_time_message(
            f"changed_origin {directory} {previous.key} {project.key}"
        )
    ):
        return ""
    return (
        f"claude-mem: sessions in this directory belonged to {_shown(previous.key)} before. To"
        f" bring its memories: claude-mem project merge {_quoted(previous.key)}"
        f" {_quoted(project.key)}"
    )


def _shown(key: str) -> str:
    """A repository chooses its origin: it must not forge lines or commands."""
    return shorten(one_line(without_controls(key)), LONGEST_KEY)


def _quoted(key: str) -> str:
    return shlex.quote(one_line(without_controls(key)))


def _existing(directory: str) -> str:
    path = os.path.realpath(directory)
    if not directory or not Path(path).is_dir():
        raise NotFound(f"there is no directory {directory}")
    return path


async def _apply(worker: Worker, change: "Future[Moved]") -> Moved:
    moved = await asyncio.wrap_future(change)
    worker.projects.drop_all()
    remove_rendered(worker.settings.layout, moved.directories)
    worker.contexts.mark_stale(*moved.changed)
    worker.wake()
    return moved
