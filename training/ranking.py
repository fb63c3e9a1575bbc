"""Chooses the weights of the ranking by leaving one project out, and prints the left-out figures.

    python training/ranking.py --project DIR QUESTIONS [--project …] [--locomo FILE] [--trials N]

Each DIR has transcripts and each QUESTIONS is a file as `bench.transcripts` takes them; FILE is one
of LoCoMo. The candidates of every question are collected once. Then weights are drawn at random
from the table of choices below, and each fold (a project, a conversation of LoCoMo) is ranked with
the weights that do best on all others. Only sums over a fold are compared, never single questions.
"""

import argparse
import random
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench import questions as project_questions
from bench import recall as locomo_bench
from bench.semantic import embed_all
from bench.transcripts import import_all

from claude_mem.cli.imports import find_transcripts
from claude_mem.index.text.filters import NO_FILTERS, Filters
from claude_mem.index.text.passage_queries import PASSAGE_BITS, TurnRow
from claude_mem.index.vectors.lazy_index import SemanticIndex
from claude_mem.recall.parsed_query import ParsedQuery, parse_query
from claude_mem.recall.ranking import Candidates, Neighbourhood, Step, collect, neighbourhood, order
from claude_mem.recall.search import with_occasions
from claude_mem.recall.weights import WEIGHTS, Weights
from claude_mem.store import Store

TOPS = (1, 5, 10)
TOP_VALUES = (0.3, 1.0, 1.0)  # of a hit among so many
COUNT = 11  # as for the first ten results
CHOICES: dict[str, tuple[Any, ...]] = {
    "bm25": (0.15, 0.25, 0.35, 0.5),
    "similar_words": (0.5, 0.7, 0.85, 1.0, 1.2),
    "repetition_factor": (0.7, 0.8, 0.9),
    "turn_support": (0.0, 0.05, 0.1, 0.15, 0.2, 0.3),
    "next_shares": ((0.4, 0.2), (0.6, 0.2), (0.7, 0.3)),
    "previous_shares": ((0.1, 0.1), (0.2, 0.1), (0.3, 0.1)),
    "half_share_words": (60, 90, 150, 250),
    "length_exponent": (0.05, 0.1, 0.15, 0.2),
    "title_boost": (0.25, 0.5, 0.75),
    "dated_boost": (0.15, 0.25, 0.4),
    "time_boost": (0.5, 1.0),
}


@dataclass(frozen=True, slots=True)
class Question:
    """A question with all that its ranking needs, whatever the weights are."""

    parsed: ParsedQuery
    candidates: Candidates
    neighbours: tuple[Step, ...]
    neighbour_rows: dict[int, TurnRow]
    right: frozenset[int]  # turns
    by_meaning: int | None  # the rank of the first of them by cosine alone

    def rank(self, weights: Weights) -> int | None:
        near = Neighbourhood(self._steps, self._read)
        ranked = order(self.candidates, self.parsed, near, weights)
        return _first(self.right, (result.turn.id for result in ranked))

    def _steps(self, turns: Sequence[TurnRow]) -> list[Step]:
        ids = {turn.id for turn in turns}
        return [step for step in self.neighbours if step[0] in ids]

    def _read(self, ids: Iterable[int]) -> dict[int, TurnRow]:
        rows = self.neighbour_rows
        return {turn: rows[turn] for turn in ids if turn in rows}


def _first(right: frozenset[int], turns: Iterable[int]) -> int | None:
    return next((place for place, turn in enumerate(turns, 1) if turn in right), None)


@dataclass(frozen=True, slots=True)
class Fold:
    name: str
    group: str  # folds of a group count together as much as one
    questions: tuple[Question, ...]


def collect_question(
    store: Store,
    semantic_index: SemanticIndex,
    text: str,
    now: datetime,
    filters: Filters,
    right: frozenset[int],
) -> Question:
    loaded = semantic_index.load()

    def work(connection: Any) -> Question:
        parsed = with_occasions(connection, parse_query(text, now), filters.project_id)
        candidates = collect(connection, parsed, filters, COUNT, WEIGHTS, loaded)
        turns = list(candidates.turns.values())
        near = neighbourhood(connection, filters, len(WEIGHTS.next_shares))
        steps = near.steps(turns)
        rows = near.read({other for _, _, other in steps}.difference(candidates.turns))
        nearest = loaded.vector_search.similarities(connection, text, filters.project_id).best(800)
        by_meaning = dict.fromkeys(passage >> PASSAGE_BITS for passage, _ in nearest)
        return Question(parsed, candidates, tuple(steps), rows, right, _first(right, by_meaning))

    return store.read(work)


def project_fold(directory: Path, file: Path) -> Fold:
    now = datetime.now(UTC)
    with (
        tempfile.TemporaryDirectory(prefix="claude-mem-ranking-") as temporary,
        import_all(Path(temporary) / "memory", find_transcripts([directory])) as store,
    ):
        semantic_index = embed_all(store)
        turns = store.read(project_questions.load_turns)
        questions = tuple(
            collect_question(
                store,
                semantic_index,
                question.text,
                now,
                NO_FILTERS,
                frozenset(id_ for id_, turn in turns.items() if turn.answers(question)),
            )
            for question in project_questions.read_questions(file)
        )
    return Fold(directory.name, directory.name, questions)


