"""What the learned trees know of a passage and of a turn; of a title: `titles/candidates.py`."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, repeat
from math import fsum, log1p

from claude_mem.observer.local import cues
from claude_mem.observer.local.evidence import Candidate, Origin, TurnEvidence
from claude_mem.observer.local.learned_trees import Features, Tests, Weights, among
from claude_mem.observer.local.markdown import MessagePassage
from claude_mem.observer.local.titles.wording import is_commit_request
from claude_mem.observer.local.tool_uses import file_name

READ_REQUEST = 3_000
MAX_NAMES = 4
LOWEST = -6.0  # stands for a passage or title that is missing
ORIGINS: tuple[Origin, ...] = (
    "final", "statement", "request", "paste", "report", "commit", "question", "plan",
    "pull_request", "compaction", "notice",
)  # fmt: skip
_ORIGIN_FEATURES = {
    origin: {f"is {other}": float(origin == other) for other in ORIGINS} for origin in ORIGINS
}
_CAPITAL, _DIGIT = re.compile("[A-Z]"), re.compile("[0-9]")


# Of a passage


@dataclass(frozen=True, slots=True)
class TurnWords:
    """What the passages of a turn are compared with."""

    request: frozenset[str]
    subject: frozenset[str]  # of its commits and pull requests
    final: frozenset[str]
    weight: dict[str, float]
    uses: dict[str, int]  # the number of passages with each word
    first_use: dict[str, int]  # the position of the first of them
    passages: int
    sizes: Features  # of the turn: the same for all of its passages


def word_weights(evidence: TurnEvidence, weights: Weights) -> dict[str, float]:
    """Weighs the words that the turn repeats, and that few others use."""
    messages = [event.text or "" for event in evidence.statements[-2:]] + [evidence.final]
    request = evidence.request.text or evidence.request.plan
    names = map(file_name, evidence.files)
    texts = (*messages, request[:2_000], *evidence.written_as("commit"), *names)
    counts = Counter(chain.from_iterable(map(cues.all_words, texts)))
    rarities = weights.rarity_of(counts)
    return {
        word: log1p(count) * rarity / 5
        for (word, count), rarity in zip(counts.items(), rarities, strict=True)
    }


def turn_words(
    evidence: TurnEvidence, weight: dict[str, float], candidates: Sequence[Candidate]
) -> TurnWords:
    uses: Counter[str] = Counter()
    first_use: dict[str, int] = {}
    for candidate in candidates:
        uses.update(candidate.words)
        for word in candidate.words:
            first_use.setdefault(word, candidate.position)
    request = f"{evidence.request.text}\n{evidence.request.plan}"[:READ_REQUEST]
    return TurnWords(
        request=cues.words(request),
        subject=cues.words(" ".join(evidence.subjects[:1])),
        final=cues.words(evidence.final),
        weight=weight,
        uses=uses,
        first_use=first_use,
        passages=len(candidates),
        sizes={
            "edits": log1p(sum(len(work.sources) for work in evidence.files.values())),
            "tools": log1p(len(evidence.tools)),
            "messages": log1p(len(evidence.statements) + 1),
            "candidates": log1p(len(candidates)),
            "said": log1p(evidence.said),
            "length of request": log1p(len(evidence.request.text)),
            "length of final": log1p(len(evidence.final)),
        },
    )


# Features that take some time, each by a test: of the words, and of the text from its start or not.
_CUES: Tests[cues.Cue] = (
    ("tells cause", cues.CAUSE), ("tells change", cues.CHANGE), ("tells limit", cues.LIMIT),
    ("tells status", cues.STATUS), ("tells failure", cues.FAILURE), ("tells choice", cues.CHOICE),
    ("tells next", cues.NEXT), ("offers", cues.OFFER),
)  # fmt: skip
_SHAPES: Tests[Callable[[str], object]] = (
    ("announces", cues.ANNOUNCEMENT.match),
    ("first person", cues.find_first_person),
    ("second person", cues.find_second_person),
    ("starts with pronoun", cues.PRONOUN.match),
    ("has number", cues.NUMBER.search),
)
_OF_PASSAGE: Tests[Callable[[MessagePassage], object]] = (
    ("has telling heading", lambda passage: cues.is_telling_heading(passage.heading)),
    ("has next heading", lambda passage: cues.announces_next(passage.heading)
     or cues.announces_next(passage.label)),
    ("has label", lambda passage: passage.label),
    ("is code", lambda passage: passage.kind == "code"),
    ("is exclamation", lambda passage: passage.text.endswith("!")),
    ("has arrow", lambda passage: "→" in passage.text or "->" in passage.text),
)  # fmt: skip


@lru_cache(maxsize=8)  # the hash of the names is known; that of the tests is not
def _tests(
    names: frozenset[str] | None,
) -> tuple[
    Tests[cues.Cue],
    Tests[Callable[[str], object]],
    Tests[Callable[[MessagePassage], object]],
]:
    return among(_CUES, names), among(_SHAPES, names), among(_OF_PASSAGE, names)


def passage_features(
    candidate: Candidate,
    of_turn: TurnWords,
    weights: Weights,
    names: frozenset[str] | None = None,
) -> Features:
    """All of them, or with `names` at least these."""
    passage, words = candidate.passage, candidate.words
    text, number = passage.text, candidate.number
    lowered = text.lower()
    length, size = max(1, len(text)), max(1, len(words))
    weight = fsum(map(of_turn.weight.get, words, repeat(0.0)))
    uses = list(map(of_turn.uses.get, words, repeat(1)))
    code = text.split("`")[1::2]
    features: dict[str, float] = {
        **_ORIGIN_FEATURES[candidate.origin],
        **of_turn.sizes,
        "messages after": log1p(candidate.messages_after),
        "place": number / max(1, candidate.passages),
        "is first": number == 0,
        "is second": number == 1,
        "number": log1p(number),
        "passages": log1p(candidate.passages),
        "passages after": log1p(candidate.passages - 1 - number),
        "words": log1p(len(words)),
        "characters": log1p(len(text)),
        "characters of a word": length / size,
        "share of code": sum(map(len, code)) / length,
        "pieces of code": float(min(MAX_NAMES, len(code))),
        "share of capitals": len(_CAPITAL.findall(text)) / length,
        "share of digits": len(_DIGIT.findall(text)) / length,
        "commas": float(min(MAX_NAMES, text.count(","))),
        "ends with full stop": text.endswith("."),
        "length of heading": log1p(len(passage.heading)),
        "used elsewhere": sum(count > 1 for count in uses) / size,
        "uses elsewhere": (sum(uses) - len(uses)) / size / max(1, of_turn.passages),
        "first used": sum(of_turn.first_use.get(w) == candidate.position for w in words) / size,
        "names": cues.count_names(text, MAX_NAMES),
        "is item": passage.kind == "item",
        "is row": passage.kind == "row",
        "has heading": passage.heading != "",
        "is question": text.endswith(("?", "？")),
        "ends open": text.endswith((":", "：")),
        "has dash": "—" in text or " - " in text,
        "starts with capital": text[:1].isupper(),
        "in request": len(words & of_turn.request) / size,
        "of subject": len(words & of_turn.subject) / max(1, len(of_turn.subject)),
        "in final": len(words & of_turn.final) / size,
        "rarity": fsum(weights.rarity_of(words)) / size,
        "weight": weight / size,
        "weight of all": weight,
        "length of text": log1p(candidate.length),
    }
    of_words, of_shape, of_passage = _tests(names)
    cue_words = words & cues.CUE_WORDS
    for name, cue in of_words:
        features[name] = cue.is_in(lowered, cue_words)
    for name, match in of_shape:
        features[name] = match(text) is not None
    for name, is_so in of_passage:
        features[name] = bool(is_so(passage))
    return features


# Of a turn


_OF_FINAL: Tests[Callable[[str], float]] = (
    ("names", lambda final: log1p(len(cues.NAME.findall(final)))),
    ("distinct names", lambda final: log1p(len(set(cues.NAME.findall(final))))),
    ("emphasis", lambda final: log1p(final.count("**"))),
    ("headings", lambda final: float(final.count("\n#"))),
    ("items", lambda final: log1p(final.count("\n- "))),
    ("causes", lambda final: float(cues.CAUSE.count(final))),
    ("changes", lambda final: log1p(cues.CHANGE.count(final))),
    ("status", lambda final: float(cues.STATUS.count(final))),
    ("failures", lambda final: log1p(cues.FAILURE.count(final))),
    ("announces", lambda final: float(bool(cues.ANNOUNCEMENT.match(final)))),
    ("final asks", lambda final: float(final.rstrip().endswith(("?", "？")))),
    ("numbers", lambda final: log1p(len(cues.NUMBER.findall(final)))),
    ("words", lambda final: log1p(len(cues.words(final)))),
)


def turn_features(
    evidence: TurnEvidence,
    passage_scores: Sequence[float],
    title_score: float | None,
    names: frozenset[str] | None = None,
) -> Features:
    """`passage_scores` and `title_score`: what the other trees made of the turn. All features, or
    with `names` at least these."""
    final, request = evidence.final, evidence.request
    said = "\n".join((*(event.text or "" for event in evidence.statements), final))
    best = sorted(passage_scores, reverse=True)
    commits = evidence.written_as("commit")
    return {
        "edits": log1p(sum(len(work.sources) for work in evidence.files.values())),
        "files": log1p(len(evidence.files)),
        "files read": log1p(len(evidence.files_read)),
        "tools": log1p(len(evidence.tools)),
        "commands": log1p(evidence.tools.count("Bash")),
        "web": float(sum(tool in ("WebFetch", "WebSearch") for tool in evidence.tools)),
        "failed tools": log1p(evidence.failed_tools),
        "messages": log1p(len(evidence.statements) + 1),
        "final": log1p(len(final)),
        "said": log1p(len(said)),
        "request": log1p(len(request.text)),
        "plan": log1p(len(request.plan)),
        "commits": float(len(evidence.subjects)),
        "longest commit": log1p(max(map(len, commits), default=0)),
        "reports": float(len(evidence.written_as("report"))),
        "questions": float(len(evidence.written_as("question"))),
        "tasks": log1p(len(evidence.tasks)),
        "request is command": float(request.text.startswith("/")),
        "request is to commit": float(is_commit_request(request.text)),
        "request is nod": float(bool(cues.NOD.match(request.text))),
        "request asks": float("?" in request.text),
        "ended by error": float(bool(evidence.error)),
        "best passage": best[0] if best else LOWEST,
        "second passage": best[1] if len(best) > 1 else LOWEST,
        "best three": _mean(best[:3]),
        "best five": _mean(best[:5]),
        "best title": title_score if title_score is not None else 0.0,
        **{name: count(final) for name, count in among(_OF_FINAL, names)},
    }


def _mean(scores: Sequence[float]) -> float:
    return sum(scores) / len(scores) if scores else LOWEST
