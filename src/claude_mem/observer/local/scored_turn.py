"""A turn as the models see it: its passages and titles with their scores, and its worth."""

from dataclasses import dataclass, field

from claude_mem.observer.local import weights as learned
from claude_mem.observer.local.detail import NORMAL, Detail
from claude_mem.observer.local.evidence import TurnEvidence, collect_evidence
from claude_mem.observer.local.passage_features import (
    Candidate,
    find_candidates,
    passage_features,
    turn_words,
    word_weights,
)
from claude_mem.observer.local.phrases import is_empty_phrase
from claude_mem.observer.local.title_candidates import (
    TitleCandidate,
    find_titles,
    title_features,
    turn_facts,
)
from claude_mem.observer.local.turn_features import is_evident_work, turn_features
from claude_mem.observer.local.weights import Features, Trees, Weights
from claude_mem.title_gate import is_english_text
from claude_mem.types import Turn

FEW_WORDS = 12


@dataclass(frozen=True, slots=True)
class ScoredTurn:
    evidence: TurnEvidence
    candidates: list[Candidate]
    scores: list[float]  # of the candidates
    steps: list[Candidate]  # what is left to do
    titles: list[TitleCandidate]  # the best first
    is_worth_observing: bool
    is_english: bool
    recent_memories: tuple[str, ...] = field(default=())


def score_turn(turn: Turn, detail: Detail = NORMAL) -> ScoredTurn:
    weights = learned.current()
    evidence = collect_evidence(turn)
    candidates = find_candidates(evidence)
    weight = word_weights(evidence, weights)
    of_turn = turn_words(evidence, weight)
    features = [passage_features(candidate, of_turn, weights) for candidate in candidates]
    scores = [weights.sentence.score(each) for each in features]
    steps = [
        candidate
        for candidate, each in zip(candidates, features, strict=True)
        if _is_step(candidate, each, weights.step)
    ]
    is_english = speaks_english(candidates)
    titles = find_titles(evidence, candidates, is_english=is_english)
    ranked = _rank_titles(titles, evidence, weight, weights)
    best_title = ranked[0][0] if ranked else None
    worth = weights.turn.score(turn_features(evidence, scores, best_title))
    is_likely = worth >= weights.turn.threshold + detail.margin
    is_evident = is_evident_work(evidence, candidates, is_english=is_english)
    # Where the model cannot tell, evident work is all there is.
    counts_evident = detail.always_observes_work or is_likely or not is_english
    return ScoredTurn(
        evidence=evidence,
        candidates=candidates,
        scores=scores,
        steps=steps,
        titles=[title for _, title in ranked],
        is_worth_observing=(is_evident and counts_evident)
        or (is_english and is_likely and _has_answer(candidates)),
        is_english=is_english,
        recent_memories=turn.recent_memories,
    )


def _has_answer(candidates: list[Candidate]) -> bool:
    return any(candidate.origin not in ("request", "paste") for candidate in candidates)


def _is_step(candidate: Candidate, features: Features, step: Trees) -> bool:
    """By the model, or where it says so. Steps of a plan or a request are not what is left."""
    if candidate.origin not in ("final", "statement"):
        return False
    is_step = candidate.says_what_is_left or step.score(features) >= step.threshold
    return is_step and not is_empty_phrase(candidate.text.lower())


def _rank_titles(
    titles: list[TitleCandidate],
    evidence: TurnEvidence,
    weight: dict[str, float],
    weights: Weights,
) -> list[tuple[float, TitleCandidate]]:
    facts = turn_facts(evidence, weight)
    scored = [(weights.title.score(title_features(t, facts, weights)), t) for t in titles]
    scored.sort(key=lambda pair: -pair[0])  # stable: of equal ones the first
    return scored


def speaks_english(candidates: list[Candidate]) -> bool:
    """By what was said; a few words without any sign of a language count as English."""
    spoken = ("final", "request", "statement", "paste")
    text = "\n".join(c.text for c in candidates if c.origin in spoken and c.passage.kind != "code")
    return is_english_text(text) or (text.isascii() and len(text.split()) < FEW_WORDS)
