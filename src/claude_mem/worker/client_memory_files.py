"""Keeps the notes of clients searchable: read again when a session of the project starts."""

import asyncio
import json
import logging
from pathlib import Path

from claude_mem.config.pausing import current_pause
from claude_mem.hook.private_text import strip_private
from claude_mem.intake import spool
from claude_mem.intake.client_memory_files import (
    NoteFile,
    claude_directory,
    codex_directory,
    read_client_memory,
)
from claude_mem.store.client_memory_files import NoteMemory
from claude_mem.text import one_line, shorten
from claude_mem.types import Observation, Project
from claude_mem.worker.words_read import words_read
from claude_mem.worker.worker import Worker

log = logging.getLogger("claude_mem.client_memory_files")

CLAUDE, CODEX = "claude", "codex"
CODEX_PROJECT = Project("~/.codex/memories", "codex memories")  # they are of no single project
CONCEPT = "memory-file"
LONGEST_TITLE = 120
LONGEST_HEAD, _HEAD_LINES = 4_000, 40
_FIELD = "description:"


async def refresh_client_memory(worker: Worker, record_bytes: bytes) -> None:
    """Refreshes the notes for the project of a SessionStart; a failure is logged."""
    try:
        await _refresh(worker, record_bytes)
    except Exception:
        log.exception("the memory files of the client were not read")


async def _refresh(worker: Worker, record_bytes: bytes) -> None:
    record = spool.parse(record_bytes)
    event = await asyncio.to_thread(worker.reader.read, *spool.events_of(record)[0])
    if not worker.environ.get("HOME") or current_pause(worker.settings.layout) is not None:
        return
    if worker.reader.exclusions.cover(event.project, event.project_dir):
        return
    home = Path(worker.environ["HOME"])
    config = Path(worker.environ.get("CLAUDE_CONFIG_DIR") or home / ".claude")
    places = (
        (CLAUDE, event.project, claude_directory(config, event.project_dir), event.project_dir),
        (CODEX, CODEX_PROJECT, codex_directory(home), ""),
    )
    for client, project, directory, project_dir in places:
        files = await asyncio.to_thread(_memories, worker, directory)
        if not await asyncio.to_thread(worker.store.has_client_memory, project, client, files):
            read = await words_read(
                worker, event.project, [file.observation.text for file in files]
            )
            saving = worker.store.save_client_memory(project, project_dir, client, files, read)
            changed = await asyncio.wrap_future(saving)
            log.info("%d memories of files of %s changed", changed, client)


def _memories(worker: Worker, directory: Path) -> list[NoteMemory]:
    if not worker.settings.capture.client_memory:
        return []
    return [_memory(worker, file) for file in read_client_memory(directory)]


def _memory(worker: Worker, file: NoteFile) -> NoteMemory:
    plain: str = json.loads(strip_private(json.dumps(file.text).encode()))
    text = worker.reader.redactor.redact(plain).strip()
    return NoteMemory(
        file.path,
        Observation(
            "discovery",
            title=_title(text, Path(file.path).name),
            narrative=text or None,
            concepts=(CONCEPT,),
            files_read=(file.path,),
        ),
        file.modified_ms,
    )


def _title(text: str, name: str) -> str:
    """Makes a title of the name with its description, or its first heading."""
    lines = text[:LONGEST_HEAD].splitlines()[:_HEAD_LINES]
    described = (line[len(_FIELD) :] for line in lines if line.startswith(_FIELD))
    headings = (line.lstrip("#") for line in lines if line.startswith("#"))
    about = next((one_line(line) for line in (*described, *headings) if line.strip()), "")
    return shorten(f"{name}: {about}" if about else name, LONGEST_TITLE)
