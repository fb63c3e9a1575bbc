"""Which passages, titles and turns are worth keeping: each is scored by learned trees from its
features, and the passages that tell most for their length are selected, within a budget.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from heapq import heapify, heappop, heapreplace
from math import exp, fsum, inf, log

from claude_mem.observer.local import cues
from claude_mem.observer.local import learned_trees as learned
from claude_mem.observer.local.clause_grammar import has_verb
from claude_mem.observer.local.content_words import content_words, novelty
from claude_mem.observer.local.empty_phrases import is_empty_phrase
from claude_mem.observer.local.evidence import (
    Candidate,
    TurnEvidence,
    collect_evidence,
    find_candidates,
    short_request,
)
from claude_mem.observer.local.learned_features import (
    passage_features,
    turn_features,
    turn_words,
    word_weights,
)
from claude_mem.observer.local.learned_trees import Features, Trees, Weights
from claude_mem.observer.local.titles.candidates import (
    OF_REPOSITORY,
    PROPOSAL,
    READ_PASSAGES,
    SPOKEN,
    TITLES,
    UNCUT,
    TitleCandidate,
    TitleContext,
    find_titles,
    passages_with_titles,
    title_context,
    title_features,
)
from claude_mem.observer.local.titles.signs import has_plain_label
from claude_mem.observer.local.titles.wording import is_commit_request
from claude_mem.text import COLONS
from claude_mem.title_rules import is_english_text, names_in, width
from claude_mem.types import Turn, Verbosity

FEW_WORDS = 12
LONG_ANSWER, FEWEST_NAMES = 80, 2
LONGEST_COMMIT_REQUEST = 80
_CHANGELOG = re.compile(r"(?:^|[/\\])change(?:log|s)\b[^/\\]{0,20}$", re.IGNORECASE)
# Chosen on three projects, each with weights that were trained without it: what a point of clarity
# counts in the order of titles, up to which clarity, and how clear a title must be.
CLARITY_SHARE, CLEAR_ENOUGH = 0.2, 1.5
LEAST_CLARITY = -2.0  # below, a title does not count as one of the turn
LEAST_ALONE = -0.5  # of a turn with edits, or one that is worth an observation for sure
LEAST_IF_UNSURE = 0.7  # of a turn without edits that is hardly worth an observation
SURE = 0.7  # beyond the threshold of a turn
CLEAR = 0.5  # what work without edits needs
CLEAR_OF_EDITS = 1.0  # what is preferred to what the edits themselves tell
WRITTEN_SHARE = 0.1  # what it counts that a title was written to be one, and not cut
DOUBT = 1.5  # taken from the clarity of a clause with a plain label, and of one without a name
JUDGED_FIRST = 20
READ_IF_UNCLEAR = 40  # passages to look for titles in, where the first have no clear one
# The texts of a turn are at most a share of what was said in it, but may have a few sentences.
BUDGET_SHARE, SHORT_BUDGET, MAX_CHARS = 0.4, 300, 2_000
SHARE_IN_OTHER_LANGUAGES = (
    0.25  # in a language in which the scores do not tell what may be left out
)
# What a passage gains is its score, less the more it is longer than a usual one, the more other
# good passages the turn has (readers mark two or three of a turn, be it short or long), and the
# more of its words are told already. Flat: other values keep about as much.
LENGTH_COST, USUAL_LENGTH, SHORTEST_LENGTH = 1.0, 120, 40
TURN_COST, REPETITION_COST = 0.5, 1.0
LEAST_GAIN = -2.6  # a turn that says little of what readers keep does not fill its budget
LEAST_SCORE, MIN_CHARS = -5.0, 140  # but says something
SURE_SCORE = -1.4  # of a passage that is kept although it starts or ends like one that says nothing
MIN_NOVELTY = 0.25  # share of new words, compared with the title and the passages selected so far
MIN_SESSION_NOVELTY = 0.2  # and with each memory of the session's previous turns
_COMMIT_WORDS = frozenset(("hook", "hooks", "commit", "typecheck"))
_BARE_NAMES = re.compile(r"(?:File:\s*)?(?:[`\w/.\-()~:,*]{1,80}(?:\s+|$)){1,2}(?:\([^)]*\)\.?)?")


# The turns of a session are compared with the same memories.
_words_of_memory = lru_cache(maxsize=64)(content_words)


@lru_cache(maxsize=8)  # a set that was made before has its hash
def _names_of_both(sentence: frozenset[str], step: frozenset[str]) -> frozenset[str]:
    return sentence | step


@dataclass(frozen=True, slots=True)
class Detail:
    """How much the observer writes, by `CLAUDE_MEM_VERBOSITY`."""

    margin: float  # added to the score that makes a turn worth an observation
    always_observes_work: bool  # whether evident work needs no score
    budget: float  # of the texts, as a share of the normal one
    least_gain: float  # of a passage


DETAILS: dict[Verbosity, Detail] = {
    "minimal": Detail(0.25, always_observes_work=False, budget=0.5, least_gain=LEAST_GAIN + 0.7),
    "normal": Detail(0.0, always_observes_work=True, budget=1.0, least_gain=LEAST_GAIN),
    "verbose": Detail(-1.5, always_observes_work=True, budget=1.75, least_gain=LEAST_GAIN - 1.0),
}
NORMAL = DETAILS["normal"]


@dataclass(frozen=True, slots=True)
class RankedTitle:
    score: float  # how many words it may share with a reader's title
    clarity: float
    title: TitleCandidate

    @property
    def rank(self) -> float:
        clarity = CLARITY_SHARE * min(self.cautious_clarity, CLEAR_ENOUGH)
        is_uncut_title = self.title.source in TITLES and self.title.cut in UNCUT
        return self.score + clarity + WRITTEN_SHARE * is_uncut_title

    @property
    def cautious_clarity(self) -> float:
        """The best of many titles is less clear than it scores, most of all where nothing is named:
        readers did not understand three of ten clauses with a plain label or without a name, or
        without a verb where the label was cut off."""
        if self.title.source not in SPOKEN:
            return self.clarity
        text = self.title.text
        has_label = has_plain_label(text) and not text.startswith(f"{PROPOSAL}: ")
        is_fragment = self.title.cut == "later clause" and not has_verb(text)
        return self.clarity - DOUBT * (has_label + is_fragment + (not names_in(text)))

    @property
    def is_clear(self) -> bool:
        return self.is_clearer_than(CLEAR)

    def is_clearer_than(self, least: float) -> bool:
        return self.clarity >= least or is_written_as_title(self.title)

    def is_surely_clearer_than(self, least: float) -> bool:
        return self.cautious_clarity >= least or is_written_as_title(self.title)


@dataclass(frozen=True, slots=True)
class ScoredTurn:
    evidence: TurnEvidence
    candidates: list[Candidate]
    scores: list[float]  # of the candidates
    steps: list[Candidate]  # what is left to do
    titles: list[RankedTitle]  # that can be shown alone, the best first
    is_worth_observing: bool
    is_english: bool
    recent_memories: tuple[str, ...] = field(default=())


def score_turn(turn: Turn, detail: Detail = NORMAL) -> ScoredTurn:
    weights = learned.current()
    evidence = collect_evidence(turn)
    candidates = find_candidates(evidence)
    weight = word_weights(evidence, weights)
    of_turn = turn_words(evidence, weight, candidates)
    names = _names_of_both(weights.sentence.names, weights.step.names)
    features = [passage_features(c, of_turn, weights, names) for c in candidates]
    scores = list(map(weights.sentence.score, features))
    steps = [
        candidate
        for candidate, each in zip(candidates, features, strict=True)
        if _is_step(candidate, each, weights.step)
    ]
    is_english = speaks_english(candidates)
    context = title_context(evidence, weight)

    def ranked_titles(most_passages: int) -> list[RankedTitle]:
        said = passages_with_titles(candidates, scores, most_passages)
        titles = find_titles(evidence, said, is_english=is_english)
        return _rank_titles(titles, context, weights, is_english=is_english)

    ranked = ranked_titles(READ_PASSAGES)
    if is_english and not any(title.is_clear for title in ranked):
        ranked = ranked_titles(READ_IF_UNCLEAR)
    best_title = ranked[0].score if ranked else None
    worth = weights.turn.score(turn_features(evidence, scores, best_title, weights.turn.names))
    is_likely = worth >= weights.turn.threshold + detail.margin and not is_only_commit_request(
        evidence
    )
    is_sure = bool(evidence.files) or worth >= weights.turn.threshold + SURE
    least = LEAST_ALONE if is_sure else LEAST_IF_UNSURE
    alone = [title for title in ranked if not is_english or _tells_enough(title, least)]
    is_evident = is_evident_work(evidence, candidates, is_english=is_english)
    # Where the model cannot tell, evident work is all there is.
    is_told = bool(evidence.files or evidence.request.plan_title) or any(
        title.is_clear or tells_stopped_commit(title.title.text) for title in alone
    )
    counts_evident = (detail.always_observes_work and is_told) or is_likely or not is_english
    return ScoredTurn(
        evidence=evidence,
        candidates=candidates,
        scores=scores,
        steps=steps,
        titles=alone,
        is_worth_observing=(is_evident and counts_evident)
        or (is_english and is_likely and _has_answer(candidates)),
        is_english=is_english,
        recent_memories=turn.recent_memories,
    )


def _has_answer(candidates: list[Candidate]) -> bool:
    return any(candidate.origin not in ("request", "paste") for candidate in candidates)


def _is_step(candidate: Candidate, features: Features, step: Trees) -> bool:
    """Whether a passage is an open step, by the model, or where it says so. Steps of a plan or a
    request are not what is left, nor is what the agent offers to do."""
    if candidate.origin not in ("final", "statement"):
        return False
    is_offer = candidate.text.endswith(("?", "？"))
    is_step = candidate.says_what_is_left or (
        not is_offer and step.score(features) >= step.threshold
    )
    return is_step and not is_empty_phrase(candidate.text.lower())


def _rank_titles(
    titles: list[TitleCandidate], context: TitleContext, weights: Weights, *, is_english: bool
) -> list[RankedTitle]:
    likely = sorted(
        (
            (
                weights.title.score(title_features(title, context, weights, weights.title.names)),
                title,
            )
            for title in titles
        ),
        key=lambda pair: -pair[0],
    )

    def judged(titles: Iterable[tuple[float, TitleCandidate]]) -> list[RankedTitle]:
        ranked = (
            RankedTitle(score, weights.clarity.score(title.text, title.source), title)
            for score, title in titles
        )
        return [each for each in ranked if is_clear_enough(each, is_english=is_english)]

    # Judging takes longer than anything else here, and mostly one of the first is clear.
    ranked = judged(likely[:JUDGED_FIRST])
    if not any(each.is_clear for each in ranked):
        ranked += judged(likely[JUDGED_FIRST:])
    return in_order(ranked)


def is_clear_enough(ranked: RankedTitle, *, is_english: bool) -> bool:
    """Whether a title is clear enough. Clarity was learned in English; in another language it says
    nothing."""
    return not is_english or is_written_as_title(ranked.title) or ranked.clarity >= LEAST_CLARITY


def _tells_enough(ranked: RankedTitle, least: float) -> bool:
    return ranked.is_clearer_than(least) or tells_stopped_commit(ranked.title.text)


def in_order(titles: Iterable[RankedTitle]) -> list[RankedTitle]:
    """The best first: what a reader's title would say, said so that it is understood alone."""
    return sorted(titles, key=lambda each: -each.rank)


