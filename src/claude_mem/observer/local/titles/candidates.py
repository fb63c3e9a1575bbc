"""Texts that may become the title of a turn, what each is about, and what the model gets to know of
it.

First what models wrote to be a title: subjects of commits and pull requests, headings of plans and
reports, tasks, tasks of subagents. Then clauses of what was said.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, islice, repeat
from math import fsum, log1p
from typing import Literal, NamedTuple, get_args

from claude_mem.observer.local import cues
from claude_mem.observer.local.clause_grammar import has_predicate, is_proposal, tells_means
from claude_mem.observer.local.empty_phrases import is_empty_phrase
from claude_mem.observer.local.evidence import Candidate, TurnEvidence
from claude_mem.observer.local.learned_trees import Features, Tests, Weights, among
from claude_mem.observer.local.markdown import (
    MessagePassage,
    heading_of,
    sentences,
    without_fences,
    without_markup,
)
from claude_mem.observer.local.titles.lasting import says_nothing_lasting
from claude_mem.observer.local.titles.references import refers_to_unnamed
from claude_mem.observer.local.titles.signs import (
    LONGEST_PLACE,
    addresses_someone,
    has_definite_stand_in,
    is_anchored,
    is_document,
    lacks_subject,
    only_labels,
    refers_outside,
    without_label,
)
from claude_mem.observer.local.titles.wording import (
    ASIDE,
    LONGEST_TITLE,
    as_title,
    file_before,
    from_request,
    main_file,
    names_file,
    without_lead,
)
from claude_mem.observer.local.tool_uses import FileWork
from claude_mem.title_rules import (
    count_words,
    is_balanced,
    is_complete,
    names_subject,
    specific_words,
)

TitleSource = Literal[
    "commit", "pull request", "request heading", "plan heading", "final heading", "emphasis",
    "subagent task", "task", "final", "request", "statement", "report", "announcement",
]  # fmt: skip
SOURCES: tuple[TitleSource, ...] = get_args(TitleSource)
# Written to be read alone; and what was said to somebody who knew the rest.
OF_REPOSITORY: tuple[TitleSource, ...] = ("commit", "pull request")
TITLES: tuple[TitleSource, ...] = (*OF_REPOSITORY, "request heading", "plan heading")
SPOKEN: tuple[TitleSource, ...] = (
    "final", "request", "statement", "report", "final heading", "emphasis", "announcement",
)  # fmt: skip
_SAID: tuple[TitleSource, ...] = ("final", "statement", "report", "announcement", "emphasis")
# How much of its text a candidate is.
Cut = Literal["all", "first clause", "later clause", "clauses", "start", "scope", "subject"]
CUTS: tuple[Cut, ...] = get_args(Cut)
UNCUT: tuple[Cut, ...] = ("all", "scope")
MAX_NAMES = 4  # that count
MOST_OF_SENTENCE, LONGEST_SENTENCE = 20, 130  # words and characters of a sentence that is not cut
FEWEST_SPOKEN = 4  # of a clause of the conversation; what was written as a title may be shorter
FEWEST_SPECIFIC = 4  # specific words of a clause without a name
MOST_BEFORE_SUBJECT = 12  # words of a title that gets a subject although it has one
PROPOSAL = "Proposal"
DEFINITE_NOUN = re.compile(r"the ([a-z]{3,})\b", re.IGNORECASE)

_SOURCE_FEATURES = {s: {f"from {other}": float(s == other) for other in SOURCES} for s in SOURCES}
_CUT_FEATURES = {cut: {f"cut: {other}": float(cut == other) for other in CUTS} for cut in CUTS}

MOST_WORDS, FEWEST_WORDS, SHORTEST = 12, 3, 8
FEWEST_PLACE_WORDS = 2
FEWEST_OF_START = 5
MAX_CANDIDATES = 400
FEWEST_MENTIONS = 3  # of a symbol in an answer, to be what it is about
LAST_STATEMENTS = 6
READ_PASSAGES = 8  # those most worth keeping: the best title is hardly ever in another
READ_CLAUSES, READ_SENTENCES = 600, 2
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
# Of a sentence: what comes before one of these is a clause of its own.
_SENTENCE_CLAUSE_END = re.compile(
    r"(?<!\s)\s+(?:[—–]|-)\s+|[:;；]\s+|[。，]|(?<!\s)\s+(?=(?:because|so that)\b)"
    r"|,\s+(?=(?:which|so|but|because|since|where|while|and (?:the|it|now))\b)"
)
_OPENS = re.compile(r"\s(?:that|which|who|whose|whether|so|to)(?:\s\S+){1,3}$")  # a clause, cut
_EDGES = " .:;,()—–-。，"
_SENTENCE_EDGES = " .:;,—–-。，"
_LIST_NUMBER = re.compile(r"^\d{1,2}[.)]\s+")
_NO_PLACE = re.compile(
    r"(?:to|also|then|so|and|but|it|its|this|that|these|those|there|here|now|if|when|as|created|added"
    r"|updated|changed|fixed|removed|verified|replaced|notice|note)\b"
    r"|.*\b(?:as|correctly|with|if it exists)$",
    re.IGNORECASE,
)
_LINES = re.compile(r"\s\((?:at )?lines? ~?\d[\d–, -]{0,20}\)|(?<=\w):\d+(?:-\d+)?(?=`)")
_JOINED = re.compile(r"^(?:and|but|so|also|meanwhile,|however,|plus,?)\s+", re.IGNORECASE)
_ANNOUNCED = re.compile(
    r"(?:(?:now|next|then|also|ok(?:ay)?|good|great|perfect|first)[\s,.!]{1,3}){0,3}"
    r"(?:let me|i'll|i will|let's|i need to|i'm going to)\s+(?:(?:now|also|first|then|just)\s+)?"
    r"(?P<change>(?:add|fix|remove|update|implement|change|refactor|move|rename|make|replace|allow"
    r"|create|improve|extract|handle|drop|enable|disable|prevent|convert|hide|skip|introduce)\b"
    r"[^.:;]{10,120})[.:]?$",
    re.IGNORECASE,
)
_REBASED = re.compile(
    r"(?:(?:fixup|squash|amend)! ){1,3}", re.IGNORECASE
)  # of `git commit --fixup`
_SCOPE = re.compile(r"[a-z]{1,20}\(([\w ./-]{2,40})\)!?:", re.IGNORECASE)
_ISSUE = re.compile(r"(?<![\w/])#\d{1,7}\b")
_CODE = re.compile(r"`([A-Za-z_][\w./:-]{2,39})(?:\(\))?`")


class TitleCandidate(NamedTuple):
    text: str
    source: TitleSource
    cut: Cut
    number: int  # among the texts of its source
    messages_after: int
    is_question: bool
    named_text: str  # where its names are counted: what it was cut from, if it is all of that
    place: str = ""  # the file, symbol or heading under which it was said

    @property
    def names(self) -> int:
        return cues.count_names(self.named_text, MAX_NAMES)


def find_titles(
    evidence: TurnEvidence, passages: Iterable[Candidate], *, is_english: bool
) -> list[TitleCandidate]:
    """Each text once, from the best source that has it."""
    subject = subject_of(evidence)
    titles: dict[str, TitleCandidate] = {}
    seen: set[tuple[str, bool, TitleSource, str]] = set()
    for candidate in chain(_written(evidence), _spoken(evidence, passages)):
        # Clauses repeat, and finding their subject takes longer than anything else here.
        key = (candidate.text, candidate.is_question, candidate.source, candidate.place)
        if key in seen and not candidate.is_question:
            continue
        seen.add(key)
        for title in with_subject(
            candidate, subject, has_edits=bool(evidence.files), is_english=is_english
        ):
            titles.setdefault(title.text.lower(), title)
        if len(titles) >= MAX_CANDIDATES:
            break
    return list(titles.values())


def subject_of(evidence: TurnEvidence) -> str:
    """Returns a subject to put before a title that does not say what it is about; empty if nothing
    has a name."""
    for subject in evidence.subjects:
        if scope := _SCOPE.match(subject):
            return scope[1]
    if issue := _ISSUE.search(evidence.request.text):
        return f"Issue {issue[0]}"
    if evidence.files:
        return main_file(evidence.files.values())
    names = [name for name in _CODE.findall(evidence.final) if _is_subject(name)]
    most_named = max(names, key=names.count, default="")
    is_topic = names.count(most_named) >= FEWEST_MENTIONS or most_named in evidence.request.text
    return most_named if is_topic else ""


def _is_subject(name: str) -> bool:
    """Whether the name is a subject, and not a word of every program, such as EOF or string."""
    return len(name) > 3 and name != name.upper() and is_anchored(f"`{name}`")


def _announced(evidence: TurnEvidence) -> Iterator[TitleCandidate]:
    """What the agent announced before its edits: "Let me add a retry to the upload" is a title."""
    for number, event in enumerate(evidence.statements):
        for line in (event.text or "").splitlines():
            if announcement := _ANNOUNCED.match(line):
                text = announcement["change"]
                if FEWEST_OF_START <= count_words(text) <= MOST_WORDS:
                    after = len(evidence.statements) - number
                    yield _candidate(text, "announcement", "all", 0, after, text)


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


def _spoken(evidence: TurnEvidence, passages: Iterable[Candidate]) -> Iterator[TitleCandidate]:
    if evidence.files and (request := from_request(evidence.request.text)):
        yield _candidate(request, "request", "all", 0, len(evidence.statements) + 1, request)
    if evidence.files:
        yield from _announced(evidence)
    for passage in passages:
        origin = passage.origin
        if origin in ("final", "statement", "report"):
            place = _place_of(passage.passage)
            for text, cut in _sentence_clauses(passage.text):
                yield _candidate(
                    text, origin, cut, passage.number, passage.messages_after, passage.text, place
                )


def passages_with_titles(
    passages: Sequence[Candidate], scores: Sequence[float], most: int = READ_PASSAGES
) -> list[Candidate]:
    """The passages to look for titles in, those of the last messages first."""
    ranked = sorted(zip(scores, passages, strict=True), key=lambda pair: -pair[0])
    worth_reading = (passage for _, passage in ranked if _may_have_title(passage))
    best = islice(worth_reading, most)
    return sorted(best, key=lambda passage: (passage.messages_after, passage.position))


def _may_have_title(passage: Candidate) -> bool:
    return (
        passage.origin in ("final", "statement", "report")
        and passage.messages_after < LAST_STATEMENTS
        and not passage.says_what_is_left
        and not _is_fragment(passage.passage)
        and not is_empty_phrase(passage.text.lower())
    )


def _is_fragment(passage: MessagePassage) -> bool:
    """Whether a passage is code, or a row of several cells; one of two tells of its first."""
    return passage.kind == "code" or (passage.kind == "row" and "; " in passage.text)


def _place_of(passage: MessagePassage) -> str:
    """The file or symbol before the sentence, else the label or heading above it."""
    if file := file_before(passage.text):
        return file
    above = (passage.label if not passage.own_label else "", passage.lead, passage.heading)
    for text in above:
        place = _LIST_NUMBER.sub("", text)
        if 0 < count_words(place) <= LONGEST_PLACE and _is_place(place):
            return place.strip("`") if place.count("`") == 2 and place[0] == "`" else place
    return ""


@lru_cache(maxsize=256)  # a heading stands above many passages
def _is_place(text: str) -> bool:
    if not names_subject(text.lower(), is_english=True):
        return False  # "The Problem"
    if cues.GENERIC_HEADING.match(text) or "(" in text or ": " in text or text.endswith("?"):
        return False
    if _NO_PLACE.match(text) or is_empty_phrase(text.lower()) or not is_balanced(text):
        return False
    return is_anchored(text) or len(specific_words(text)) >= FEWEST_PLACE_WORDS


def _sentence_clauses(text: str) -> Iterator[tuple[str, Cut]]:
    """The whole sentence if it is short enough, and its clauses; of an item its first sentences."""
    bare = without_lead(without_markup(text[:READ_CLAUSES]))
    for sentence in sentences(bare)[:READ_SENTENCES]:
        whole = _LINES.sub("", _JOINED.sub("", sentence)).strip(_SENTENCE_EDGES)
        if count_words(whole) > MOST_OF_SENTENCE:
            whole = ASIDE.sub("", whole)
        if count_words(whole) <= MOST_OF_SENTENCE and len(whole) >= SHORTEST:
            yield whole, "all"
        yield from _cut_clauses(whole)


def _cut_clauses(sentence: str) -> Iterator[tuple[str, Cut]]:
    parts = _parts(sentence)
    for place, part in enumerate(parts if len(parts) > 1 else ()):
        if FEWEST_WORDS <= count_words(part) <= MOST_OF_SENTENCE and len(part) >= SHORTEST:
            yield part, "later clause" if place else "first clause"
    for end in range(2, len(parts)):
        start = _start_through(sentence, parts[:end])
        if count_words(start) > MOST_OF_SENTENCE:
            break
        yield start, "clauses"


def _parts(sentence: str) -> list[str]:
    """Splits a sentence into its clauses; code is not cut."""
    starts, ends = [0], []
    for end in _SENTENCE_CLAUSE_END.finditer(sentence):
        if sentence.count("`", 0, end.start()) % 2 == 0:
            ends.append(end.start())
            starts.append(end.end())
    spans = zip(starts, [*ends, len(sentence)], strict=True)
    parts = (sentence[start:end].strip(_SENTENCE_EDGES) for start, end in spans)
    return [part for part in parts if part]


def _first_lines(texts: Iterable[str]) -> list[str]:
    lines = (next(iter(text.strip().splitlines()), "").strip() for text in texts)
    return list(dict.fromkeys(line for line in lines if line))


def headings(markdown: str) -> list[str]:
    lines = (line for line in without_fences(markdown) if line.startswith("#"))
    found = (_PLAN_PREFIX.sub("", heading_of(line), count=1) for line in lines)
    return [heading for heading in found if heading]


def _subject(text: str, source: TitleSource, number: int) -> Iterator[TitleCandidate]:
    """The subject of a commit, without its type; and with its scope before it."""
    text = _REBASED.sub("", text, count=1)
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
    is_short = count_words(whole) <= MOST_WORDS
    for place, part in enumerate(parts):
        if place and is_short and source in TITLES:
            continue  # the whole says more
        if FEWEST_WORDS <= count_words(part) <= MOST_WORDS and len(part) >= SHORTEST:
            cut: Cut = "later clause" if place else "first clause"
            yield _candidate(part, source, cut, number, messages_after, text)
    for end in range(2, len(parts) + 1):
        start = _start_through(whole, parts[:end])
        if count_words(start) > MOST_WORDS:
            break
        yield _candidate(start, source, "clauses", number, messages_after, text)


def _starts(whole: str) -> Iterator[str]:
    """Gives the start of a long heading, up to where more is said of it."""
    if count_words(whole) <= MOST_WORDS:
        return
    for end in _PHRASE_END.finditer(whole):
        start = whole[: end.start()].strip(_EDGES)
        if count_words(start) > MOST_WORDS:
            return
        last_clause = start.rpartition(", ")[2]
        begins_clause = last_clause.startswith(("and ", "or ", "but ")) or _OPENS.search(start)
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
    text: str,
    source: TitleSource,
    cut: Cut,
    number: int,
    messages_after: int,
    full: str,
    place: str = "",
) -> TitleCandidate:
    return TitleCandidate(
        text, source, cut, number, messages_after,
        is_question=full.rstrip().endswith(("?", "？")),
        named_text=full if cut == "all" else text,
        place=place,
    )  # fmt: skip


# What a title is about: the title itself says it, or a name is put before it.
#
# A title is read alone, weeks later. What was written as a title names its subject; a clause of
# the conversation often does not, because everybody knew it.


def with_subject(
    candidate: TitleCandidate, subject: str, *, has_edits: bool, is_english: bool
) -> Iterator[TitleCandidate]:
    """The title, and the same with its place or the subject of the turn before it; only the latter
    where it has no subject of its own. Nothing if it is no complete clause, or if it refers to what
    only the conversation has named."""
    named = _named(candidate, subject, has_edits=has_edits, is_english=is_english)
    if not is_english or candidate.source not in SPOKEN:
        yield from named
        return
    yield from (title for title in named if not refers_to_unnamed(title.text))


def _named(
    candidate: TitleCandidate, subject: str, *, has_edits: bool, is_english: bool
) -> Iterator[TitleCandidate]:
    title = _checked(candidate, has_edits=has_edits, is_english=is_english)
    if title is None:
        return
    if not is_english:
        yield title
        return
    text = title.text
    has_subject = names_subject(text, is_english=True)
    subject = title.place or subject
    if has_subject and not _needs_subject(title, text):
        is_proposed = _is_proposed(title, has_edits)
        if whole := _as_proposal(title) if is_proposed else title:
            yield whole
        is_short = title.source in SPOKEN and count_words(text) <= MOST_BEFORE_SUBJECT
        # A symbol that an answer repeats is a guess; a file that was edited is not.
        place = subject if title.place or has_edits else ""
        if place and is_short and not is_proposed and (named := _after(place, title)):
            yield named
    # The name of a file says little before words that say nothing: "summary of changes".
    elif not has_subject and not cues.IMPERATIVE.match(text):
        return
    elif subject and _names_its_place(text, subject):
        yield title
    elif subject:
        if named := _after(subject, title):
            yield named
    elif (
        len(specific_words(text)) >= FEWEST_SPECIFIC
        and not lacks_subject(text)
        and (is_anchored(text) or not has_definite_stand_in(text))
    ):
        yield title


def _names_its_place(text: str, subject: str) -> bool:
    """Whether a text of a definite thing names its place: "The horn … in horn.py"."""
    definite = DEFINITE_NOUN.match(text)
    name = subject.lower()
    return definite is not None and definite[1].lower() in name and name in text.lower()


def _checked(
    candidate: TitleCandidate, *, has_edits: bool, is_english: bool
) -> TitleCandidate | None:
    if candidate.is_question and not candidate.names:
        return None
    is_spoken = candidate.source in SPOKEN
    text = without_label(candidate.text) if is_english else candidate.text
    text = _without_second_label(text) if is_english and is_spoken else text
    text = as_title(text, LONGEST_SENTENCE if is_spoken else LONGEST_TITLE)
    if not text or "?" in text or "://" in text or not is_complete(text, is_english=is_english):
        return None
    if is_spoken and count_words(text) < FEWEST_SPOKEN:
        return None
    if is_english and is_spoken and (refers_outside(text) or only_labels(text)):
        return None
    if is_english and candidate.source not in OF_REPOSITORY:
        texts = (candidate.text, text)  # perhaps without its label: "Left alone: …"
        if any(says_nothing_lasting(each, has_edits=has_edits) for each in texts):
            return None
    if is_english:
        return None if addresses_someone(text) else candidate._replace(text=text)
    has_subject = names_subject(text, is_english=False)
    return candidate._replace(text=text) if has_subject else None


def _needs_subject(candidate: TitleCandidate, text: str) -> bool:
    """What was written as a title has its subject; a clause of the conversation may lack it."""
    if candidate.source not in SPOKEN:
        return False
    is_known = is_anchored(text) and not has_definite_stand_in(text)
    return lacks_subject(text) or tells_means(text) or not is_known or not has_predicate(text)


def _after(subject: str, candidate: TitleCandidate) -> TitleCandidate | None:
    text = candidate.text
    if count_words(text) >= MOST_OF_SENTENCE or subject.lower() in text.lower():
        return None
    # A document may be about anything: its name does not tell what the clause is about.
    if addresses_someone(subject) or (is_document(subject) and not is_anchored(text)):
        return None
    text = _without_second_label(f"{subject.rstrip(' :-–—')}: {lower_first(text)}")
    text = as_title(text, LONGEST_SENTENCE)
    return candidate._replace(text=text, cut="subject") if text else None


def after_file(candidate: TitleCandidate, files: Collection[FileWork]) -> str:
    """A clause that was said in a turn with edits, after the file they are about: readers asked
    where it belongs even where it names a symbol."""
    text = candidate.text
    if candidate.source not in _SAID or not files or ": " in text or names_file(text):
        return text
    file = main_file(files)
    if file.partition(".")[0].lower() in text.lower():
        return text
    placed = _after(file, candidate)
    return placed.text if placed is not None else text


def _without_second_label(title: str) -> str:
    """ "Lamps: Winter: both may burn" is a line of an outline: of its labels, the first remains."""
    label, _, statement = title.partition(": ")
    second, _, rest = statement.partition(": ")
    labels = (label, second)
    is_outline = all(len(text.split()) <= LONGEST_PLACE and "`" not in text for text in labels)
    return f"{label}: {lower_first(rest)}" if rest and is_outline else title


def _is_proposed(candidate: TitleCandidate, has_edits: bool) -> bool:
    """Whether an answer tells a change that nobody made."""
    is_answer = candidate.source in ("final", "statement", "report", "emphasis")
    return is_answer and not has_edits and is_proposal(candidate.text)


def _as_proposal(candidate: TitleCandidate) -> TitleCandidate | None:
    text = as_title(f"{PROPOSAL}: {lower_first(candidate.text)}", LONGEST_SENTENCE)
    return candidate._replace(text=text) if text else None


def lower_first(text: str) -> str:
    """Names keep their capitals: a second one tells them apart, within the word or after it."""
    first, _, rest = text.partition(" ")
    is_name = first[1:] != first[1:].lower() or rest[:1].isupper()
    return text if is_name else text[0].lower() + text[1:]


# What the model gets to know of each


@dataclass(frozen=True, slots=True)
class TitleContext:
    """What the candidates of a turn are compared with."""

    weight: dict[str, float]  # of its words (`learned_features.word_weights`)
    has_commit: bool
    edits: float
    messages: float
    request: float
    final: float


def title_context(evidence: TurnEvidence, weight: dict[str, float]) -> TitleContext:
    return TitleContext(
        weight=weight,
        has_commit=bool(evidence.subjects),
        edits=log1p(sum(len(work.sources) for work in evidence.files.values())),
        messages=log1p(len(evidence.statements) + 1),
        request=log1p(len(evidence.request.text) + len(evidence.request.plan)),
        final=log1p(len(evidence.final)),
    )


_CUES: Tests[cues.Cue] = (
    ("tells status", cues.STATUS), ("tells change", cues.CHANGE), ("tells cause", cues.CAUSE),
    ("tells limit", cues.LIMIT), ("tells failure", cues.FAILURE),
)  # fmt: skip
_SHAPES: Tests[Callable[[str], object]] = (
    ("has number", cues.NUMBER.search),
    ("is imperative", cues.IMPERATIVE.match),
    ("is generic", cues.GENERIC_HEADING.match),
    ("announces", cues.ANNOUNCEMENT.match),
    ("first person", cues.FIRST_PERSON.search),
    ("second person", cues.SECOND_PERSON.search),
    ("starts with pronoun", cues.PRONOUN.match),
)


@lru_cache(maxsize=8)  # the hash of the names is known; that of the tests is not
def _tests(
    names: frozenset[str] | None,
) -> tuple[Tests[cues.Cue], Tests[Callable[[str], object]]]:
    return among(_CUES, names), among(_SHAPES, names)


def title_features(
    title: TitleCandidate,
    of_turn: TitleContext,
    weights: Weights,
    names: frozenset[str] | None = None,
) -> Features:
    """All of them, or with `names` at least these."""
    text = title.text
    lowered, words = text.lower(), cues.words(text)
    size = max(1, len(words))
    rarity = fsum(weights.rarity_of(words))
    weight = fsum(map(of_turn.weight.get, words, repeat(0.0)))
    features = {
        **_SOURCE_FEATURES[title.source],
        **_CUT_FEATURES[title.cut],
        "number": log1p(title.number),
        "messages after": log1p(title.messages_after),
        "words": float(count_words(text)),
        "names": float(title.names),
        "is question": float(title.is_question),
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
    of_words, of_shape = _tests(names)
    for name, cue in of_words:
        features[name] = float(cue.is_in(lowered, words))
    for name, match in of_shape:
        features[name] = float(match(text) is not None)
    return features
