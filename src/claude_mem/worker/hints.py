"""The response to UserPromptSubmit: a hint, if there is one and the hook still waits for it.

The event itself is in the spool; nothing of it is stored here.
"""

import asyncio
import logging
import time
from concurrent.futures import Future
from dataclasses import dataclass

from claude_mem.errors import EmbedderError
from claude_mem.hook.hint import RESPONSE_SECONDS
from claude_mem.intake import spool
from claude_mem.intake.normalisers import events_of
from claude_mem.recall.hints import Hint, Prompt, find_hint
from claude_mem.store.hints import GivenLine
from claude_mem.store.turn_lookup import PROMPT
from claude_mem.types import Event, Json
from claude_mem.worker.replies import reply
from claude_mem.worker.worker import Worker

log = logging.getLogger("claude_mem.hints")

_WARM_UP = "What did earlier sessions decide about the first steps of this project?"


async def answer_prompt(worker: Worker, record_bytes: bytes) -> dict[str, Json]:
    begun = time.monotonic()
    answer = await asyncio.to_thread(_answer, worker, record_bytes)
    if answer is None or answer.hint is None or time.monotonic() - begun > RESPONSE_SECONDS:
        return reply(spool.parse(record_bytes).header.dialect, PROMPT, "")
    lines = [
        GivenLine(line.turn_id, str(line.id), line.text, line.words, line.evidence)
        for line in answer.hint.lines
    ]
    # Not awaited: the hook waits for milliseconds, and a hint that is not stored does no harm.
    saved = worker.store.save_hint(answer.session_id, answer.project_id, lines)
    saved.add_done_callback(_log_failure)
    return reply(answer.dialect, PROMPT, answer.hint.text)


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
    """For the prompt of the record, or for this text."""
    if not worker.settings.context.hints:
        return None
    record = spool.parse(record_bytes)
    events = events_of(record)
    if not events:
        return None
    event = worker.reader.read(*events[0])
    prompt = text or event.prompt
    if not prompt or worker.reader.exclusions.cover(event.project, event.project_dir):
        return None
    project_id = worker.store.project_by_key(event.project.key)
    if project_id is None:
        return None
    hint = _find(worker, event, prompt, project_id)
    return _Answer(event.dialect, event.session_id, project_id, hint)


def _find(worker: Worker, event: Event, text: str, project_id: int) -> Hint | None:
    state = worker.store.session_state(event.session_id, event.prompt_id)
    prompt = Prompt(
        text,
        project_id,
        state.session_db_id,
        state.is_first_prompt,
        state.context,
        state.hinted_turns,
    )
    try:
        return find_hint(worker.store, prompt, worker.semantic_index)
    except EmbedderError as error:
        log.warning("no hint: %s", error)
        return None


def _log_failure(saved: "Future[None]") -> None:
    if error := saved.exception():
        log.error("a hint could not be stored", exc_info=error)
