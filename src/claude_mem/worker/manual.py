"""Remembering by hand: what a person or an agent says is to be kept, cleaned like all the rest."""

import asyncio

from claude_mem.errors import BadInput
from claude_mem.recall.parameters import Params, known, names, text
from claude_mem.store.manual import SavedMemory
from claude_mem.types import OBSERVATION_TYPES, Json, Observation, Project
from claude_mem.worker.loop import Worker

SAVING = ("text", "title", "type", "concepts", "files", "project")
LONGEST_TEXT, LONGEST_TITLE, LONGEST_NAME = 10_000, 200, 500
_SHOWN = 100


async def remember(worker: Worker, given: Params, directory: str, observer: str) -> SavedMemory:
    """`save_memory`, by its parameters; what is private in them has gone before."""
    known(given, SAVING)
    observation = _observation(worker, given)
    project = await asyncio.to_thread(project_of, worker, text(given, "project"), directory)
    saved = await asyncio.wrap_future(
        worker.store.save_manual(project, directory, observation, observer)
    )
    await worker.render_contexts([project.key])
    worker.feed.tell({"type": "memory", "project": project.name, "observations": 1})
    return saved


def _observation(worker: Worker, given: Params) -> Observation:
    clean = worker.reader.redactor.redact_json(dict(given))
    assert isinstance(clean, dict)
    said = _limited(clean, "text", LONGEST_TEXT)
    if not said:
        raise BadInput("text is missing, or all of it was private", "text")
    kind = text(clean, "type") or "discovery"
    if kind not in OBSERVATION_TYPES:
        raise BadInput(f"type is none of {', '.join(OBSERVATION_TYPES)}", "type")
    return Observation(
        type=kind,
        title=_limited(clean, "title", LONGEST_TITLE) or _first_words(said),
        narrative=said,
        concepts=tuple(name for name in _short(clean, "concepts") if name != kind),
        files_read=_short(clean, "files"),
    )


def _limited(given: dict[str, Json], name: str, longest: int) -> str:
    said = (text(given, name) or "").strip()
    if len(said) > longest:
        raise BadInput(f"{name} is over {longest} characters", name)
    return said


def _short(given: dict[str, Json], name: str) -> tuple[str, ...]:
    found = names(given, name)
    if any(len(one) > LONGEST_NAME for one in found):
        raise BadInput(f"{name} has an entry of over {LONGEST_NAME} characters", name)
    return found


def _first_words(said: str) -> str:
    line = " ".join(said.splitlines()[0].split())
    end = line.find(". ")
    line = line[:end] if 0 < end < _SHOWN else line
    return line if len(line) <= _SHOWN else line[: _SHOWN - 1] + "…"


def project_of(worker: Worker, name: str | None, directory: str) -> Project:
    """One that is known by this name, or that of the directory."""
    if name:
        return worker.store.project(worker.store.find_project(name))
    if not directory:
        raise BadInput("say which project: project=<name or key>, or project_dir=<path>", "project")
    return worker.projects.of(directory)