def is_written_as_title(title: TitleCandidate) -> bool:
    """Whether it was written to be read alone, and not cut: headings may need their text."""
    return title.source in OF_REPOSITORY and title.cut in UNCUT


def speaks_english(candidates: list[Candidate]) -> bool:
    """Whether the turn is in English, by what was said; a few words without any sign of a language
    count as English."""
    spoken = ("final", "request", "statement", "paste")
    text = "\n".join(c.text for c in candidates if c.origin in spoken and c.passage.kind != "code")
    return is_english_text(text) or (text.isascii() and len(text.split()) < FEW_WORDS)


# Whether a turn is worth an observation


def is_evident_work(
    evidence: TurnEvidence, candidates: Sequence[Candidate], *, is_english: bool
) -> bool:
    """Whether a turn changes the project, has a plan, or tells a cause by names; no model is needed
    then.

    In a language that the trees were not trained on, an answer of some length with a name is.
    """
    if is_commit_request(evidence.request.text):
        return any(_is_named_cause(each) or _stopped_commit(each) for each in candidates)
    if _changed_files(evidence) or evidence.request.plan:
        return True
    if not is_english:
        answer = " ".join(c.text for c in candidates if c.origin == "final")
        return width(answer) >= LONG_ANSWER and bool(cues.NAME.search(answer))
    return any(map(_is_named_cause, candidates)) or _is_answer_by_names(evidence, candidates)


