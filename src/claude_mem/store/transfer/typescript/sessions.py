"""A session of the TypeScript database: its turns, and the memories of each."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from claude_mem.store.transfer.typescript.values import number_of, time_of
from claude_mem.types import Observation, SessionStatus, Summary


@dataclass(frozen=True, slots=True)
class LegacyObservation:
    row_id: int
    created_ms: int
    model: str | None
    observation: Observation


@dataclass(frozen=True, slots=True)
class LegacySummary:
    created_ms: int
    summary: Summary


@dataclass(slots=True)
class LegacyTurn:
    number: int
    started_ms: int
    prompt: str | None = None
    is_private: bool = False
    summary: LegacySummary | None = None
    observations: list[LegacyObservation] = field(default_factory=list)

    def times(self) -> list[int]:
        summarised = [self.summary.created_ms] if self.summary else []
        return [self.started_ms, *summarised, *(legacy.created_ms for legacy in self.observations)]


@dataclass(frozen=True, slots=True)
class LegacySession:
    content_session_id: str
    memory_session_id: str | None
    project: str
    title: str | None
    status: SessionStatus
    started_ms: int
    updated_ms: int
    turns: tuple[LegacyTurn, ...]


class TurnBuilder:
    """A session's turns by number. A memory without a number belongs to the turn of its time."""

    def __init__(self, started_ms: int | None) -> None:
        self._started_ms = started_ms
        self._turns: dict[int, LegacyTurn] = {}
        self._has_prompts = False

    def add_prompt(self, row: Mapping[str, Any], text: str | None, is_private: bool) -> None:
        number = number_of(row.get("prompt_number")) or self._next_number()
        if number in self._turns:  # a resumed session counts from 1 again
            number = self._next_number()
        started_ms = time_of(row, "created_at") or self._started_ms or 0
        self._turns[number] = LegacyTurn(number, started_ms, text, is_private)
        self._has_prompts = True

    def turn_of_observation(self, number: int | None, ms: int) -> LegacyTurn:
        if number is None:
            number = self._number_at(ms)
        return self._turns.setdefault(number, LegacyTurn(number, ms))

    def turn_of_summary(self, number: int | None, ms: int) -> LegacyTurn:
        """Returns a summary's turn; without prompts and numbers, each makes one of its own."""
        if number is None and not self._has_prompts:
            number = self._next_number()
        return self.turn_of_observation(number, ms)

    def _next_number(self) -> int:
        return max(self._turns, default=0) + 1

    def _number_at(self, ms: int) -> int:
        """The last turn that had started; without prompts, the first that was summarised later."""
        turns = sorted(self._turns.values(), key=lambda turn: turn.started_ms)
        if not self._has_prompts:
            later = (turn.number for turn in turns if turn.started_ms >= ms)
            return next(later, turns[-1].number if turns else 1)
        started = [turn.number for turn in turns if turn.started_ms <= ms]
        return started[-1] if started else turns[0].number

    def in_order(self) -> tuple[LegacyTurn, ...]:
        return tuple(self._turns[number] for number in sorted(self._turns))
