"""Which memories answer a question best: the one place where that is decided.

Full text gives candidates and a score for each (bm25), vectors give candidates and how near each is
with what stands beside it; both are brought to a scale from 0 to 1 and blended. Then memories that
stand beside each other in a session lend each other score; longer ones, those whose title the
question names, and those of the time that it speaks of are lifted. Ties go to the newer memory,
then to the lower id.
"""

import math
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from claude_mem.index.text import full_text, matches
from claude_mem.index.text.documents import kind_of
from claude_mem.index.text.matches import Filters, Traits
from claude_mem.index.text.words import stem
from claude_mem.index.vectors.semantic import SemanticIndex
from claude_mem.recall.question import Question, Word
from claude_mem.recall.times import Span

if TYPE_CHECKING:
    from claude_mem.index.vectors.blocks import Likeness


@dataclass(frozen=True, slots=True)
class Weights:
    """Tuned: on the five development conversations of LoCoMo, each held out in turn, by
    `python -m bench.recall --locomo FILE --tune`. Seen: fifteen developer questions over one
    imported project told them apart. Asked: `python -m bench.paraphrase`, where 30 of 64 questions
    in other words find their memory among the first 10, and 14 something where no answer is.
    Chosen: none of these did.
    """

    # bm25, by column: title, subtitle, body, facts, files, concepts. Chosen.
    columns: matches.Weights = (2.0, 1.5, 1.0, 1.0, 1.0, 0.5)
    meaning: float = 0.4  # of the blend, the rest is full text. Tuned
    # What the cosines of the next and of the previous memory count beside a memory's own.
    beside: tuple[float, float] = (0.2, 0.15)  # Tuned
    # Deviations above what is unrelated, to share no word with the question and be an answer
    # nevertheless: as one of several to a sentence, or otherwise; and to count in full.
    faint: float = 1.0  # Tuned
    like: float = 4.0  # Asked
    full: float = 2.5  # Tuned
    # What a memory gives to the next and second next, and to the previous and second previous.
    forward: tuple[float, ...] = (0.5, 0.2)  # Tuned
    backward: tuple[float, ...] = (0.2, 0.1)  # Tuned
    length: float = 0.3  # score * words ** length: bm25 favours what is short too much. Tuned
    title: float = 1.0  # at most, when the question says all words of the title. Tuned
    time: float = 2.5  # within the time that the question speaks of. Tuned
    told_later: float = 0.5  # within a week after it: what happened is told afterwards. Tuned
    when: float = 0.5  # the question asks for a time, and the memory names one. Tuned
    prompt: float = 0.5  # a prompt asks, its turn's memories answer. Seen
    least: float = 0.15  # of what the question's rare words weigh, or it is noise. Seen
    tail: float = 0.2  # of the best score, or the row only fills the page of a sentence. Seen


WEIGHTS = Weights()
CANDIDATES = 100  # or two pages: more changed nothing on LoCoMo
LENDERS = 40
LONGEST = 80  # words: beyond them length is no merit
MANY = 2_000
RARE = 200  # memories that may hold a word, for it to be looked up in which
_WEEK = 7 * 86_400_000
_ASKS_WHEN = ("when", "how long ago", "what date", "what day", "what month", "what year",
              "which month", "which year", "which day", "since when")  # fmt: skip

Scores = dict[int, float]  # by document


@dataclass(frozen=True, slots=True)
class Known:
    """A word of the question as the index has it."""

    word: Word
    weight: float
    count: int
    documents: list[int] | None  # None: too many to be rare

    @property
    def is_everywhere(self) -> bool:
        """In more than half of many memories: all of them would be read, and bm25 gives nothing."""
        return self.count > MANY and self.weight < math.log(2)


@dataclass(frozen=True, slots=True)
class Candidates:
    traits: dict[int, Traits]  # by document
    scores: Scores  # the best first


