"""How often the memory that answers a question is found: LoCoMo through the product itself.

`python -m bench.recall --locomo FILE`. Each conversation is a project, each of its sessions a
session with its date, each line a turn with one observation (title: the speaker). Questions of the
categories 1 to 4; a hit is a line of the evidence among the first 5 or 10. By words alone and by
words and meaning, with the difference; then the same questions are asked of the next conversation,
which cannot answer them. `--tune` tries other weights, each conversation held out in turn.
"""

import argparse
import json
import os
import random
import re
import sys
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from bench.home import temporary_home
from bench.measure import Figure, table
from bench.semantic import embed_all
from claude_mem.index import indexing
from claude_mem.index.text.filters import Filters
from claude_mem.index.vectors.lazy_index import SemanticIndex
from claude_mem.recall.search import Query, search
from claude_mem.recall.weights import WEIGHTS, Weights
from claude_mem.store import Store
from claude_mem.types import Distillate, Event, Observation, Project, Summary

CATEGORIES = (1, 2, 3, 4)
_EVIDENCE = re.compile(r"D\d+:\d+")


@dataclass(frozen=True, slots=True)
class Question:
    text: str
    evidence: frozenset[str]


@dataclass(frozen=True, slots=True)
class Conversation:
    """A project of the store, and the questions about it."""

    project_id: int
    now: datetime
    lines: dict[int, str]  # observation id -> LoCoMo's id
    questions: tuple[Question, ...]


Hits = tuple[bool, bool]  # among the first 5, among the first 10


@dataclass(frozen=True, slots=True)
class Score:
    hits: tuple[Hits, ...] = ()

    def __add__(self, other: "Score") -> "Score":
        return Score(self.hits + other.hits)

    @property
    def questions(self) -> int:
        return len(self.hits)

    @property
    def at_5(self) -> float:
        return 100 * sum(first for first, _ in self.hits) / max(1, len(self.hits))

    @property
    def at_10(self) -> float:
        return 100 * sum(second for _, second in self.hits) / max(1, len(self.hits))

    @property
    def value(self) -> float:
        """What tuning maximises."""
        return self.at_5 + self.at_10

    def __str__(self) -> str:
        return f"any@5 {self.at_5:.1f} any@10 {self.at_10:.1f}"