def locomo_folds(file: Path) -> list[Fold]:
    folds: list[Fold] = []
    with locomo_bench.locomo(file) as (store, conversations):
        semantic_index = embed_all(store)
        turn_of = dict(store.read(lambda c: c.execute(
            "SELECT id, turn_id FROM observations").fetchall()))  # fmt: skip
        for number, conversation in enumerate(conversations, 1):
            filters = Filters(project_id=conversation.project_id)
            lines = {line: turn_of[memory] for memory, line in conversation.lines.items()}
            questions = tuple(
                collect_question(
                    store,
                    semantic_index,
                    question.text,
                    conversation.now,
                    filters,
                    frozenset(lines[line] for line in question.evidence if line in lines),
                )
                for question in conversation.questions
            )
            folds.append(Fold(f"LoCoMo {number}", "LoCoMo", questions))
    return folds


Hits = tuple[int, ...]  # at each of TOPS


def hits(ranks: Iterable[int | None]) -> Hits:
    present = [rank for rank in ranks if rank is not None]
    return tuple(sum(rank <= top for rank in present) for top in TOPS)


def value(results: Sequence[tuple[Fold, Hits]]) -> float:
    """The mean over groups of what is hit, per question."""
    groups: dict[str, list[tuple[Fold, Hits]]] = {}
    for result in results:
        groups.setdefault(result[0].group, []).append(result)
    means = [
        sum(sum(v * n for v, n in zip(TOP_VALUES, of_fold, strict=True)) for _, of_fold in group)
        / sum(len(fold.questions) for fold, _ in group)
        for group in groups.values()
    ]
    return sum(means) / max(1, len(means))


class Search:
    """Every draw of weights, with its hits on every fold."""

    def __init__(self, folds: list[Fold], trials: int, seed: int = 1) -> None:
        rng = random.Random(seed)
        draws = [WEIGHTS]
        for _ in range(trials):
            changed = rng.sample(list(CHOICES), k=rng.randint(1, 5))
            draws.append(replace(WEIGHTS, **{name: rng.choice(CHOICES[name]) for name in changed}))
        self.folds = folds
        self.results = {
            weights: [hits(q.rank(weights) for q in fold.questions) for fold in folds]
            for weights in dict.fromkeys(draws)
        }

    def best(self, without: Fold | None = None) -> Weights:
        """Returns the best weights on all folds but one; of equals the first."""

        def worth(weights: Weights) -> float:
            pairs = zip(self.folds, self.results[weights], strict=True)
            return value([(fold, of_fold) for fold, of_fold in pairs if fold is not without])

        return max(self.results, key=worth)

    def report(self) -> None:
        totals: dict[str, dict[str, list[int]]] = {}
        for number, fold in enumerate(self.folds):
            left_out = self.best(without=fold)
            columns = {
                "left out": self.results[left_out][number],
                "as shipped": self.results[WEIGHTS][number],
                "by meaning": hits(question.by_meaning for question in fold.questions),
            }
            print(f"{fold.name}, {len(fold.questions)} questions")
            for name, of_fold in columns.items():
                changed = f"   {differences(left_out)}" if name == "left out" else ""
                print(f"  {name:>10}: {_text(of_fold)}{changed}")
                sums = totals.setdefault("LoCoMo" if fold.group == "LoCoMo" else "projects", {})
                previous = sums.setdefault(name, [0] * len(TOPS))
                sums[name] = [a + b for a, b in zip(previous, of_fold, strict=True)]
        for group, sums in totals.items():
            of_group = [f for f in self.folds if (f.group == "LoCoMo") == (group == "LoCoMo")]
            count = sum(len(fold.questions) for fold in of_group)
            for name, numbers in sums.items():
                shares = " ".join(f"{100 * number / count:.1f}%" for number in numbers)
                print(f"{group}, {name}: {_text(tuple(numbers))} of {count} ({shares})")
        best = self.best()
        print(f"\nbest of {len(self.results)} on all: {differences(best)}")
        print(best)


def _text(numbers: Hits) -> str:
    return " ".join(f"@{top} {number}" for top, number in zip(TOPS, numbers, strict=True))


def differences(weights: Weights) -> str:
    changed = [
        f"{name} {getattr(weights, name)}"
        for name in CHOICES
        if getattr(weights, name) != getattr(WEIGHTS, name)
    ]
    return ", ".join(changed) or "as shipped"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--project", type=Path, nargs=2, action="append", default=[],
                        metavar=("DIR", "QUESTIONS"))  # fmt: skip
    parser.add_argument("--locomo", type=Path, metavar="FILE")
    parser.add_argument("--trials", type=int, default=100)
    options = parser.parse_args()
    folds = [project_fold(directory, file) for directory, file in options.project]
    if options.locomo:
        folds += locomo_folds(options.locomo)
    Search(folds, options.trials).report()
    return 0


if __name__ == "__main__":
    sys.exit(main())
