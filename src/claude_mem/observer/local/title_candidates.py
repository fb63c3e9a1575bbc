"""Texts that may become the title of a turn, and what the model gets to know of each.

First what models wrote to be a title: subjects of commits and pull requests, headings of plans and
reports, tasks, tasks of subagents. Then clauses of what was said.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain, repeat
from math import fsum, log1p
from typing import Literal

from claude_mem.observer.local import cues
from claude_mem.observer.local.evidence import TurnEvidence
from claude_mem.observer.local.markdown import heading_of, without_fences, without_markup
from claude_mem.observer.local.passage_features import Candidate
from claude_mem.observer.local.phrases import is_empty_phrase
from claude_mem.observer.local.title_checks import (
    has_verb,
    is_anchored,
    is_draft_title,
    lacks_subject,
    without_label,
)
from claude_mem.observer.local.titles import as_title, without_lead
from claude_mem.observer.local.weights import Features, Weights
from claude_mem.title_rules import count_words, is_complete, names_subject

TitleSource = Literal[
    "commit", "pull request", "request heading", "plan heading", "final heading", "emphasis",
    "subagent task", "task", "final", "request", "statement", "report",
]  # fmt: skip
SOURCES: tuple[TitleSource, ...] = (
    "commit", "pull request", "request heading", "plan heading", "final heading", "emphasis",
    "subagent task", "task", "final", "request", "statement", "report",
)  # fmt: skip
# How much of its text a candidate is.
Cut = Literal["all", "first clause", "later clause", "clauses", "start", "scope", "subject"]
CUTS: tuple[Cut, ...] = (
    "all", "first clause", "later clause", "clauses", "start", "scope", "subject",
)  # fmt: skip

_SOURCE_FEATURES = {s: {f"from {other}": float(s == other) for other in SOURCES} for s in SOURCES}
_CUT_FEATURES = {cut: {f"cut: {other}": float(cut == other) for other in CUTS} for cut in CUTS}

MOST_WORDS, FEWEST_WORDS, SHORTEST = 12, 3, 8
FEWEST_OF_START = 5
FEWEST_SPOKEN = 4  # of a clause of the conversation; what was written as a title may be shorter
_SPOKEN: tuple[TitleSource, ...] = (
    "final", "request", "statement", "report", "final heading", "emphasis",
)  # fmt: skip
_HEADINGS: tuple[TitleSource, ...] = ("final heading", "emphasis")
MAX_CANDIDATES = 400
MAX_NAMES = 4  # that count
LAST_STATEMENTS = 6
READ_CLAUSES = 600
_CONVENTIONAL = re.compile(r"(?:[a-z]{1,20})(?:\(([^)\n]{1,60})\))?!?:\s+", re.IGNORECASE)
_CONVENTIONAL_TYPE = re.compile(
    r"(?:feat|fix|chore|refactor|docs?|test|perf|style|build|ci|revert|hotfix)\b", re.IGNORECASE
)
_PLAN_PREFIX = re.compile(
    r"(?:implementation )?(?:plan|task|proposal|spec|design)\s{0,3}(?:[:—–-]{1,3}|for|to)\s+",
    re.IGNORECASE,
)
_EMPHASIS = re.compile(r"\*\*([^*\n]{8,120})\*\*")
_CLAUSE_END = re.compile(
    r"(?<!\s)\s+(?:[—–]\s+|-\s+|\(|(?=(?:because|so that|instead of|rather than)\b))"
    r"|[:;；]\s+|\.\s+|[。，]"
    r"|,\s+(?=(?:which|so|but|and|because|since|not|while)\b)|\)\s*"
)
_PHRASE_END = re.compile(
    r",\s+|(?<!\s)\s+(?=(?:with|under|when|where|if|while|until|via|by|after|before|unless"
    r"|and (?:why|how|what|which|whether|that))\b)"
)
_EDGES = " .:;,()—–-。，"
_ANNOUNCED = re.compile(
    r"(?:(?:now|next|then|also|ok(?:ay)?|good|great|perfect|first)[\s,.!]{1,3}){0,3}"
    r"(?:let me|i'll|i will|let's|i need to|i'm going to)\s+(?:(?:now|also|first|then|just)\s+)?"
    r"(?P<change>(?:add|fix|remove|update|implement|change|refactor|move|rename|make|replace|allow"
    r"|create|improve|extract|handle|drop|enable|disable|prevent|convert|hide|skip|introduce)\b"
    r"[^.:;]{10,120})[.:]?$",
    re.IGNORECASE,
)
_SCOPE = re.compile(r"[a-z]{1,20}\(([\w ./-]{2,40})\)!?:", re.IGNORECASE)
_ISSUE = re.compile(r"(?<![\w/])#\d{1,7}\b")
_CODE = re.compile(r"`([A-Za-z_][\w./:-]{2,39})(?:\(\))?`")


@dataclass(frozen=True, slots=True)
class TitleCandidate:
    text: str
    source: TitleSource
    cut: Cut
    number: int  # among the texts of its source
    messages_after: int
    is_question: bool
    named_text: str  # where its names are counted: what it was cut from, if it is all of that

    @property
    def names(self) -> int:
        return cues.count_names(self.named_text, MAX_NAMES)


@dataclass(frozen=True, slots=True)
class TurnFacts:
    """What the candidates of a turn are compared with."""

    weight: dict[str, float]  # of its words (`passage_features.word_weights`)
    has_commit: bool
    edits: float
    messages: float
    request: float
    final: float


def find_titles(
    evidence: TurnEvidence, passages: Iterable[Candidate], *, is_english: bool
) -> list[TitleCandidate]:
    """Those that can be understood alone; each text once, from the best source that has it."""
    subject = subject_of(evidence)
    titles: dict[str, TitleCandidate] = {}
    judged: set[tuple[str, bool, bool]] = set()
    for candidate in chain(_written(evidence), _spoken(passages)):
        # Clauses repeat, and the gate takes longer than anything else here.
        key = (candidate.text, candidate.is_question, candidate.source in _SPOKEN)
        if key in judged and not candidate.is_question:
            continue
        judged.add(key)
        if title := _understandable(candidate, subject, is_english):
            titles.setdefault(title.text.lower(), title)
        if len(titles) >= MAX_CANDIDATES:
            break
    return list(titles.values())


def subject_of(evidence: TurnEvidence) -> str:
    """To put before a title that does not say what it is about; empty if nothing has a name."""
    for subject in evidence.subjects:
        if scope := _SCOPE.match(subject):
            return scope[1]
    if issue := _ISSUE.search(evidence.request.text):
        return f"Issue {issue[0]}"
    if evidence.files:
        most = max(evidence.files.values(), key=lambda work: len(work.sources))
        return most.path.replace("\\", "/").rsplit("/", 1)[-1]
    names = [name for name in _CODE.findall(evidence.final) if _is_subject(name)]
    return max(names, key=names.count, default="")


def _is_subject(name: str) -> bool:
    """Not a word of every program, such as EOF or string."""
    return len(name) > 3 and name != name.upper() and is_anchored(f"`{name}`")


def announced_changes(evidence: TurnEvidence) -> Iterator[str]:
    """What the agent announced before its edits: "Let me add a retry to the upload" is a title."""
    subject = subject_of(evidence)
    for event in evidence.statements:
        for line in (event.text or "").splitlines():
            announcement = _ANNOUNCED.match(line)
            text = as_title(announcement["change"]) if announcement else ""
            if not text or not FEWEST_OF_START <= count_words(text) <= MOST_WORDS:
                continue
            if not (is_complete(text, is_english=True) and is_draft_title(text)):
                continue
            has_subject = is_anchored(text) or not subject
            if names_subject(text, is_english=True):
                yield text if has_subject else as_title(f"{subject}: {_lower_first(text)}")


def _understandable(
    candidate: TitleCandidate, subject: str, is_english: bool
) -> TitleCandidate | None:
    """With the subject of the turn before it, where it has none of its own."""
    if candidate.is_question and not candidate.names:
        return None
    text = as_title(without_label(candidate.text) if is_english else candidate.text)
    if not text or not is_complete(text, is_english=is_english):
        return None
    if is_english and not is_draft_title(text):
        return None
    if candidate.source in _SPOKEN and count_words(text) < FEWEST_SPOKEN:
        return None
    if is_english and candidate.source in _HEADINGS and not _says_something(text):
        return None
    has_subject = names_subject(text, is_english=is_english)
    if not is_english or (has_subject and not _needs_subject(candidate, text)):
        return replace(candidate, text=text) if has_subject else None
    # The name of a file says little before words that say nothing: "summary of changes".
    if not subject or not (cues.IMPERATIVE.match(text) or (has_subject and has_verb(text))):
        return None
    return _with_subject(candidate, text, subject)


def _says_something(text: str) -> bool:
    """Emphasis and headings of a message often only name a thing: "Warm cache"."""
    return has_verb(text) or bool(cues.IMPERATIVE.match(text) or cues.NAME.search(text))


def _needs_subject(candidate: TitleCandidate, text: str) -> bool:
    """What was written as a title has its subject; a clause of the conversation may lack it."""
    return candidate.source in _SPOKEN and (lacks_subject(text) or not is_anchored(text))


def _with_subject(candidate: TitleCandidate, text: str, subject: str) -> TitleCandidate | None:
    if count_words(text) >= MOST_WORDS or subject.lower() in text.lower():
        return None
    text = as_title(f"{subject}: {_lower_first(text)}")
    return replace(candidate, text=text, cut="subject") if text else None


def _lower_first(text: str) -> str:
    """Names keep their capitals: a second one tells them apart, within the word or after it."""
    first, _, rest = text.partition(" ")
    is_name = first[1:] != first[1:].lower() or rest[:1].isupper()
    return text if is_name else text[0].lower() + text[1:]


def _written(evidence: TurnEvidence) -> Iterator[TitleCandidate]:
    commits = evidence.written_as("commit") or evidence.commands.subjects
    for number, text in enumerate(_first_lines(commits)):
        yield from _subject(text, "commit", number)
    for number, text in enumerate(_first_lines(evidence.written_as("pull_request"))):
        yield from _subject(text, "pull request", number)
    request = evidence.request
    yield from _all(headings(request.plan or request.text)[:4], "request heading")
    for plan in evidence.written_as("plan"):
        yield from _all(headings(plan)[:3], "plan heading")
    yield from _all(headings(evidence.final)[:6], "final heading")
    yield from _all(_EMPHASIS.findall(evidence.final)[:8], "emphasis")
    yield from _all(evidence.descriptions[:5], "subagent task")
    yield from _all(evidence.tasks[:5], "task")


def _spoken(passages: Iterable[Candidate]) -> Iterator[TitleCandidate]:
    for passage in sorted(passages, key=lambda p: p.messages_after):
        if passage.messages_after >= LAST_STATEMENTS or passage.says_what_is_left:
            continue
        if passage.passage.kind in ("code", "row") or is_empty_phrase(passage.text.lower()):
            continue
        origin = passage.origin
        if origin in ("final", "request", "statement", "report"):
            yield from _clauses(passage.text, origin, passage.number, passage.messages_after)


def _first_lines(texts: Iterable[str]) -> list[str]:
    lines = (next(iter(text.strip().splitlines()), "").strip() for text in texts)
    return list(dict.fromkeys(line for line in lines if line))


def headings(markdown: str) -> list[str]:
    lines = (line for line in without_fences(markdown) if line.startswith("#"))
    found = (_PLAN_PREFIX.sub("", heading_of(line), count=1) for line in lines)
    return [heading for heading in found if heading]


def _subject(text: str, source: TitleSource, number: int) -> Iterator[TitleCandidate]:
    """The subject of a commit, without its type; and with its scope before it."""
    prefix = _CONVENTIONAL.match(text)
    bare = text[prefix.end() :] if prefix and _CONVENTIONAL_TYPE.match(text) else text
    yield from _clauses(bare, source, number)
    if bare != text and prefix and prefix[1]:
        scoped = f"{prefix[1]}: {bare}"
        if count_words(scoped) <= MOST_WORDS:
            yield _candidate(scoped, source, "scope", number, 0, scoped)


def _all(texts: Iterable[str], source: TitleSource) -> Iterator[TitleCandidate]:
    for number, text in enumerate(texts):
        yield from _clauses(text, source, number)


def _clauses(
    text: str, source: TitleSource, number: int = 0, messages_after: int = 0
) -> Iterator[TitleCandidate]:
    whole = without_lead(without_markup(text[:READ_CLAUSES])).strip(_EDGES)
    if count_words(whole) <= MOST_WORDS and len(whole) >= SHORTEST:
        yield _candidate(whole, source, "all", number, messages_after, text)
    parts = [part.strip(_EDGES) for part in _CLAUSE_END.split(whole)]
    parts = [part for part in parts if part]
    for start in _starts(whole):
        yield _candidate(start, source, "start", number, messages_after, text)
    if len(parts) < 2:
        return
    for place, part in enumerate(parts):
        if FEWEST_WORDS <= count_words(part) <= MOST_WORDS and len(part) >= SHORTEST:
            cut: Cut = "later clause" if place else "first clause"
            yield _candidate(part, source, cut, number, messages_after, text)
    for end in range(2, len(parts) + 1):
        start = _start_through(whole, parts[:end])
        if count_words(start) > MOST_WORDS:
            break
        yield _candidate(start, source, "clauses", number, messages_after, text)


def _starts(whole: str) -> Iterator[str]:
    """Of a sentence that is too long: its start up to where more is said of it."""
    if count_words(whole) <= MOST_WORDS:
        return
    for end in _PHRASE_END.finditer(whole):
        start = whole[: end.start()].strip(_EDGES)
        if count_words(start) > MOST_WORDS:
            return
        last_clause = start.rpartition(", ")[2]
        begins_clause = last_clause.startswith(("and ", "or ", "but "))
        if count_words(start) >= FEWEST_OF_START and not begins_clause:
            yield start


def _start_through(whole: str, parts: list[str]) -> str:
    """The start of the text that ends with the last of these parts."""
    end = 0
    for part in parts:
        end = whole.index(part, end) + len(part)
    closes = whole[end : end + 1] == ")" and "(" in whole[:end]
    return whole[: end + closes]


def _candidate(
    text: str, source: TitleSource, cut: Cut, number: int, messages_after: int, full: str
) -> TitleCandidate:
    return TitleCandidate(
        text, source, cut, number, messages_after,
        is_question=full.rstrip().endswith(("?", "？")),
        named_text=full if cut == "all" else text,
    )  # fmt: skip


def turn_facts(evidence: TurnEvidence, weight: dict[str, float]) -> TurnFacts:
    return TurnFacts(
        weight=weight,
        has_commit=bool(evidence.subjects),
        edits=log1p(sum(len(work.sources) for work in evidence.files.values())),
        messages=log1p(len(evidence.statements) + 1),
        request=log1p(len(evidence.request.text) + len(evidence.request.plan)),
        final=log1p(len(evidence.final)),
    )


def title_features(title: TitleCandidate, of_turn: TurnFacts, weights: Weights) -> Features:
    text = title.text
    lowered, words = text.lower(), cues.words(text)
    size = max(1, len(words))
    rarity = fsum(weights.rarity_of(words))
    weight = fsum(map(of_turn.weight.get, words, repeat(0.0)))
    return {
        **_SOURCE_FEATURES[title.source],
        **_CUT_FEATURES[title.cut],
        "number": log1p(title.number),
        "messages after": log1p(title.messages_after),
        "words": float(count_words(text)),
        "names": float(title.names),
        "has number": float(bool(cues.NUMBER.search(text))),
        "is imperative": float(bool(cues.IMPERATIVE.match(text))),
        "is generic": float(bool(cues.GENERIC_HEADING.match(text))),
        "announces": float(bool(cues.ANNOUNCEMENT.match(text))),
        "tells status": float(cues.STATUS.is_in(lowered, words)),
        "tells change": float(cues.CHANGE.is_in(lowered, words)),
        "tells cause": float(cues.CAUSE.is_in(lowered, words)),
        "tells limit": float(cues.LIMIT.is_in(lowered, words)),
        "tells failure": float(cues.FAILURE.is_in(lowered, words)),
        "is question": float(title.is_question),
        "first person": float(bool(cues.FIRST_PERSON.search(text))),
        "second person": float(bool(cues.SECOND_PERSON.search(text))),
        "starts with pronoun": float(bool(cues.PRONOUN.match(text))),
        "starts with capital": float(text[:1].isupper()),
        "rarity": rarity / size,
        "rarity of all": rarity,
        "weight": weight / size,
        "weight of all": weight,
        "turn commits": float(of_turn.has_commit),
        "edits": of_turn.edits,
        "messages": of_turn.messages,
        "request": of_turn.request,
        "final": of_turn.final,
    }
