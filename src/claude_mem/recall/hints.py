"""A hint for a prompt: what earlier sessions said about it, if that is likely to matter.

The rarest words of what the user typed are looked up as in a search (`ranking`). Whether to speak
is a decision of its own: most prompts are tasks and replies, not questions to the memory, and a
hint that does not matter costs more than none. `RULE` is the whole decision.
"""

import json
import math
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from itertools import islice
from typing import Self

from claude_mem.index import indexing
from claude_mem.index.text import passage_queries, term_hashes
from claude_mem.index.text.documents import MOST_PASSAGES, NOTES, Passage
from claude_mem.index.text.filters import Filters
from claude_mem.index.text.passage_queries import PassageRow
from claude_mem.index.text.words import stem
from claude_mem.index.vectors.lazy_index import SemanticIndex
from claude_mem.recall.answers import KINDS as PASSAGE_KINDS
from claude_mem.recall.branch_turns import find_branch_turns, refers_to
from claude_mem.recall.hint_lines import Hint, Shown, Source, hint_lines
from claude_mem.recall.hint_prompt import Name, names_in, typed_text
from claude_mem.recall.hint_text import PastFact, lasting, past_facts, states_past, work_in
from claude_mem.recall.named_turns import NamedTurn, find_named_turns
from claude_mem.recall.parsed_query import ParsedQuery, Word, content_stems, parse_query, stems_of
from claude_mem.recall.ranking import (
    SEARCH,
    Depth,
    RankedTurn,
    Term,
    collect,
    look_up_terms,
    rank_candidates,
    texts_by_stem,
)
from claude_mem.recall.search import holds_any
from claude_mem.recall.weights import WEIGHTS
from claude_mem.store import StoreReader
from claude_mem.store.memories import CLIENT_FILE

MAX_LINES = 3
MAX_WORDS = 12  # the rarest of the prompt
MIN_WORDS = 4
MAX_EVIDENCE = 2.0  # a cosine and a share
DEPTH = Depth(by_words=40, by_vector=40, read=40, rescored=120, scored=80, matches=1_000)
CANDIDATES = 40  # turns, of which some may be known to the session, or only repeat the prompt
READ_AT_ONCE = 4  # of these
MAX_REPEATED = 0.6  # share of its words that a passage may have in common with the prompt
# A plan of so many words says most things itself, in other forms of its words.
MANY_WORDS, MAX_REPEATED_OF_PLAN = 120, 0.55
SUBJECT_CHARACTERS = 300  # characters at the start of a prompt that say what it is about
# Of a turn, what became of it says more in few words than what was asked or planned.
KINDS = {"memory": 1.1}
ANSWER_KINDS = {**PASSAGE_KINDS, "memory": 1.1}
NAMED_KINDS = {"memory": 1.3, "commit": 1.3, "prompt": 0.35, "plan": 0.35}
MIN_SHARED = 5  # words of the beginning of a task that a line about it has
MIN_LINE_WORDS = 4  # of a line of the context that can hold what a hint would say
COVERED_SHARE = (
    0.6  # share of its words that a line of the context has, from which a passage says no more
)
MIN_SAME_SHARE = (
    0.8  # share of common words from which a line of the context and a passage are the same
)

