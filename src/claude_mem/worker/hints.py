"""The response to UserPromptSubmit, and to PreToolUse if it is set: a hint, if there is one and
the hook still waits for it.

The event itself is in the spool; nothing of it is stored here.
"""

import asyncio
import json
import logging
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass

from claude_mem.errors import EmbedderError
from claude_mem.hook.response import HINT_SECONDS
from claude_mem.index.embedders.embedder import time_limit
from claude_mem.intake import spool
from claude_mem.intake.working_directory import current_branch
from claude_mem.observer.local.tool_uses import relative
from claude_mem.recall.branch_turns import names_a_branch
from claude_mem.recall.file_hints import find_file_hint
from claude_mem.recall.hint_lines import Hint
from claude_mem.recall.hints import Prompt, find_hint
from claude_mem.store.given_hints import GivenLine
from claude_mem.types import PROMPT, Event, HookAnswer
from claude_mem.worker.worker import Worker

log = logging.getLogger("claude_mem.hints")

PRE_TOOL = "PreToolUse"
PATHS = ("file_path", "notebook_path", "path")  # of Read, Edit and Write; of a notebook
_WARM_UP = "What did earlier sessions decide about the first steps of this project?"


async def answer_prompt(worker: Worker, record_bytes: bytes) -> HookAnswer:
    return await _reply(worker, record_bytes, PROMPT, _answer)


async def answer_tool(worker: Worker, record_bytes: bytes) -> HookAnswer:
    """What is known of the file that a tool is about to read or edit."""
    return await _reply(worker, record_bytes, PRE_TOOL, _answer_tool)


async def _reply(
    worker: Worker,
    record_bytes: bytes,
    kind: str,
    find: Callable[[Worker, bytes], "_Answer | None"],
) -> HookAnswer:
    begun = time.monotonic()
    answer = await asyncio.to_thread(find, worker, record_bytes)
    if answer is None or answer.hint is None or time.monotonic() - begun > HINT_SECONDS:
        return HookAnswer(spool.parse(record_bytes).header.dialect, kind, "")
    lines = [
        GivenLine(line.turn_id, str(line.id), line.text, line.words, line.evidence)
        for line in answer.hint.lines
    ]
    # After the response, for which the hook waits: the writer would take turns with it. Not awaited
    # either, since a hint that is not stored does no harm.
    asyncio.get_running_loop().call_soon(_save, worker, answer, lines)
    return HookAnswer(answer.dialect, kind, answer.hint.text)


async def warm_up(worker: Worker, record_bytes: bytes) -> None:
    """Loads what hints for this session's project need, so that its first prompt need not wait."""
    await asyncio.to_thread(_answer, worker, record_bytes, _WARM_UP)


@dataclass(frozen=True, slots=True)
class _Answer:
    dialect: str
    session_id: str
    project_id: int
    hint: Hint | None


def _answer(worker: Worker, record_bytes: bytes, text: str = "") -> _Answer | None:
    """Answers for the prompt of the record, or for this text."""
    if not worker.settings.context.hints:
        return None
    event, project_id = _event(worker, record_bytes)
    prompt = text or (event.prompt if event else "")
    if event is None or project_id is None or not prompt:
        return None
    hint = _find(worker, event, prompt, project_id)
    return _Answer(event.dialect, event.session_id, project_id, hint)


def _answer_tool(worker: Worker, record_bytes: bytes) -> _Answer | None:
    if not worker.settings.context.file_hints:
        return None
    event, project_id = _event(worker, record_bytes)
    path = _path_of(event) if event else ""
    if event is None or project_id is None or not path:
        return None
    state = worker.store.session_state(event.session_id, event.prompt_id)
    gotchas = worker.store.gotchas_of_file(project_id, path)
    outside = worker.store.outside_words(project_id)
    hint = find_file_hint(path, gotchas, state.context, state.hinted_turns, outside)
    return _Answer(event.dialect, event.session_id, project_id, hint)


def _path_of(event: Event) -> str:
    """Returns the path relative to the project; empty if the tool names no file."""
    params = json.loads(event.tool_input or "null")
    values = [params.get(name) for name in PATHS] if isinstance(params, dict) else []
    path = next((value for value in values if isinstance(value, str)), "")
    return relative(path, event.project_dir)


def _event(worker: Worker, record_bytes: bytes) -> tuple[Event | None, int | None]:
    """The event of the record and its project; none of a project that is excluded or unknown."""
    events = spool.events_of(spool.parse(record_bytes))
    if not events:
        return None, None
    event = worker.reader.read(*events[0])
    if worker.reader.exclusions.cover(event.project, event.project_dir):
        return None, None
    return event, worker.store.project_by_key(event.project.key)


def _find(worker: Worker, event: Event, text: str, project_id: int) -> Hint | None:
    state = worker.store.session_state(event.session_id, event.prompt_id)
    names_branch = state.is_first_prompt and names_a_branch(text)
    prompt = Prompt(
        text,
        project_id,
        state.session_db_id,
        state.is_first_prompt,
        state.context or worker.unsaved_contexts.waiting(event.session_id) or "",
        state.hinted_turns,
        branch=current_branch(event.project_dir) if names_branch else "",
    )
    try:
        with time_limit():
            return find_hint(worker.store, prompt, worker.semantic_index)
    except EmbedderError as error:
        log.warning("no hint: %s", error)
        return None


def _save(worker: Worker, answer: _Answer, lines: list[GivenLine]) -> None:
    saved = worker.store.save_hint(answer.session_id, answer.project_id, lines)
    saved.add_done_callback(_log_failure)


def _log_failure(saved: "Future[None]") -> None:
    if error := saved.exception():
        log.error("a hint could not be stored", exc_info=error)