def rank(
    connection: sqlite3.Connection,
    question: Question,
    filters: Filters,
    wanted: int,
    weights: Weights = WEIGHTS,
    meaning: SemanticIndex | None = None,
) -> list[tuple[Traits, float]]:
    """The best first, at least `wanted` where there are so many; noise is left out."""
    limit = max(CANDIDATES, 2 * wanted)
    found = _by_words(connection, question, filters, limit, weights)
    if meaning is not None:
        found = _with_meaning(connection, found, question, filters, limit, weights, meaning)
    lent = _lend(connection, found.scores, weights)
    everyone = list(found.traits.values())
    if question.is_sentence:
        others = [document for document in lent if document not in found.scores]
        everyone += matches.traits(connection, others, filters)
    lift = _lifting(question, weights)
    ranked = [
        (one, (found.scores.get(one.document, 0.0) + lent.get(one.document, 0.0)) * lift(one))
        for one in everyone
    ]
    ranked.sort(key=lambda one: (-one[1], -one[0].created_at_epoch, one[0].document))
    if ranked and question.is_sentence:
        least = ranked[0][1] * weights.tail
        ranked = [one for one in ranked if one[1] >= least]
    return ranked


def _by_words(
    connection: sqlite3.Connection,
    question: Question,
    filters: Filters,
    limit: int,
    weights: Weights,
) -> Candidates:
    """What the memories themselves say of it, from 0 to 1; without the noise."""
    known = _look_up(connection, question, filters.project_id)
    expression = _expression(question, known)
    if not expression:
        return Candidates({}, {})
    found = matches.best(connection, expression, weights.columns, filters, limit)
    shares = _shares(known)
    common = sum(word.weight for word in known if word.count and word.documents is None)
    mass = sum(word.weight for word in known if not word.word.is_time) or 1.0
    kept: dict[int, Traits] = {}
    scores: Scores = {}
    for traits, score in found:
        share = (shares.get(traits.document, 0.0) + common) / mass
        if share >= weights.least or question.phrases:
            kept[traits.document] = traits
            scores[traits.document] = score + share  # bm25 tells nothing apart in a tiny memory
    best = max(scores.values(), default=1.0)
    return Candidates(kept, {document: score / best for document, score in scores.items()})


def _with_meaning(
    connection: sqlite3.Connection,
    found: Candidates,
    question: Question,
    filters: Filters,
    limit: int,
    weights: Weights,
    meaning: SemanticIndex,
) -> Candidates:
    """What was found by words, blended with how near it is, and others that are near."""
    likeness = meaning.likeness(connection, question.text, filters.project_id, found.scores)
    traits = dict(found.traits)
    is_one_of_several = question.is_sentence and bool(found.scores)
    enough = meaning.cosine(weights.faint if is_one_of_several else weights.like)
    if not (question.phrases or question.excluded):
        traits |= _likest(connection, likeness, enough, filters, limit)
    near = _nearness(connection, likeness, traits, weights)
    if is_one_of_several:
        beside = [one for one in near if one not in traits and near[one] >= enough]
        traits |= {one.document: one for one in matches.traits(connection, beside, filters)}
    best = sorted((near[document] for document in traits), reverse=True)[:CANDIDATES]
    # Where nothing is near, meaning says little.
    lowest = max(meaning.cosine(0), best[-1] if len(best) == CANDIDATES else 0.0)
    highest = max([meaning.cosine(weights.full), *best[:1]])

    def blended(document: int) -> float:
        meant = (max(near[document], lowest) - lowest) / ((highest - lowest) or 1.0)
        said = found.scores.get(document, 0.0)
        return (1 - weights.meaning) * said + weights.meaning * meant

    scores = {document: blended(document) for document in traits}
    order = sorted(scores, key=lambda document: (-scores[document], document))
    return Candidates(traits, {document: scores[document] for document in order})


def _likest(
    connection: sqlite3.Connection,
    likeness: "Likeness",
    enough: float,
    filters: Filters,
    limit: int,
) -> dict[int, Traits]:
    """The nearest that pass, where likeness is enough."""
    wider = limit
    while True:
        best = likeness.best(wider)
        like = [document for document, cosine in best if cosine >= enough]
        passing = matches.traits(connection, like, filters)
        if len(passing) >= limit or len(like) < wider:
            return {traits.document: traits for traits in passing}
        wider *= 8