@dataclass(frozen=True, slots=True)
class Gain:
    """The gain of one score over another on the same questions, with a bootstrapped 95%
    interval."""

    points: float
    low: float
    high: float

    @classmethod
    def at_5(cls, before: Score, after: Score, rounds: int = 10_000) -> "Gain":
        pairs = zip(before.hits, after.hits, strict=True)
        gains = [int(new[0]) - int(old[0]) for old, new in pairs]
        chance = random.Random(1)
        drawn = sorted(
            100 * sum(chance.choices(gains, k=len(gains))) / len(gains) for _ in range(rounds)
        )
        return cls(
            100 * sum(gains) / len(gains), drawn[rounds // 40], drawn[rounds - rounds // 40 - 1]
        )

    def __str__(self) -> str:
        return f"{self.points:+.1f} points any@5, 95% between {self.low:+.1f} and {self.high:+.1f}"


@contextmanager
def locomo(path: Path) -> Iterator[tuple[Store, list[Conversation]]]:
    with temporary_home() as home:
        layout = home.layout
        layout.create()
        with Store.open(layout.database, layout.backups) as store:
            store.run_before_commit(indexing.refresh)
            yield store, [_remember(store, sample) for sample in json.loads(path.read_bytes())]


def _remember(store: Store, sample: dict[str, Any]) -> Conversation:
    talk, name = sample["conversation"], str(sample["sample_id"])
    project = Project(name, name)
    line_ids: dict[int, str] = {}
    moments = [datetime(2000, 1, 1, tzinfo=UTC)]
    for number in _sessions(talk):
        moment = _moment(talk[f"session_{number}_date_time"])
        moments.append(moment)
        for place, line in enumerate(talk[f"session_{number}"]):
            memory = Observation("discovery", title=line["speaker"], narrative=line["text"])
            at = moment + timedelta(milliseconds=place)
            memory_id = remember_turn(store, project, f"{name}-{number}", at, memory)
            line_ids[memory_id] = line["dia_id"]
    questions = tuple(
        Question(qa["question"], frozenset(_EVIDENCE.findall(" ".join(qa["evidence"]))))
        for qa in sample["qa"]
        if qa["category"] in CATEGORIES
    )
    now = max(moments) + timedelta(days=1)
    return Conversation(store.find_project(name), now, line_ids, questions)


def _sessions(talk: dict[str, Any]) -> list[int]:
    numbers = (re.fullmatch(r"session_(\d+)", key) for key in talk)
    return sorted(int(number[1]) for number in numbers if number)


def _moment(text: str) -> datetime:
    return datetime.strptime(text, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)


def remember_turn(
    store: Store, project: Project, session: str, moment: datetime, memory: Observation
) -> int:
    """Stores a turn as the worker does: an event ends the turn, its job is claimed, its memory is
    stored."""
    ms = int(moment.timestamp() * 1000)
    key = f"{session}:{ms}"
    stop = Event("Stop", session, ms, key, project, f"/{project.key}", prompt_id=key, text="-")
    _done(store.record_events([stop]))
    claimed = _done(store.claim_job())
    assert claimed is not None and claimed[1] is not None
    job, turn = claimed
    distillate = Distillate(Summary(), (memory,), observer="bench")
    assert _done(store.finish_job(job, turn, distillate))
    return int(store.read(lambda c: c.execute("SELECT max(id) FROM observations").fetchone()[0]))


def _done(future: "Future[Any]") -> Any:
    return future.result()


def ask(
    store: Store,
    conversation: Conversation,
    semantic_index: SemanticIndex | None = None,
    weights: Weights = WEIGHTS,
) -> Score:
    hits: list[Hits] = []
    filters = Filters(project_id=conversation.project_id)
    for question in conversation.questions:
        query = Query(question.text, filters, limit=10)
        result = search(store, query, conversation.now, semantic_index, weights)
        right = [conversation.lines.get(r.id.number) in question.evidence for r in result.rows]
        hits.append((any(right[:5]), any(right)))
    return Score(tuple(hits))


def answered_wrongly(
    store: Store, conversations: list[Conversation], semantic_index: SemanticIndex | None
) -> float:
    """The percentage of questions about one conversation that find anything in the next."""
    questions = answered = 0
    for number, conversation in enumerate(conversations):
        other = conversations[(number + 1) % len(conversations)]
        filters = Filters(project_id=other.project_id)
        for question in conversation.questions:
            query = Query(question.text, filters, limit=1)
            rows = search(store, query, other.now, semantic_index).rows
            questions, answered = questions + 1, answered + bool(rows)
    return 100 * answered / max(1, questions)


CHOICES: dict[str, tuple[Any, ...]] = {
    "bm25": (0.15, 0.25, 0.4, 0.6),
    "similar_words": (0.4, 0.7, 1.0),
    "next_shares": ((0.4, 0.2), (0.5, 0.2), (0.6, 0.2), (0.7, 0.3)),
    "previous_shares": ((0.1, 0.0), (0.1, 0.1), (0.2, 0.1)),
    "half_share_words": (60, 90, 150),
    "length_exponent": (0.0, 0.1, 0.2),
    "title_boost": (0.5, 0.75, 1.0),
    "time_boost": (0.5, 1.0, 1.5),
    "week_after_boost": (0.25, 0.5),
    "dated_boost": (0.0, 0.25, 0.5),
}


class Tuning:
    """Changes one weight at a time, as long as the score of some conversations improves."""

    def __init__(
        self, store: Store, conversations: list[Conversation], semantic_index: SemanticIndex | None
    ) -> None:
        self._store, self._conversations = store, conversations
        self._semantic_index = semantic_index
        self._scores: dict[tuple[Weights, int], Score] = {}

    def score(self, weights: Weights, numbers: list[int]) -> Score:
        total = Score()
        for number in numbers:
            if (weights, number) not in self._scores:
                self._scores[weights, number] = ask(
                    self._store, self._conversations[number], self._semantic_index, weights
                )
            total += self._scores[weights, number]
        return total

    def best(self, numbers: list[int], rounds: int = 2) -> Weights:
        weights = WEIGHTS
        for _ in range(rounds):
            previous = weights
            for name, values in CHOICES.items():
                tried = [weights, *(replace(weights, **{name: value}) for value in values)]
                weights = max(tried, key=lambda w: self.score(w, numbers).value)
            if weights == previous:
                break
        return weights

    def report(self) -> None:
        everything = list(range(len(self._conversations)))
        held_out = Score()
        for number in everything:
            weights = self.best([other for other in everything if other != number])
            score = self.score(weights, [number])
            held_out += score
            print(f"  without {number + 1}: {_differences(weights)}; on it {score}", flush=True)
        print(f"  held out: {held_out}")
        weights = self.best(everything)
        print(f"  tuned on all: {_differences(weights)}; {self.score(weights, everything)}")


def _differences(weights: Weights) -> str:
    changed = [
        f"{name} {getattr(weights, name)}"
        for name in CHOICES
        if getattr(weights, name) != getattr(WEIGHTS, name)
    ]
    return ", ".join(changed) or "as they are"


def measure() -> list[Figure]:
    """Measures with the other benchmarks where LOCOMO names the data, which cannot be shipped."""
    path = os.environ.get("LOCOMO")
    if not path:
        print("  skipped: LOCOMO is not the path of a file of conversations")
        return []
    words, both = _ask_all(Path(path))
    gain = Gain.at_5(words, both)
    return [
        Figure("LoCoMo by words, evidence in the first 5", words.at_5, "%"),
        Figure("LoCoMo, evidence in the first 5", both.at_5, "%", 71, at_least=True),
        Figure("LoCoMo, evidence in the first 10", both.at_10, "%", 81, at_least=True),
        Figure("LoCoMo, gain by meaning in the first 5", gain.points, "", 4, at_least=True),
    ]


def _ask_all(path: Path, tune: bool = False) -> tuple[Score, Score]:
    """The scores by words alone, and by words and meaning."""
    words, both = Score(), Score()
    with locomo(path) as (store, conversations):
        semantic_index = embed_all(store)
        print(f"  read by {semantic_index.id}")
        if tune:
            Tuning(store, conversations, semantic_index).report()
        rows = []
        for number, conversation in enumerate(conversations, 1):
            scores = ask(store, conversation), ask(store, conversation, semantic_index)
            words, both = words + scores[0], both + scores[1]
            rows.append((str(number), str(len(conversation.questions)), *map(str, scores)))
        rows.append(("all", str(words.questions), str(words), str(both)))
        table(("conversation", "questions", "by words", "by words and meaning"), rows)
        print(f"  {Gain.at_5(words, both)}")
        wrong = [answered_wrongly(store, conversations, way) for way in (None, semantic_index)]
        print(f"  asked of another conversation, answered nevertheless: by words {wrong[0]:.1f}%,"
              f" by words and meaning {wrong[1]:.1f}%")  # fmt: skip
    print(f"by words alone {words}")
    print(both)
    return words, both


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser("python -m bench.recall", description=__doc__)
    parser.add_argument("--locomo", type=Path, required=True, metavar="FILE")
    parser.add_argument("--tune", action="store_true", help="also try other weights; minutes")
    options = parser.parse_args(arguments)
    _ask_all(options.locomo, options.tune)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
