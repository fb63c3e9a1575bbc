"""What the agent said between its tools: no hook is told, the transcript has it."""

import asyncio
import logging
from pathlib import Path

from claude_mem.errors import BadInput
from claude_mem.intake.dialects import Arrival, Reader
from claude_mem.intake.transcripts.transcript import Moment, statements_of
from claude_mem.store import Store
from claude_mem.store.turns import PROMPT, STATEMENT
from claude_mem.types import Event, Turn

log = logging.getLogger("claude_mem.statements")


class Statements:
    def __init__(self, store: Store, reader: Reader) -> None:
        self._store, self._reader = store, reader

    async def complete(self, turn: Turn) -> Turn:
        """The turn with what was said in it, kept in the store from then on."""
        if not turn.transcript_path:
            return turn
        events = await asyncio.to_thread(self._read, turn)
        if not events:
            return turn
        return await asyncio.wrap_future(self._store.add_statements(turn, events)) or turn

    def _read(self, turn: Turn) -> list[Event]:
        path = Path(turn.transcript_path)
        try:
            found = statements_of(path, turn, self._wording)
            return [
                statement_event(self._reader, m, turn.started_ms, turn.project_dir) for m in found
            ]
        except FileNotFoundError:
            return []  # the client keeps its transcripts for a while only, or keeps none
        except (OSError, ValueError, BadInput) as error:
            log.warning("turn %d: %s cannot be read: %s", turn.id, path.name, error)
            return []

    def _wording(self, prompt: str) -> str | None:
        return self._reader.event(Arrival(PROMPT, 0), {"session_id": "-", "prompt": prompt}).prompt


def statement_event(reader: Reader, moment: Moment, otherwise: int, project_dir: str) -> Event:
    at = moment.at_ms if moment.at_ms is not None else otherwise
    return reader.event(Arrival(STATEMENT, at, project_dir), moment.payload)