def _nearness(
    connection: sqlite3.Connection,
    likeness: "Likeness",
    documents: Iterable[int],
    weights: Weights,
) -> Scores:
    """Of these and of those beside them: the mean of a memory's own cosine and its neighbours',
    since one thing is told in several memories."""
    places = {(document, 0): document for document in documents}
    for document, distance, other in matches.beside(connection, list(places.values()), 2):
        places[document, distance] = other
    after = {
        place: places[document, distance + 1]
        for (document, distance), place in places.items()
        if (document, distance + 1) in places
    }
    before = {later: earlier for earlier, later in after.items()}
    cosines = likeness.of(list(places.values()))
    shares = (1.0, *weights.beside)

    def mean(document: int) -> float:
        three = (document, after.get(document), before.get(document))
        known = [
            (share, max(0.0, cosines[one]))
            for share, one in zip(shares, three, strict=True)
            if one in cosines
        ]
        return sum(s * cosine for s, cosine in known) / (sum(s for s, _ in known) or 1.0)

    return {one: mean(one) for (_, distance), one in places.items() if abs(distance) <= 1}


def _look_up(
    connection: sqlite3.Connection, question: Question, project_id: int | None
) -> list[Known]:
    total = full_text.count(connection, project_id)
    found = []
    for word in question.words:
        expression = matches.any_of(word.forms)
        count = matches.frequency(connection, expression, project_id)
        documents = matches.holding(connection, expression, project_id) if count <= RARE else None
        weight = math.log(1 + (total - count + 0.5) / (count + 0.5))
        found.append(Known(word, weight, count, documents))
    return found


def _shares(known: list[Known]) -> Scores:
    """What the rare words that a memory holds weigh. Who holds a common one is not asked."""
    shares: defaultdict[int, float] = defaultdict(float)
    for word in known:
        if word.documents is not None and not word.word.is_time:
            for document in word.documents:
                shares[document] += word.weight
    return shares


def _expression(question: Question, known: list[Known]) -> str:
    """Any of the words, all of the phrases, none of the excluded."""
    here = [word for word in known if word.count]
    telling = [word for word in here if not word.is_everywhere] or here
    words = [form for word in telling for form in word.word.forms]
    if not (words or question.phrases):
        return ""
    expression = matches.any_of([*words, *question.phrases])
    if question.phrases:
        expression = matches.all_of([*question.phrases, expression])
    if question.excluded:
        expression = f"{expression} NOT {matches.any_of(question.excluded)}"
    return expression


def _lend(connection: sqlite3.Connection, scores: Scores, weights: Weights) -> Scores:
    """What each is given by its neighbours; one that was not found itself may come in by it."""
    lenders = list(scores)[:LENDERS]
    lent: defaultdict[int, float] = defaultdict(float)
    for lender, distance, neighbour in matches.beside(connection, lenders, len(weights.forward)):
        shares = weights.forward if distance > 0 else weights.backward
        lent[neighbour] += shares[abs(distance) - 1] * scores[lender]
    return lent


def _lifting(question: Question, weights: Weights) -> Callable[[Traits], float]:
    named = {stem(piece) for word in question.words for piece in word.pieces}
    asks_when = question.text.strip().lower().startswith(_ASKS_WHEN)

    def lift(traits: Traits) -> float:
        lifted = math.pow(min(traits.words, LONGEST), weights.length)
        title = traits.title_stems.split()
        if title:
            lifted *= 1 + weights.title * len(named.intersection(title)) / len(title)
        if asks_when and traits.tells_time:
            lifted *= 1 + weights.when
        if kind_of(traits.document) == "prompt":
            lifted *= weights.prompt
        if question.spans:
            lifted *= 1 + _time_lift(traits.created_at_epoch, question.spans, weights)
        return lifted

    return lift


def _time_lift(moment: int, spans: tuple[Span, ...], weights: Weights) -> float:
    if any(span.since <= moment < span.until for span in spans):
        return weights.time
    if any(span.until <= moment < span.until + _WEEK for span in spans):
        return weights.told_later
    return 0.0
