"""Which project a directory belongs to: changes by the user, and the question that asks for one."""

import asyncio
import os
import shlex
from concurrent.futures import Future
from itertools import islice
from pathlib import Path

from claude_mem.errors import BadInput, NotFound
from claude_mem.intake.git_repository import checkout_of, has_object
from claude_mem.intake.project_access import Claim
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


async def follow_checkout(worker: Worker, directory: str, project_id: int) -> None:
    """Remember which project a repository on this machine belongs to; if its origin has changed
    since, bring the project that it belonged to before."""
    decision = worker.projects.decision(directory)
    if not decision.is_accepted:
        return
    claim = await asyncio.to_thread(worker.projects.claim, directory)
    checkout = checkout_of(claim)
    if checkout is None:
        return
    main, identity, store = checkout.main, checkout.identity, worker.store
    previous = await asyncio.to_thread(store.checkout_project, main, identity)
    if previous is not None and previous.key == decision.project.key:
        return
    if previous is not None and await asyncio.to_thread(
        _is_renamed, worker, main, previous.key, decision.project.key
    ):
        await merge_projects(worker, previous, decision.project)
    await asyncio.wrap_future(store.remember_checkout(main, identity, project_id))


def _is_renamed(worker: Worker, main: str, previous: str, key: str) -> bool:
    """Whether all that is known of both projects is this one repository. The name that it has now
    may be that of a fork, or of a project that is not its own: then the user decides."""
    if worker.store.is_shared_with_team(previous):
        return False
    for place, known in worker.store.project_access().directories.items():
        if known.key in (previous, key) and Path(place).is_dir():
            claim = worker.projects.claim(place)
            if claim.main != main and (known.key == key or claim.project.key == previous):
                return False
        elif known.key == key:
            return False  # it was recorded somewhere else, which is gone
    return True


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
    question = await _changed_origin(worker, directory, decision.project, project_id)
    if question or project_id is None or not decision.is_accepted:
        return question
    return await _likely_rename(worker, directory, decision.project, project_id)


async def _likely_rename(worker: Worker, directory: str, project: Project, project_id: int) -> str:
    """Finds another project that may be this one under an earlier name."""
    store = worker.store
    requested = await asyncio.to_thread(store.with_requests_to, project)
    commits = await asyncio.to_thread(store.latest_commits, project_id)
    claim = await asyncio.to_thread(worker.projects.claim, directory)
    candidates = [(other, "has pull requests of this repository") for other in requested]
    for other, hashes in commits.items() if claim.git_dir else ():
        if other not in requested and await asyncio.to_thread(_has_commits, claim, hashes):
            candidates.append((other, "made commits of this repository"))
    for other, reason in candidates:
        if await asyncio.wrap_future(
            store.claim_one_time_message(f"likely_rename {other.key} {project.key}")
        ):
            return (
                f"claude-mem: the project {_shown(other.key)} {reason}. If it was renamed, bring"
                f" its memories: {_merge_command(other, project)}"
            )
    return ""


def _has_commits(claim: Claim, hashes: list[str]) -> bool:
    """Whether the project has two of the commits: one short hash may be that of anything."""
    found = (prefix for prefix in hashes if has_object(Path(claim.git_dir), prefix))
    return len(list(islice(found, 2))) == 2


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
        f" bring its memories: {_merge_command(previous, project)}"
    )


def _merge_command(source: Project, target: Project) -> str:
    return f"claude-mem project merge {_quoted(source.key)} {_quoted(target.key)}"


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