# A clause that asks for what is known, unlike "can you …?", which asks for work.
_QUESTION = re.compile(
    r"(?:^|[.!?:;,—-] )(?:(?:and|but|so|or|then) )?(?:(?:in|on|at|by|for) which|what|which|why"
    r"|whose|who|where|how|when (?:did|was|were|do|does|is))\b[^?.\n]{0,300}\?",
    re.IGNORECASE | re.MULTILINE,
)
# It asks for advice or an investigation: that is work.
_LOOKS_AHEAD = re.compile(
    r"\b(?:how (?:can|could|should|would|might|do) (?:we|i|you)"
    r"|what (?:can|could|should|would) (?:we|i|you)"
    r"|what(?: is|'s|’s| are| would be) (?:the |your )?"
    r"(?:(?:proper|best|right|cleanest|easiest|next)\b|options?\b|ways? to\b|problem\b|issue\b"
    r"|wrong\b|going on\b|happening\b)"
    r"|which (?:one )?(?:should|would) (?:we|i|you))",
    re.IGNORECASE,
)
_REQUEST = re.compile(
    r"(?:(?:please|hey|ok|okay)[,.]? )?(?:can|could|would|will) (?:you|we)\b|please\b|let's\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"\w+")
_OBSERVATION = re.compile(r"(?<=\s)#(\d{1,12})\b")
_QUOTES = str.maketrans({'"': " ", "“": " ", "”": " "})


def asks_what_is_known(typed: str) -> bool:
    return bool(_QUESTION.search(typed)) and not _LOOKS_AHEAD.search(typed)


def is_task(typed: str) -> bool:
    """Whether it asks for work: all but a question, unless it is a request in the form of one."""
    is_question = typed.rstrip().endswith("?") or asks_what_is_known(typed)
    return not is_question or _REQUEST.match(typed) is not None


@dataclass(frozen=True, slots=True)
class Rule:
    """The evidence (cosine plus share of the prompt's words, the same or similar) from which a
    passage is shown. Chosen on three projects, all three together (`bench/hints.py`)."""

    question: float = 0.6  # the first prompt of a session, that asks what is known
    task: float = 1.25  # the first prompt otherwise
    later: float = 1.5  # what follows in a session is mostly about the session itself
    full_length: int = 100  # characters; a shorter prompt says too little and needs more evidence
    length_factor: float = 4.0
    prompt_discount: float = 0.05  # what a user asked for says less than what came of it
    next_discount: float = 0.05  # for the second and third line
    # Of the first prompt, where it is a task: turns that worked on what it names.
    named_weight: float = 4.0
    named_evidence: float = 1.4
    many_weight: float = 15.0
    many_cosine: float = 0.7
    min_score_share: float = 0.92  # of the best turn's score

    def is_about_many(self, turn: NamedTurn) -> bool:
        """A long plan names so much that no turn has a large share of it."""
        return turn.weight >= self.many_weight and turn.cosine >= self.many_cosine

    def needed(self, typed: str, is_first: bool) -> float:
        needed = self.later
        if is_first:
            needed = self.question if asks_what_is_known(typed) else self.task
        shortness = max(0.0, math.log(self.full_length / max(1, len(typed))))
        return needed + self.length_factor * shortness


RULE = Rule()


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt, and what its session knows already."""

    text: str
    project_id: int | None = None
    session_db_id: int | None = None
    is_first: bool = True
    context: str = ""  # what the session was given at its start
    hinted_turns: frozenset[int] = frozenset()
    until: int | None = None  # only memories from before, in milliseconds
    branch: str = ""  # of its directory


@dataclass(frozen=True, slots=True)
class _Known:
    """What a prompt says itself."""

    words: set[str]
    stems: Callable[[], frozenset[str]]  # of its words; made if they are needed

    @classmethod
    def of(cls, text: str) -> Self:
        return cls(_words(text), cache(lambda: content_stems(text)))


@dataclass(frozen=True, slots=True)
class _Candidate:
    ranked: RankedTurn
    row: PassageRow
    evidence: float


def find_hint(
    store: StoreReader,
    prompt: Prompt,
    semantic_index: SemanticIndex | None,
    rule: Rule = RULE,
) -> Hint | None:
    typed = typed_text(prompt.text)
    needed = rule.needed(typed, prompt.is_first)
    names = names_in(prompt.text) if prompt.is_first and is_task(typed) else []
    is_of_branch = prompt.is_first and refers_to(prompt.branch, typed)
    if not typed or (needed > MAX_EVIDENCE and not names and not is_of_branch):
        return None

    def work(connection: sqlite3.Connection) -> Hint | None:
        if not indexing.is_current(connection):
            return None
        query, terms = rarest_words(connection, typed)
        past = past_facts(connection, prompt.project_id)
        known, context = _Known.of(prompt.text), _context_lines(prompt.context)

        def text_of(passage: Passage, leads: Callable[[str], bool] | None = None) -> str:
            if not _is_worth_reading(passage, known) or states_past(passage.text, past):
                return ""
            text = work_in(passage.text, leads) if leads else lasting(passage.text)
            return "" if _is_in_context(context, text) else text

        stems = stems_of(query)
        by_words = Shown(query, terms, lambda p: text_of(p, lambda s: holds_any(s, stems)), KINDS)
        as_answer = Shown(query, terms, text_of, ANSWER_KINDS, question=typed)
        if is_of_branch and semantic_index is not None:
            selected = _on_branch(connection, prompt, typed, semantic_index)
            lines = hint_lines(connection, selected, (by_words, as_answer), semantic_index)
            if lines:
                return Hint(tuple(lines))
        if names and semantic_index is not None:
            selected = _named(connection, prompt, typed, names, rule, semantic_index)
            rare = frozenset(name for source in selected for name in source.words)
            about = replace(query, text=typed[:SUBJECT_CHARACTERS], words=_words_of(rare))
            by_names = Shown(
                about,
                look_up_terms(connection, about),
                lambda p: text_of(p, lambda s: _names_any(s, rare)),
                NAMED_KINDS,
            )
            ways = (by_names, replace(by_words, weights=NAMED_KINDS))
            lines = hint_lines(connection, selected, ways, semantic_index)
            numbers = {name.text for name in names if name.is_number}
            lines = [
                line
                for line in lines
                if numbers.intersection(line.words) or shares_subject(line.text, typed)
            ]
            if lines:
                return Hint(tuple(lines))
        if len(query.words) < MIN_WORDS or needed > MAX_EVIDENCE:
            return None
        ranked, bm25 = _rank(connection, prompt, query, terms, rule, semantic_index)
        if all(candidate.evidence < needed for candidate in ranked):
            return None
        read: dict[int, Sequence[Passage]] = {}
        candidates = _unknown(connection, ranked, known, context, past, read, rule.min_score_share)
        most = 1 if is_task(typed) else MAX_LINES
        sources = [
            Source(c.ranked.turn, _words_held(c.row, terms), c.evidence)
            for c in _select(list(islice(candidates, most)), needed, rule)
        ]
        # The answer to a question may be in other words.
        way = replace(by_words if is_task(typed) else as_answer, bm25=bm25)
        lines = hint_lines(connection, sources, (way,), semantic_index, read)
        if is_task(typed):
            lines = [line for line in lines if shares_subject(line.text, typed)]
        return Hint(tuple(lines)) if lines else None

    return store.read(work)


def shares_subject(line: str, typed: str) -> bool:
    """Whether a line says something about what the prompt is about, and not only names the same
    file or thing."""
    about = content_stems(typed[:SUBJECT_CHARACTERS])
    return len(about & content_stems(line)) >= min(MIN_SHARED, math.ceil(len(about) / 2))


def _named(
    connection: sqlite3.Connection,
    prompt: Prompt,
    typed: str,
    names: Sequence[Name],
    rule: Rule,
    semantic_index: SemanticIndex,
) -> list[Source]:
    """Turns that worked on what the prompt names, best first."""
    filters = Filters(project_id=prompt.project_id, until=prompt.until)
    own = (prompt.session_db_id,) if prompt.session_db_id is not None else ()
    turns = find_named_turns(
        connection, names, typed[:SUBJECT_CHARACTERS], filters, own, semantic_index
    )
    strong = [
        turn
        for turn in turns
        if turn.weight >= rule.named_weight
        and (turn.evidence >= rule.named_evidence or rule.is_about_many(turn))
        and turn.turn.id not in prompt.hinted_turns
    ]
    shown = _memories_in(prompt.context)
    return [
        Source(turn.turn, turn.names, turn.evidence)
        for turn in strong
        if not shown & _memories_of(connection, turn.turn.id)
    ][:1]


def _on_branch(
    connection: sqlite3.Connection, prompt: Prompt, typed: str, semantic_index: SemanticIndex
) -> list[Source]:
    """The turn on the branch that is nearest to the prompt."""
    filters = Filters(project_id=prompt.project_id, until=prompt.until)
    own = (prompt.session_db_id,) if prompt.session_db_id is not None else ()
    sources = find_branch_turns(connection, prompt.branch, typed, filters, own, semantic_index)
    return [source for source in sources if source.turn.id not in prompt.hinted_turns][:1]


def _memories_in(context: str) -> set[str]:
    """The ids of the observations that it shows."""
    return set(_OBSERVATION.findall(context))


def _memories_of(connection: sqlite3.Connection, turn: int) -> set[str]:
    rows = connection.execute("SELECT id FROM observations WHERE turn_id = ?", (turn,))
    return {str(row[0]) for row in rows}


def _words_of(names: Iterable[str]) -> tuple[Word, ...]:
    return parse_query(" ".join(sorted(names)), datetime.now(UTC)).words


def _names_any(sentence: str, names: Iterable[str]) -> bool:
    lower = sentence.lower()
    return any(name.lower() in lower for name in names)


def rarest_words(connection: sqlite3.Connection, typed: str) -> tuple[ParsedQuery, list[Term]]:
    """The text as a query of its rarest words, in their order; times and quotes mean nothing."""
    parsed = parse_query(typed.translate(_QUOTES).replace(" -", " "), datetime.now(UTC))
    parsed = replace(parsed, text=typed, phrases=(), excluded=(), spans=(), occasions=())
    terms = look_up_terms(connection, parsed)
    weights = {term.stem: term.weight for term in terms}

    def weight(word: Word) -> float:
        return max((weights.get(stem(piece), 0.0) for piece in word.pieces), default=0.0)

    words = [word for word in parsed.words if not word.is_time]
    rarest = {word.pieces for word in sorted(words, key=weight, reverse=True)[:MAX_WORDS]}
    query = replace(parsed, words=tuple(word for word in words if word.pieces in rarest))
    stems = texts_by_stem(query)
    return query, [term for term in terms if term.stem in stems]


def _rank(
    connection: sqlite3.Connection,
    prompt: Prompt,
    query: ParsedQuery,
    terms: list[Term],
    rule: Rule,
    semantic_index: SemanticIndex | None,
) -> tuple[list[_Candidate], dict[int, float]]:
    """Turns of other sessions that this session was given no hint of, best first; and the bm25 of
    passages."""
    filters = Filters(project_id=prompt.project_id, until=prompt.until)
    loaded = semantic_index.load() if semantic_index is not None else None
    for depth in (DEPTH, SEARCH):
        collected = collect(connection, query, filters, MAX_LINES, WEIGHTS, loaded, terms, depth)
        results = [
            result
            for result in rank_candidates(connection, collected, query, filters, MAX_LINES)
            if result.passage is not None
        ]
        ranked = [
            result
            for result in results
            if result.turn.session_id != prompt.session_db_id
            and result.turn.id not in prompt.hinted_turns
        ][:CANDIDATES]
        if len(ranked) >= READ_AT_ONCE or 0 < len(ranked) == len(results):
            break  # otherwise there are none, or most of them are of this session
    candidates: list[_Candidate] = []
    for result in ranked:
        if result.best is not None:
            discount = rule.prompt_discount if result.best.kind == "prompt" else 0.0
            evidence = result.evidence.cosine + result.evidence.soft_coverage - discount
            candidates.append(_Candidate(result, result.best, evidence))
    return candidates, collected.bm25


def _unknown(
    connection: sqlite3.Connection,
    candidates: Sequence[_Candidate],
    known: _Known,
    context: list[set[str]],
    past: Sequence[PastFact],
    passages: dict[int, Sequence[Passage]],
    min_score_share: float,
) -> Iterator[_Candidate]:
    """Returns the candidates that say what neither the prompt nor the context says, and that still
    holds: the best, and others of such a share of its score. Adds the passages of the turns that it
    reads, few at once: mostly the first ones are shown."""
    own = _files_of_client(connection, [candidate.ranked.turn.id for candidate in candidates])
    candidates = [candidate for candidate in candidates if candidate.ranked.turn.id not in own]
    least = 0.0
    while candidates and candidates[0].ranked.score >= least:
        near = min_score_share * candidates[0].ranked.score
        read = [c for c in candidates[:READ_AT_ONCE] if c.ranked.score >= near]
        candidates = candidates[len(read) :]
        passages |= passage_queries.texts_of_turns(connection, [c.row.turn for c in read])
        for candidate in read:
            of_turn, number = passages.get(candidate.row.turn, ()), candidate.row.id % MOST_PASSAGES
            if number >= len(of_turn) or candidate.ranked.score < least:
                continue  # the turn was changed in between, or is too far behind
            text, title = of_turn[number].text, candidate.ranked.turn.title
            if _repeats(text, known) or _is_in(context, title, text):
                continue
            if not states_past(f"{title} {text}", past):
                least = least or min_score_share * candidate.ranked.score
                yield candidate


def _files_of_client(connection: sqlite3.Connection, turns: list[int]) -> set[int]:
    """Turns that are a file of the client's own memory, which it loads itself."""
    rows = connection.execute(
        "SELECT turn_id FROM observations WHERE observer = ?"
        " AND turn_id IN (SELECT value FROM json_each(?))",
        (CLIENT_FILE, json.dumps(turns)),
    )
    return {row[0] for row in rows}


def _select(candidates: Sequence[_Candidate], needed: float, rule: Rule) -> list[_Candidate]:
    if not candidates or candidates[0].evidence < needed:
        return []
    best, *others = candidates
    needed_of_others = needed - rule.next_discount
    return [best, *(other for other in others if other.evidence >= needed_of_others)]


def _words_held(row: PassageRow, terms: Sequence[Term]) -> tuple[str, ...]:
    """Returns the words that are held, rarest first."""
    matching = [term for term in terms if passage_queries.holds(row, term_hashes.hashed(term.stem))]
    return tuple(term.text for term in sorted(matching, key=lambda term: -term.weight))


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.lower()))


