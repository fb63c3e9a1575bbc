"""The observations of a turn: what it was about, and what the user decided in it."""

from collections.abc import Iterator, Sequence

from claude_mem.observer.local.classification import classify_concepts, classify_type
from claude_mem.observer.local.content_words import content_words, novelty
from claude_mem.observer.local.files import FileWork
from claude_mem.observer.local.passage_features import Candidate
from claude_mem.observer.local.prose import narrative_and_facts
from claude_mem.observer.local.reading import TurnReading
from claude_mem.types import Observation

MAX_FILES, MAX_FILES_READ, MAX_REPLACEMENTS = 6, 2, 4
MIN_TITLE_NOVELTY = 0.15  # a passage with fewer new words only repeats the title


def build_observations(
    reading: TurnReading, passages: list[Candidate], title: str
) -> tuple[Observation, ...]:
    evidence = reading.evidence
    if not title or not reading.is_worth_observing:
        return ()
    main = [c for c in passages if says_more_than(title, content_words(c.text))]
    type_ = classify_type(evidence.request, title, evidence.subjects, bool(evidence.files))
    narrative, facts = narrative_and_facts(main, reading.scores)
    if not narrative and not facts:
        facts = _replacements(evidence.files, reading.recent_memories)
    edits = [source for work in evidence.files.values() for source in work.sources]
    observation = Observation(
        type=type_,
        title=title,
        narrative=narrative,
        facts=facts,
        concepts=classify_concepts(type_, [candidate.text for candidate in passages]),
        files_read=evidence.files_read[:MAX_FILES_READ],
        files_modified=tuple(list(evidence.files)[:MAX_FILES]),
        sources=tuple(dict.fromkeys((*evidence.sources, *_sources(main), *edits))),
    )
    return (observation,)


def _sources(candidates: list[Candidate]) -> Iterator[int]:
    for candidate in candidates:
        yield from candidate.sources


def says_more_than(title: str, words: frozenset[str]) -> bool:
    return novelty(words, content_words(title)) > MIN_TITLE_NOVELTY


def _replacements(files: dict[str, FileWork], recent_memories: Sequence[str]) -> tuple[str, ...]:
    """The edits themselves, for a turn whose messages do not describe them."""
    replacements = [
        f"{work.path}: `{before}` became `{after}`"
        for work in files.values()
        for before, after in work.replacements
    ]
    new = [text for text in replacements if not any(text in memory for memory in recent_memories)]
    return tuple(new[:MAX_REPLACEMENTS])
