"""The passages of a turn, and what the trees get to know of each."""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import repeat
from math import fsum, log1p

from claude_mem.observer.local import cues
from claude_mem.observer.local.evidence import Origin, TurnEvidence
from claude_mem.observer.local.markdown import Passage, split_passages
from claude_mem.observer.local.weights import Features, Tests, Weights, among
from claude_mem.text import one_line

SHORTEST = 15
READ_REQUEST = 3_000
MAX_NAMES = 4
MAX_PASSAGES = 600  # of a turn; what comes later is read from the last message only
ORIGINS: tuple[Origin, ...] = (
    "final", "statement", "request", "paste", "report", "commit", "question", "plan",
    "pull_request", "compaction", "notice",
)  # fmt: skip
_ORIGIN_FEATURES = {
    origin: {f"is {other}": float(origin == other) for other in ORIGINS} for origin in ORIGINS
}
_ANSWER = "\nAnswer: "
_TRAILER = re.compile(r"(?:Co-Authored-By|Signed-off-by|Generated with|🤖)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A passage of a turn that may be kept."""

    passage: Passage
    origin: Origin
    sources: tuple[int, ...]
    position: int  # among all candidates
    number: int  # in its text
    count: int  # of passages in its text
    length: int  # of its text
    messages_after: int
    words: frozenset[str]
    says_what_is_left: bool  # by a heading or a phrase of the last message

    @property
    def text(self) -> str:
        return self.passage.text


@dataclass(frozen=True, slots=True)
class TurnWords:
    """What the passages of a turn are compared with."""

    request: frozenset[str]
    subject: frozenset[str]  # of its commits and pull requests
    final: frozenset[str]
    weight: dict[str, float]
    edits: float
    tools: float
    messages: float


def word_weights(evidence: TurnEvidence, weights: Weights) -> dict[str, float]:
    """Of the words that the turn repeats, and that few others use."""
    messages = [event.text or "" for event in evidence.statements[-2:]] + [evidence.final]
    request = evidence.request.text or evidence.request.plan
    names = (path.replace("\\", "/").rsplit("/", 1)[-1] for path in evidence.files)
    texts = (*messages, request[:2_000], *evidence.written_as("commit"), *names)
    counts = Counter(word for text in texts for word in cues.all_words(text))
    rarities = weights.rarity_of(counts)
    return {
        word: log1p(count) * rarity / 5
        for (word, count), rarity in zip(counts.items(), rarities, strict=True)
    }


def turn_words(evidence: TurnEvidence, weight: dict[str, float]) -> TurnWords:
    request = f"{evidence.request.text}\n{evidence.request.plan}"[:READ_REQUEST]
    return TurnWords(
        request=frozenset(cues.words(request)),
        subject=frozenset(cues.words(" ".join(evidence.subjects[:1]))),
        final=frozenset(cues.words(evidence.final)),
        weight=weight,
        edits=log1p(sum(len(work.sources) for work in evidence.files.values())),
        tools=log1p(len(evidence.tools)),
        messages=log1p(len(evidence.statements) + 1),
    )


def find_candidates(evidence: TurnEvidence) -> list[Candidate]:
    """All passages of some length, each once, in the order of `TurnEvidence.texts`."""
    short_names = _short_names(list(evidence.files))
    candidates: list[Candidate] = []
    texts: set[str] = set()
    for source in evidence.texts():
        if not source.text or (len(candidates) > MAX_PASSAGES and source.origin != "final"):
            continue
        text = _with_short_names(source.text, short_names)
        passages = list(_passages(text, source.origin))
        for number, passage in enumerate(passages):
            key = passage.text.lower()
            if (len(passage.text) < SHORTEST and passage.text.isascii()) or key in texts:
                continue
            texts.add(key)
            candidates.append(
                Candidate(
                    passage, source.origin, source.sources, len(candidates), number, len(passages),
                    len(text), source.messages_after, frozenset(cues.words(passage.text)),
                    source.origin == "final" and _says_what_is_left(passage),
                )
            )  # fmt: skip
    return candidates


def _says_what_is_left(passage: Passage) -> bool:
    above = passage.label or passage.heading
    return cues.is_next_heading(above) or cues.says_what_is_left(passage.text[:300])


def _passages(text: str, origin: Origin) -> Iterator[Passage]:
    if origin == "question":
        yield from _answered(text)
        return
    for passage in split_passages(text):
        if origin not in ("commit", "pull_request") or not _TRAILER.match(passage.text):
            yield passage


def _answered(text: str) -> Iterator[Passage]:
    """A question with its answer is one passage; without one it is nothing."""
    question, _, answer = text.partition(_ANSWER)
    if answer:
        yield Passage(f"{one_line(question)} {one_line(answer)}")


def _short_names(paths: list[str]) -> dict[str, str]:
    """The name of each file by its path, where the name is unique: memories list the paths."""
    paths_by_name: dict[str, list[str]] = {}
    for path in paths:
        paths_by_name.setdefault(path.replace("\\", "/").rsplit("/", 1)[-1], []).append(path)
    return {paths[0]: name for name, paths in paths_by_name.items() if len(paths) == 1 != len(name)}


def _with_short_names(text: str, short_names: dict[str, str]) -> str:
    for path, name in short_names.items():
        if path in text:
            text = text.replace(path, name)
    return text


# Features that take some time, each by a test: of the words, and of the text from its start or not.
_CUES: Tests[cues.Cue] = (
    ("tells cause", cues.CAUSE), ("tells change", cues.CHANGE), ("tells limit", cues.LIMIT),
    ("tells status", cues.STATUS), ("tells failure", cues.FAILURE), ("tells choice", cues.CHOICE),
    ("tells next", cues.NEXT), ("offers", cues.OFFER),
)  # fmt: skip
_SHAPES: Tests[Callable[[str], object]] = (
    ("announces", cues.ANNOUNCEMENT.match),
    ("first person", cues.FIRST_PERSON.search),
    ("second person", cues.SECOND_PERSON.search),
    ("starts with pronoun", cues.PRONOUN.match),
    ("has number", cues.NUMBER.search),
)


@lru_cache(maxsize=8)  # the hash of the names is known; that of the tests is not
def _tests(
    names: frozenset[str] | None,
) -> tuple[Tests[cues.Cue], Tests[Callable[[str], object]]]:
    return among(_CUES, names), among(_SHAPES, names)


def passage_features(
    candidate: Candidate,
    of_turn: TurnWords,
    weights: Weights,
    names: frozenset[str] | None = None,
) -> Features:
    """All of them, or with `names` at least these."""
    passage, text, words = candidate.passage, candidate.passage.text, candidate.words
    lowered = text.lower()
    size = max(1, len(words))
    weight = fsum(map(of_turn.weight.get, words, repeat(0.0)))
    features = {
        **_ORIGIN_FEATURES[candidate.origin],
        "messages after": log1p(candidate.messages_after),
        "place": candidate.number / max(1, candidate.count),
        "is first": float(candidate.number == 0),
        "is second": float(candidate.number == 1),
        "words": log1p(len(words)),
        "names": float(cues.count_names(text, MAX_NAMES)),
        "is item": float(passage.kind == "item"),
        "is row": float(passage.kind == "row"),
        "is code": float(passage.kind == "code"),
        "has heading": float(bool(passage.heading)),
        "has telling heading": float(cues.is_telling_heading(passage.heading)),
        "has next heading": float(
            cues.announces_next(passage.heading) or cues.announces_next(passage.label)
        ),
        "has label": float(bool(passage.label)),
        "is question": float(text.endswith(("?", "？"))),
        "is exclamation": float(text.endswith("!")),
        "ends open": float(text.endswith((":", "："))),
        "has dash": float("—" in text or " - " in text),
        "has arrow": float("→" in text or "->" in text),
        "starts with capital": float(text[:1].isupper()),
        "in request": len(words & of_turn.request) / size,
        "of subject": len(words & of_turn.subject) / max(1, len(of_turn.subject)),
        "in final": len(words & of_turn.final) / size,
        "rarity": fsum(weights.rarity_of(words)) / size,
        "weight": weight / size,
        "weight of all": weight,
        "length of text": log1p(candidate.length),
        "edits": of_turn.edits,
        "tools": of_turn.tools,
        "messages": of_turn.messages,
    }
    of_words, of_shape = _tests(names)
    for name, cue in of_words:
        features[name] = float(cue.is_in(lowered, words))
    for name, match in of_shape:
        features[name] = float(match(text) is not None)
    return features