def is_only_commit_request(evidence: TurnEvidence) -> bool:
    """Whether the user asked for nothing but a commit, and nothing else was changed for it."""
    request = evidence.request.text
    is_short = len(request) <= LONGEST_COMMIT_REQUEST and "?" not in request
    return is_short and is_commit_request(request) and not _changed_files(evidence)


def _changed_files(evidence: TurnEvidence) -> bool:
    return any(not _CHANGELOG.search(path) for path in evidence.files)


def _is_answer_by_names(evidence: TurnEvidence, candidates: Sequence[Candidate]) -> bool:
    """Whether a question was answered without running anything, and the answer has names."""
    if "Bash" in evidence.tools or cues.NOD.match(evidence.request.text):
        return False
    told = [
        candidate.text
        for candidate in candidates
        if candidate.origin == "final"
        and not cues.STATUS.is_in(candidate.text.lower(), candidate.words)
        and not cues.ANNOUNCEMENT.match(candidate.text)
    ]
    return len({name for text in told for name in cues.NAME.findall(text)}) >= FEWEST_NAMES


def _is_named_cause(candidate: Candidate) -> bool:
    text = candidate.text
    is_told = candidate.origin in ("final", "statement") and cues.CAUSE.is_in(
        text.lower(), candidate.words
    )
    return is_told and len(cues.NAME.findall(text)) > 1


