"""Memories that a user or an agent saves explicitly."""

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from claude_mem.errors import BadInput
from claude_mem.store.saved_memories import SavedMemory
from claude_mem.text import one_line, shorten
from claude_mem.types import Observation, ObservationType, Project
from claude_mem.worker.words_read import words_read

if TYPE_CHECKING:  # the commands and the MCP server read requests without a worker
    from claude_mem.worker.worker import Worker

# A title of the local observer, with its topics, is shorter: it can be edited as it is.
MAX_TEXT, MAX_TITLE, MAX_NAME = 10_000, 400, 500
_MAX_FIRST_WORDS = 100


@dataclass(frozen=True, slots=True)
class NewMemory:
    """What is private and what is secret is already removed: see `params.new_memory`."""

    text: str
    title: str = ""  # empty: the first words of the text
    type: ObservationType = "discovery"
    concepts: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    project: str = ""  # name or key of an existing project; empty: that of the directory


async def save_memory(
    worker: "Worker", memory: NewMemory, directory: str, observer: str
) -> SavedMemory:
    observation = _observation(memory)
    project = await asyncio.to_thread(_project, worker, memory.project, directory)
    if worker.reader.exclusions.cover(project, directory):
        raise BadInput(
            f"{project.name} is excluded by CLAUDE_MEM_EXCLUDED_PROJECTS: nothing was saved",
            "project",
        )
    # Naming a project does not make the directory a part of it.
    place = "" if memory.project else directory
    outside: tuple[str, ...] = ()
    if observer == "agent":
        own = worker.projects.of(directory) if directory else None
        outside = await words_read(worker, own, (observation.text, *observation.files_read))
    saved = await asyncio.wrap_future(
        worker.store.save_memory(project, place, observation, observer, outside)
    )
    worker.contexts.mark_stale(project)
    worker.announcer.memory_saved(project, saved.id)
    await worker.contexts.render_stale()
    return saved


def _observation(memory: NewMemory) -> Observation:
    text = _limited("text", memory.text, MAX_TEXT)
    if not text:
        raise BadInput("text is missing, or all of it was private", "text")
    return Observation(
        type=memory.type,
        title=_limited("title", memory.title, MAX_TITLE) or _first_words(text),
        narrative=text,
        concepts=tuple(name for name in _short("concepts", memory.concepts) if name != memory.type),
        files_read=_short("files", memory.files),
    )


def _limited(name: str, text: str, limit: int) -> str:
    text = text.strip()
    if len(text) > limit:
        raise BadInput(f"{name} is over {limit} characters", name)
    return text


def _short(name: str, values: tuple[str, ...]) -> tuple[str, ...]:
    if any(len(value) > MAX_NAME for value in values):
        raise BadInput(f"{name} has an entry of over {MAX_NAME} characters", name)
    return values


def _first_words(text: str) -> str:
    line = one_line(text.splitlines()[0])
    end = line.find(". ")
    line = line[:end] if 0 < end < _MAX_FIRST_WORDS else line
    return shorten(line, _MAX_FIRST_WORDS)


def _project(worker: "Worker", name: str, directory: str) -> Project:
    if name:
        return worker.store.project(worker.store.find_project(name))
    if not directory:
        raise BadInput("set project (name or key) or project_dir (a path)", "project")
    return worker.projects.of(directory)
