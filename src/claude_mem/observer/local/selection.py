"""Selects the passages of a turn to keep: the best ones that say something new, within a budget."""

import re
from collections.abc import Sequence
from functools import lru_cache
from math import inf, sqrt

from claude_mem.observer.local import cues
from claude_mem.observer.local.content_words import content_words, novelty
from claude_mem.observer.local.detail import NORMAL, Detail
from claude_mem.observer.local.evidence import TurnEvidence
from claude_mem.observer.local.passage_features import Candidate
from claude_mem.observer.local.phrases import is_empty_phrase
from claude_mem.observer.local.scored_turn import ScoredTurn
from claude_mem.observer.local.summaries import short_request

# Characters for the square root of the length of what was said: a long turn says much twice.
BUDGET = 14.5
MIN_CHARS, MAX_CHARS = 160, 4_000
# A turn that says little of what readers keep does not fill its budget, but says something.
LEAST_SCORE, MIN_SCORE = -4.5, -2.1
MIN_NOVELTY = 0.25  # share of new words, compared with the passages selected so far
MIN_SESSION_NOVELTY = 0.3  # and with each memory of the session's previous turns
_BARE_NAMES = re.compile(r"(?:File:\s*)?(?:[`\w/.\-()~:,*]{1,80}(?:\s+|$)){1,2}(?:\([^)]*\)\.?)?")


# The turns of a session are compared with the same memories.
_words_of_memory = lru_cache(maxsize=64)(content_words)


def budget_for(evidence: TurnEvidence, detail: Detail = NORMAL) -> int:
    """In characters."""
    normal = min(MAX_CHARS, max(MIN_CHARS, BUDGET * sqrt(evidence.said)))
    return int(normal * detail.budget)


def select_passages(scored: ScoredTurn, detail: Detail = NORMAL) -> list[Candidate]:
    """In chronological order."""
    told = {step.position for step in scored.steps}  # by the summary, like the request
    request = short_request(scored.evidence)
    told |= {c.position for c in scored.candidates if c.origin == "request" and c.text in request}
    # The scores of a language that the model was not trained on tell an order at best.
    least = LEAST_SCORE if scored.is_english else -inf
    ranked = [
        (score, candidate)
        for score, candidate in zip(scored.scores, scored.candidates, strict=True)
        if score >= least and candidate.position not in told and _says_something(candidate)
    ]
    ranked.sort(key=lambda pair: (-pair[0], pair[1].position))
    previous = [_words_of_memory(text) for text in scored.recent_memories]
    budget = budget_for(scored.evidence, detail) - sum(len(step.text) for step in scored.steps)
    selection = _Selection(budget, previous, scored.candidates)
    sure = MIN_SCORE if scored.is_english else -inf
    return selection.select([(score >= sure, candidate) for score, candidate in ranked])


def _says_something(candidate: Candidate) -> bool:
    text = candidate.text
    if candidate.passage.kind != "code" and is_empty_phrase(text.lower().replace("’", "'")):
        return False
    return not text.endswith((":", "：")) and not _BARE_NAMES.fullmatch(text)


class _Selection:
    def __init__(
        self, budget: int, previous: Sequence[frozenset[str]], candidates: Sequence[Candidate]
    ) -> None:
        self._budget, self._previous, self._candidates = budget, previous, candidates
        self._selected: dict[int, Candidate] = {}
        self._length = 0
        self._words: set[str] = set()

    def select(self, ranked: list[tuple[bool, Candidate]]) -> list[Candidate]:
        """`ranked`: with whether the score alone is enough, however much is selected already."""
        for is_sure, candidate in ranked:
            if is_sure or self._length < MIN_CHARS:
                self._add(candidate)
        return [self._selected[position] for position in sorted(self._selected)]

    def _add(self, candidate: Candidate) -> None:
        words = content_words(candidate.text)
        if candidate.position in self._selected or novelty(words, self._words) < MIN_NOVELTY:
            return
        if any(novelty(words, told) < MIN_SESSION_NOVELTY for told in self._previous):
            return
        group = [candidate, *self._antecedent(candidate)]
        length = sum(len(each.text) + 1 for each in group)
        if length > self._budget + 1 and self._selected:
            return
        self._budget -= length
        self._length += length
        for each in group:
            self._selected[each.position] = each
            self._words |= content_words(each.text)

    def _antecedent(self, candidate: Candidate) -> list[Candidate]:
        """The sentence before, if this one refers to it by a pronoun."""
        if candidate.passage.kind != "prose" or not cues.PRONOUN.match(candidate.text):
            return []
        before = self._candidates[candidate.position - 1] if candidate.position else None
        if before is None or before.position in self._selected or not _says_something(before):
            return []
        is_neighbour = before.number == candidate.number - 1 and before.origin == candidate.origin
        words = content_words(before.text)
        is_new = all(novelty(words, told) >= MIN_SESSION_NOVELTY for told in self._previous)
        return [before] if is_neighbour and is_new and before.passage.kind == "prose" else []
