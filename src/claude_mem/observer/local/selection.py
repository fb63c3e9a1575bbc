"""Selects the passages of a turn to keep: the best ones that say something new, within a budget."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from claude_mem.observer.local.evidence import Origin, TurnEvidence, collect_evidence
from claude_mem.observer.local.markdown import Passage, split_passages
from claude_mem.observer.local.scoring import Role, content_words, novelty, score_passage
from claude_mem.types import Turn

SHARE = 0.175  # of the text of a turn
MIN_CHARS, MAX_CHARS = 400, 3200
FINAL_SHARE = 0.65  # of the budget goes to the last message first
LENGTH_OFFSET, LENGTH_POWER = 100, 0.65
MIN_NOVELTY = 0.4  # share of new words, compared with the passages selected so far
MIN_SESSION_NOVELTY = 0.3  # and with each memory of the session's previous turns
MIN_SCORE = 0.9

# The last message tells best how a turn ended; much of what comes before it did not last.
_WEIGHTS: dict[Origin, dict[Role, float]] = {
    "plan": {"problem": 1.0, "cause": 1.0, "decision": 0.9, "change": 0.5, "outcome": 0.5,
             "next": 0.5, "none": 0.1},
    "request": {"problem": 0.9, "cause": 0.9, "decision": 0.9, "change": 0.7, "outcome": 0.7,
                "next": 0.5, "none": 0.5},
    "statement": {"problem": 0.6, "cause": 0.8, "decision": 0.75, "change": 0.35, "outcome": 0.4,
                  "next": 0.2, "none": 0.3},
    "final": {"problem": 1.2, "cause": 1.4, "decision": 1.25, "change": 1.2, "outcome": 1.0,
              "next": 0.9, "none": 0.6},
}  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    passage: Passage
    role: Role
    words: frozenset[str]
    score: float  # weighted by origin and role
    position: int
    origin: Origin
    sources: tuple[int, ...]

    @property
    def text(self) -> str:
        return self.passage.text

    @property
    def value(self) -> float:
        """Score by length: two short passages are better than one long one."""
        return self.score / float((len(self.text) + LENGTH_OFFSET) ** LENGTH_POWER)


@dataclass(frozen=True, slots=True)
class TurnSelection:
    """What the memories of a turn are built from."""

    evidence: TurnEvidence
    passages: list[Candidate]  # the selected ones
    final: list[Candidate]  # all of the last message, but for next steps
    recent_memories: tuple[str, ...]


def select_from_turn(turn: Turn) -> TurnSelection:
    evidence = collect_evidence(turn)
    candidates = find_candidates(evidence)
    previous = [content_words(text) for text in turn.recent_memories]
    return TurnSelection(
        evidence=evidence,
        passages=select_passages(candidates, budget_for(evidence), previous),
        final=[c for c in candidates if c.origin == "final" and c.role not in ("next", "none")],
        recent_memories=turn.recent_memories,
    )


def find_candidates(evidence: TurnEvidence) -> list[Candidate]:
    """All passages with content, in chronological order."""
    short_names = _short_names(evidence.files)
    candidates: list[Candidate] = []
    for source in evidence.texts():
        weights = _WEIGHTS[source.origin]
        for passage in split_passages(_with_short_names(source.text, short_names)):
            scored = score_passage(passage)
            if scored.score:
                score = scored.score * weights[scored.role]
                candidates.append(
                    Candidate(
                        passage, scored.role, scored.words, score, len(candidates),
                        source.origin, source.sources,
                    )
                )  # fmt: skip
    return candidates


def select_passages(
    candidates: Iterable[Candidate], budget: int, previous: Sequence[frozenset[str]]
) -> list[Candidate]:
    """In chronological order. `previous`: the words of each memory of the previous turns."""
    good = [candidate for candidate in candidates if candidate.score >= MIN_SCORE]
    good.sort(key=lambda candidate: (-candidate.value, candidate.position))
    return _Selection(budget, previous).select(good)


def budget_for(evidence: TurnEvidence) -> int:
    """In characters."""
    length = sum(len(source.text) for source in evidence.texts())
    return min(MAX_CHARS, max(MIN_CHARS, int(SHARE * length)))


class _Selection:
    def __init__(self, budget: int, previous: Sequence[frozenset[str]]) -> None:
        self._budget, self._previous = budget, previous
        self._selected: list[Candidate] = []
        self._words: set[str] = set()

    def select(self, candidates: list[Candidate]) -> list[Candidate]:
        """First from the last message, up to its share of the budget; then from all."""
        reserve = self._budget - int(self._budget * FINAL_SHARE)
        self._budget -= reserve
        remaining = [c for c in candidates if c.origin != "final" or not self._add(c)]
        self._budget += reserve
        for candidate in remaining:
            self._add(candidate)
        return sorted(self._selected, key=lambda candidate: candidate.position)

    def _add(self, candidate: Candidate) -> bool:
        if len(candidate.text) > self._budget:
            return False
        if novelty(candidate.words, self._words) < MIN_NOVELTY:
            return False
        if any(novelty(candidate.words, words) < MIN_SESSION_NOVELTY for words in self._previous):
            return False
        self._selected.append(candidate)
        self._words |= candidate.words
        self._budget -= len(candidate.text) + 1
        return True


def _short_names(files: Iterable[str]) -> dict[str, str]:
    """The name of each file by its path, where the name is unique: memories list the paths."""
    paths_by_name: dict[str, list[str]] = {}
    for path in files:
        paths_by_name.setdefault(path.replace("\\", "/").rsplit("/", 1)[-1], []).append(path)
    return {paths[0]: name for name, paths in paths_by_name.items() if len(paths) == 1 != len(name)}


def _with_short_names(text: str, short_names: dict[str, str]) -> str:
    for path, name in short_names.items():
        if path in text:
            text = text.replace(path, name)
    return text
