"""A session as the predecessor's rows tell it: its turns, and which of them a memory belongs to."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from claude_mem.store.transfer.typescript.values import number_of, time_of
from claude_mem.types import Observation, SessionStatus, Summary


@dataclass(slots=True)
class OldTurn:
    number: int
    at: int
    prompt: str | None = None
    is_private: bool = False
    summary: tuple[int, Summary] | None = None  # with its time
    observations: list[tuple[int, int, str | None, Observation]] = field(default_factory=list)
    """Each with its id there, its time and the model that wrote it."""


@dataclass(frozen=True, slots=True)
class OldSession:
    content_session_id: str
    memory_session_id: str | None
    project: str
    title: str | None
    status: SessionStatus
    started_at: int
    updated_at: int
    turns: tuple[OldTurn, ...]


class Turns:
    """A session's turns by number; what has none goes to the turn of its time."""

    def __init__(self, started: int | None) -> None:
        self._started = started
        self._turns: dict[int, OldTurn] = {}
        self._had_prompts = False

    def add_prompt(self, row: Mapping[str, Any], text: str | None, is_private: bool) -> None:
        number = number_of(row.get("prompt_number")) or max(self._turns, default=0) + 1
        if number in self._turns:  # its numbers began anew
            number = max(self._turns) + 1
        at = time_of(row, "created_at") or self._started or 0
        self._turns[number] = OldTurn(number, at, text, is_private)
        self._had_prompts = True

    def of(self, number: int | None, at: int) -> OldTurn:
        if number is None:
            number = self._number_at(at)
        return self._turns.setdefault(number, OldTurn(number, at))

    def of_summary(self, number: int | None, at: int) -> OldTurn:
        """Without prompts and numbers, each summary tells of a turn of its own."""
        if number is None and not self._had_prompts:
            number = max(self._turns, default=0) + 1
        return self.of(number, at)

    def _number_at(self, at: int) -> int:
        """The last that had begun then; without prompts, the first whose summary came after."""
        turns = sorted(self._turns.values(), key=lambda turn: turn.at)
        if not self._had_prompts:
            return next((t.number for t in turns if t.at >= at), turns[-1].number if turns else 1)
        begun = [turn.number for turn in turns if turn.at <= at]
        return begun[-1] if begun else turns[0].number

    def in_order(self) -> tuple[OldTurn, ...]:
        return tuple(self._turns[number] for number in sorted(self._turns))


def times_of(turn: OldTurn) -> list[int]:
    summary = [turn.summary[0]] if turn.summary else []
    return [turn.at, *summary, *(at for _, at, _, _ in turn.observations)]