def _stopped_commit(candidate: Candidate) -> bool:
    is_told = candidate.origin in ("final", "statement") and tells_stopped_commit(candidate.text)
    return is_told and cues.NAME.search(candidate.text) is not None


def tells_stopped_commit(text: str) -> bool:
    """Whether a hook or a check found something, so that a commit failed."""
    words = cues.words(text)
    is_about_commit = not _COMMIT_WORDS.isdisjoint(words)
    is_stopped = "blocked" in words or cues.FAILURE.is_in(text.lower(), words)
    return is_about_commit and is_stopped


# The passages to keep


def budget_for(evidence: TurnEvidence, detail: Detail = NORMAL, *, is_english: bool = True) -> int:
    """Returns the budget in characters."""
    share = BUDGET_SHARE if is_english else SHARE_IN_OTHER_LANGUAGES
    return int(min(MAX_CHARS, max(SHORT_BUDGET, share * evidence.said)) * detail.budget)


def select_passages(
    scored: ScoredTurn, title: str = "", detail: Detail = NORMAL
) -> list[Candidate]:
    """Selects passages in chronological order, without what the `title` of the turn tells."""
    told = {step.position for step in scored.steps}  # by the summary, like the request
    request = short_request(scored.evidence)
    told |= {c.position for c in scored.candidates if c.origin == "request" and c.text in request}
    # The scores of a language that the model was not trained on tell an order at best.
    least = LEAST_SCORE if scored.is_english else -inf
    ranked = [
        (gain, score, candidate)
        for gain, score, candidate in zip(
            _gains(scored), scored.scores, scored.candidates, strict=True
        )
        if score >= least and candidate.position not in told
    ]
    previous = [_words_of_memory(text) for text in scored.recent_memories]
    budget = budget_for(scored.evidence, detail, is_english=scored.is_english)
    budget -= sum(len(step.text) for step in scored.steps)
    words = content_words(f"{title}\n{request}")
    selection = _Selection(budget, words, previous, scored.candidates)
    return selection.select(ranked, detail.least_gain if scored.is_english else -inf)


