"""The observations of a turn: what it was about, and in a long turn the decisions apart."""

from collections.abc import Sequence

from claude_mem.observer.local import titles
from claude_mem.observer.local.classification import classify_concepts, classify_type
from claude_mem.observer.local.evidence import TurnEvidence
from claude_mem.observer.local.files import FileWork
from claude_mem.observer.local.prose import facts_of, narrative_of
from claude_mem.observer.local.scoring import (
    content_words,
    count_names,
    describes_choice,
    novelty,
)
from claude_mem.observer.local.selection import MIN_CHARS, Candidate, TurnSelection
from claude_mem.observer.local.turn_titles import headline
from claude_mem.types import Observation

MAX_FILES, MAX_REPLACEMENTS = 8, 4
MIN_TITLE_NOVELTY = 0.2  # a passage with fewer new words only repeats the title
LONG_TURN = 1600  # characters of passages from which decisions become their own observation


def build_observations(selection: TurnSelection, title: str) -> tuple[Observation, ...]:
    evidence = selection.evidence
    passages = [c for c in selection.passages if c.role not in ("next", "none")]
    if titles.is_commit_request(evidence.request.text):
        passages = [candidate for candidate in passages if _is_named_cause(candidate)]
        title = headline(passages, "final", ("cause",)) or headline(
            passages, "statement", ("cause",)
        )
    if not title or not _is_worth_observing(evidence, passages):
        return ()
    decisions = _decisions(passages)
    main = _beyond_title(title, [c for c in passages if c not in decisions])
    type_ = classify_type(evidence.request, title, evidence.commands.subjects, bool(evidence.files))
    narrative, facts = narrative_of(main), facts_of(main)
    if not narrative and not facts:
        facts = _replacements(evidence.files, selection.recent_memories)
    edits = [source for work in evidence.files.values() for source in work.sources]
    first = Observation(
        type=type_,
        title=title,
        narrative=narrative,
        facts=facts,
        concepts=classify_concepts(type_, {candidate.role for candidate in passages}),
        files_modified=tuple(list(evidence.files)[:MAX_FILES]),
        sources=(*evidence.sources, *edits),
    )
    return (first, *_decision_observation(decisions, evidence))


def _is_worth_observing(evidence: TurnEvidence, passages: list[Candidate]) -> bool:
    """Requests like "commit" or "go on" often add nothing that the summary does not say."""
    request = evidence.request
    if titles.is_commit_request(request.text):
        return bool(passages)
    if evidence.files:
        return True
    if titles.is_bare_request(request.text) and not request.plan:
        return any(_is_named_cause(candidate) for candidate in passages)
    return bool(passages)


def _is_named_cause(candidate: Candidate) -> bool:
    return candidate.role == "cause" and count_names(candidate.text) > 1


def says_more_than(title: str, words: frozenset[str]) -> bool:
    return novelty(words, content_words(title)) > MIN_TITLE_NOVELTY


def _beyond_title(title: str, candidates: list[Candidate]) -> list[Candidate]:
    return [candidate for candidate in candidates if says_more_than(title, candidate.words)]


def _replacements(files: dict[str, FileWork], recent_memories: Sequence[str]) -> tuple[str, ...]:
    """The edits themselves, for a turn whose messages do not describe them."""
    replacements = [
        f"{work.path}: `{before}` became `{after}`"
        for work in files.values()
        for before, after in work.replacements
    ]
    new = [text for text in replacements if not any(text in memory for memory in recent_memories)]
    return tuple(new[:MAX_REPLACEMENTS])


def _decisions(passages: list[Candidate]) -> list[Candidate]:
    """Of a long turn: decisions hold longer than the change that they were made for."""
    if sum(len(candidate.text) for candidate in passages) < LONG_TURN:
        return []
    decisions = [c for c in passages if describes_choice(c.words) and c.role != "problem"]
    length = sum(len(candidate.text) for candidate in decisions)
    return decisions if length >= MIN_CHARS else []


def _decision_observation(
    decisions: list[Candidate], evidence: TurnEvidence
) -> tuple[Observation, ...]:
    if not decisions:
        return ()
    choices = (titles.from_sentence(candidate.text) for candidate in decisions)
    observation = Observation(
        type="decision",
        title=next((title for title in choices if title), "Choices made on the way"),
        narrative=narrative_of(decisions),
        facts=facts_of(decisions),
        concepts=("trade-off",),
        sources=evidence.sources,
    )
    return (observation,)
