"""The observations of a turn: what it was about, and what the user decided in it."""

import re
from collections.abc import Collection, Iterator, Sequence

from claude_mem.observer.local import cues
from claude_mem.observer.local.content_words import content_words, novelty
from claude_mem.observer.local.files import FileWork
from claude_mem.observer.local.passage_features import Candidate
from claude_mem.observer.local.prose import narrative_and_facts
from claude_mem.observer.local.scored_turn import ScoredTurn
from claude_mem.observer.local.user_request import Request
from claude_mem.types import Observation, ObservationType

MAX_FILES, MAX_FILES_READ, MAX_REPLACEMENTS = 6, 2, 4
MIN_TITLE_NOVELTY = 0.15  # a passage with fewer new words only repeats the title

_CONVENTIONAL_TYPES: tuple[tuple[str, ObservationType], ...] = (
    ("fix", "bugfix"), ("hotfix", "bugfix"), ("feat", "feature"), ("refactor", "refactor"),
    ("perf", "refactor"), ("style", "refactor"),
)  # fmt: skip
_TYPE_PATTERNS: tuple[tuple[ObservationType, re.Pattern[str]], ...] = (
    ("bugfix", re.compile(
        r"\b(?:fix(?:e[sd]|ing)?|bugs?|crash\w*|errors?|broken|fail(?:s|ed|ing|ure)?|regress\w*|wrong"
        r"|flood\w*|leak\w*|does(?:n't| not)|can(?:'t|not)|not work\w*|issue|weird|stuck)\b",
        re.I)),
    ("refactor", re.compile(
        r"\b(?:refactor\w*|renam\w+|clean\w* ?up|extract\w*|simplif\w+|restructur\w+|consolidat\w+"
        r"|mov(?:e[sd]?|ing)|reorgani[sz]\w+|dedup\w*|merge[sd]?)\b", re.I)),
    ("feature", re.compile(
        r"\b(?:add(?:s|ed|ing)?|implement\w*|creat\w+|introduc\w+|support\w*|new|build|enable\w*"
        r"|allow\w*)\b", re.I)),
)  # fmt: skip
_CONCEPTS: dict[ObservationType, tuple[str, ...]] = {
    "bugfix": ("problem-solution",),
    "feature": ("what-changed",),
    "refactor": ("what-changed",),
    "change": ("what-changed",),
    "discovery": ("how-it-works",),
    "decision": ("trade-off",),
}


def build_observations(
    scored: ScoredTurn, passages: list[Candidate], title: str
) -> tuple[Observation, ...]:
    evidence = scored.evidence
    if not title or not scored.is_worth_observing:
        return ()
    main = [c for c in passages if says_more_than(title, content_words(c.text))]
    type_ = classify_type(evidence.request, title, evidence.subjects, bool(evidence.files))
    narrative, facts = narrative_and_facts(main, scored.scores)
    if not narrative and not facts:
        facts = _replacements(evidence.files, scored.recent_memories)
    edits = [source for work in evidence.files.values() for source in work.sources]
    observation = Observation(
        type=type_,
        title=title,
        narrative=narrative,
        facts=facts,
        concepts=classify_concepts(type_, [candidate.text for candidate in passages]),
        files_read=evidence.all_files_read(MAX_FILES_READ),
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


def classify_type(
    request: Request, title: str, subjects: list[str], edited: bool
) -> ObservationType:
    if not edited and not request.plan and not _is_commit_title(title, subjects):
        return "discovery"
    for subject in subjects:
        for prefix, type_ in _CONVENTIONAL_TYPES:
            if re.match(rf"{prefix}\b", subject, re.IGNORECASE):
                return type_
    first = title.split(" ", 1)[0]
    for text in (first, title, request.text[:300]):
        for type_, pattern in _TYPE_PATTERNS:
            if pattern.search(text):
                return type_
    return "change"


def _is_commit_title(title: str, subjects: list[str]) -> bool:
    """A turn that commits has changed something, even if no edit of it was recorded."""
    return any(title.lower() in subject.lower() for subject in subjects)


def classify_concepts(type_: ObservationType, texts: Collection[str]) -> tuple[str, ...]:
    concepts = list(_CONCEPTS[type_])
    has_cause = any(cues.CAUSE.matches(text) for text in texts)
    if has_cause and type_ == "discovery":
        concepts.append("gotcha")  # a cause that the turn did not fix still holds
    elif has_cause and type_ != "bugfix":
        concepts.append("why-it-exists")
    if "trade-off" not in concepts and any(cues.CHOICE.matches(text) for text in texts):
        concepts.append("trade-off")
    return tuple(concepts)