def _gains(scored: ScoredTurn) -> Iterable[float]:
    """Returns the gain of each passage alone."""
    expected = fsum(1 / (1 + exp(-score)) for score in scored.scores)
    of_turn = TURN_COST * log(expected) if expected else 0.0
    for score, candidate in zip(scored.scores, scored.candidates, strict=True):
        length = max(SHORTEST_LENGTH, len(candidate.text)) / USUAL_LENGTH
        yield score - LENGTH_COST * log(length) - of_turn


def _says_something(candidate: Candidate, score: float = LEAST_SCORE) -> bool:
    text = candidate.text
    if _BARE_NAMES.fullmatch(text):
        return False
    if candidate.passage.kind == "code":
        return not text.endswith(COLONS)
    is_empty = text.endswith(COLONS) or is_empty_phrase(text.lower().replace("’", "'"))
    return not is_empty or score >= SURE_SCORE


class _Selection:
    def __init__(
        self,
        budget: int,
        words: Iterable[str],
        previous: Sequence[frozenset[str]],
        candidates: Sequence[Candidate],
    ) -> None:
        self._budget, self._previous, self._candidates = budget, previous, candidates
        self._selected: dict[int, Candidate] = {}
        self._length = 0
        self._words = set(words)  # that are told already

    def select(self, ranked: list[tuple[float, float, Candidate]], least: float) -> list[Candidate]:
        """`ranked`: gain, score and passage. What a passage repeats is known when its turn comes:
        it is put back if that leaves less of its gain."""
        queue = [(-gain, c.position, 0.0, score, c) for gain, score, c in ranked]
        heapify(queue)
        while queue:
            cost, position, known, score, candidate = queue[0]
            if -cost < least and self._length >= MIN_CHARS:
                break
            if not self._has_room_for(len(candidate.text) + 1):
                heappop(queue)
                continue
            share = self._novelty(candidate)
            repetition = -REPETITION_COST * log(share) if share else inf
            if repetition > known and share >= MIN_NOVELTY:
                heapreplace(queue, (cost + repetition - known, position, repetition, score,
                                    candidate))  # fmt: skip
                continue
            heappop(queue)
            if share >= MIN_NOVELTY:
                self._add(candidate, score)
        return [self._selected[position] for position in sorted(self._selected)]

    def _novelty(self, candidate: Candidate) -> float:
        return novelty(content_words(candidate.text), self._words)

    def _add(self, candidate: Candidate, score: float) -> None:
        if candidate.position in self._selected or not _says_something(candidate, score):
            return
        words = content_words(candidate.text)
        if any(novelty(words, told) < MIN_SESSION_NOVELTY for told in self._previous):
            return
        group = [candidate, *self._antecedent(candidate)]
        length = sum(len(each.text) + 1 for each in group)
        if not self._has_room_for(length):
            return
        self._budget -= length
        self._length += length
        for each in group:
            self._selected[each.position] = each
            self._words |= words if each is candidate else content_words(each.text)

    def _has_room_for(self, length: int) -> bool:
        return length <= self._budget + 1 or not self._selected

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