def _is_worth_reading(passage: Passage, known: _Known) -> bool:
    """Whether a passage is worth reading: lists of commands, files and labels are not, nor is what
    the prompt says itself."""
    words = passage.text.split()
    names = sum("/" in word or "-" in word or "\\" in word for word in words)
    return (
        passage.kind not in NOTES and 2 * names <= len(words) and not _repeats(passage.text, known)
    )


def _repeats(passage: str, known: _Known) -> bool:
    words = _words(passage)
    if len(words & known.words) > MAX_REPEATED * len(words):
        return True
    if len(known.words) < MANY_WORDS:
        return False
    stems = content_stems(passage)
    return len(stems & known.stems()) > MAX_REPEATED_OF_PLAN * len(stems)


def _context_lines(context: str) -> list[set[str]]:
    """The words of each line that says something."""
    lines = (_words(line) for line in context.splitlines())
    return [words for words in lines if len(words) >= MIN_LINE_WORDS]


def _is_in_context(context: list[set[str]], text: str) -> bool:
    """Whether a line of the context says the same."""
    words = _words(text)
    return any(len(words & line) >= COVERED_SHARE * len(words) for line in context)


def _is_in(context: list[set[str]], title: str, passage: str) -> bool:
    """Whether a line of the context is about the same, however it words or cuts it."""
    named = _words(title)
    held = named | _words(passage)
    return any(
        len(line & held) >= MIN_SAME_SHARE * len(line)
        or (len(named) >= MIN_LINE_WORDS and len(line & named) >= MIN_SAME_SHARE * len(named))
        for line in context
    )
