"""Whether a memory is found by a question in other words.

`data/paraphrases.tsv` holds memories (title, narrative) and for each a question that shares no
content word with it. They are stored among 2,000 other memories of a developer's work, made from
templates. A hit is one of the first 10 results. The same questions are then asked of a project
without these memories: every result there is wrong.
"""

import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bench.home import temporary_home
from bench.measure import Figure, run, table
from bench.recall import remember_turn
from bench.semantic import embed_all
from claude_mem.index import indexing
from claude_mem.index.text.filters import Filters
from claude_mem.index.vectors.lazy_index import SemanticIndex
from claude_mem.recall.search import Query, search
from claude_mem.store import Store
from claude_mem.types import Observation, Project

DATA = Path(__file__).parent / "data"
OTHERS, SESSION = 2_000, 5
NOW = datetime(2026, 11, 1, tzinfo=UTC)

_TITLES = (
    "{Verb} the {part} of the {thing}",
    "The {thing}'s {part} was {state}",
    "{Verb} {part} and {second} of the {thing}",
    "Why the {thing} needs a {part}",
    "The {part} moved from the {thing} to the {other}",
)
_NARRATIVES = (
    "The {part} of the {thing} was {state} after the {second} had changed. It is {fixed} now, and"
    " a test says so.",
    "Two callers asked the {thing} for its {part}; the {other} answered for both. One is left.",
    "Nobody remembered why the {part} was {state}. The {thing} works without it, so it is gone.",
    "The {other} wanted the {part} first. The {thing} now gives the {second} before it.",
    "A review found the {part} {state} in the {thing} and the {other}; both were {fixed}.",
)


@dataclass(frozen=True, slots=True)
class Paraphrase:
    memory: Observation
    question: str


def paraphrases() -> list[Paraphrase]:
    return [
        Paraphrase(Observation("discovery", title=title, narrative=narrative), question)
        for title, narrative, question in _cells("paraphrases.tsv")
    ]


def _cells(name: str) -> list[list[str]]:
    return [line.split("\t") for line in (DATA / name).read_text("utf-8").splitlines()]


def other_memories(count: int = OTHERS) -> Iterator[Observation]:
    chance = random.Random(1)
    words = {name: choices for name, *choices in _cells("words.tsv")}
    for _ in range(count):
        chosen = {name: chance.choice(choices) for name, choices in words.items()}
        chosen["other"], chosen["second"] = map(chance.choice, (words["thing"], words["part"]))
        chosen["Verb"] = chosen["verb"].capitalize()
        title = chance.choice(_TITLES).format(**chosen)
        yield Observation(
            "change", title=title, narrative=chance.choice(_NARRATIVES).format(**chosen)
        )


@contextmanager
def library() -> Iterator[tuple[Store, dict[str, int], int, int]]:
    """The answer to each question; the project with these memories, and the one without."""
    with temporary_home() as home:
        layout = home.layout
        with Store.open(layout.database, layout.backups) as store:
            store.run_before_commit(indexing.refresh)
            answers: dict[str, int] = {}
            for number, paraphrase in enumerate(paraphrases()):
                (answer,) = _remember(store, "with", f"asked-{number}", [paraphrase.memory])
                answers[paraphrase.question] = answer
            fillers = list(other_memories())
            for name in ("with", "without"):
                for start in range(0, len(fillers), SESSION):
                    _remember(store, name, f"{name}-{start}", fillers[start : start + SESSION])
            yield store, answers, store.find_project("with"), store.find_project("without")


def _remember(store: Store, project: str, session: str, memories: list[Observation]) -> list[int]:
    """Each memory is a turn of the session."""
    first = NOW - timedelta(days=30)
    return [
        remember_turn(
            store, Project(project, project), session, first + timedelta(minutes=number), memory
        )
        for number, memory in enumerate(memories)
    ]


def ranks(
    store: Store, answers: dict[str, int], project: int, semantic_index: SemanticIndex | None
) -> list[int | None]:
    answer_ranks = []
    for question, answer in answers.items():
        query = Query(question, Filters(project_id=project))
        rows = search(store, query, NOW, semantic_index).rows
        matching = (rank for rank, row in enumerate(rows, 1) if row.id.number == answer)
        answer_ranks.append(next(matching, None))
    return answer_ranks


def measure() -> list[Figure]:
    with library() as (store, answers, with_, without):
        semantic_index = embed_all(store)
        print(f"  {len(answers)} questions, {OTHERS:,} other memories, read by {semantic_index.id}")
        rows, hits, wrong = [], {}, {}
        for name, way in (("by words", None), ("by words and meaning", semantic_index)):
            answer_ranks = ranks(store, answers, with_, way)
            hits[name] = [sum(bool(r and r <= top) for r in answer_ranks) for top in (1, 5, 10)]
            unanswerable = Filters(project_id=without)
            wrong[name] = sum(
                bool(search(store, Query(question, unanswerable, limit=1), NOW, way).rows)
                for question in answers
            )
            rows.append((name, *map(str, hits[name]), str(wrong[name])))
            if way is not None:
                for question, rank in zip(answers, answer_ranks, strict=True):
                    if rank is None or rank > 10:
                        print(f"    not found: {question}")
    table(("", "@1", "@5", "@10", "answered without an answer"), rows)
    of = len(answers) / 100
    return [
        Figure("paraphrases @10 by words", hits["by words"][2] / of, "%"),
        Figure("paraphrases @10 by words and meaning", hits["by words and meaning"][2] / of, "%"),
        Figure("paraphrases answered where no answer is", wrong["by words and meaning"] / of, "%"),
    ]


if __name__ == "__main__":
    sys.exit(run({"paraphrase": measure}))
