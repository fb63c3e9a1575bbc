"""Which hints prompts would have been given.

    python -m bench.hints --sessions DIR --questions FILE --unanswerable FILE [--nearmiss FILE]
                          [--weights FILE] [--samples 30] [--seed 1]

DIR has the transcripts of one repository. Questions are asked as the first prompt of a new session,
with all of DIR as memory: a hint names the right turn if one of its lines is of a turn that holds
all terms of the answer, and holds the answer if its text does. Questions without an answer should
get no hint. Then every prompt of the sessions is sent in its order, with the memory of what was
before it, and samples of the hints are printed for a reader to judge. `--weights` takes other
weights of the observer than those of the package, for example trained without these sessions.
"""

import argparse
import json
import random
import sqlite3
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.questions import Question, load_turns, read_questions
from bench.semantic import embed_all
from bench.transcripts import import_all
from claude_mem.cli.imports import find_transcripts
from claude_mem.index.vectors.lazy_index import SemanticIndex
from claude_mem.observer.local import learned_trees
from claude_mem.recall.hint_lines import Hint
from claude_mem.recall.hints import Prompt, find_hint
from claude_mem.recall.tokens import estimate_tokens
from claude_mem.store import Store, StoreReader

SAMPLES = 30
SHOWN_PROMPT = 600  # characters


@dataclass(frozen=True, slots=True)
class PastPrompt:
    text: str
    session_db_id: int
    is_first: bool
    created_at_epoch: int


@dataclass(frozen=True, slots=True)
class QuestionFigures:
    questions: int
    hints: int
    named: int  # a line is of the right turn
    answered: int  # the text holds all terms


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=Path, required=True)
    parser.add_argument("--questions", type=Path, required=True)
    parser.add_argument("--unanswerable", type=Path, required=True)
    parser.add_argument("--nearmiss", type=Path)
    parser.add_argument("--weights", type=Path, help="a table that training/observer.py wrote")
    parser.add_argument("--samples", type=int, default=SAMPLES)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    files = find_transcripts([options.sessions])
    if not files:
        print(f"there are no transcripts in {options.sessions}")
        return 1
    if options.weights:
        learned_trees.use(learned_trees.load(options.weights))
    with (
        tempfile.TemporaryDirectory(prefix="claude-mem-bench-") as directory,
        import_all(Path(directory) / "memory", files) as store,
    ):
        semantic_index = embed_all(store)
        figures = ask_questions(store, read_questions(options.questions), semantic_index)
        print(f"questions: {figures.hints} hints for {figures.questions}, the right turn in"
              f" {figures.named}, all terms of the answer in {figures.answered}")  # fmt: skip
        for path in filter(None, (options.unanswerable, options.nearmiss)):
            texts = read_texts(path)
            hints = sum(bool(find_hint(store, Prompt(text), semantic_index)) for text in texts)
            print(f"without an answer: {hints} hints for {len(texts)} ({path.name})")
        spoken, total = print_samples(store, semantic_index, options.samples, options.seed)
        print(f"\nprompts of the sessions: {spoken} hints for {total}"
              f" ({100 * spoken / max(1, total):.1f}%)")  # fmt: skip
    return 0


def read_texts(path: Path) -> list[str]:
    lines = path.read_text("utf-8").splitlines()
    return [str(json.loads(line)["question"]) for line in lines if line.strip()]


def ask_questions(
    store: StoreReader, questions: Sequence[Question], semantic_index: SemanticIndex
) -> QuestionFigures:
    turns = store.read(load_turns)
    hints = named = answered = 0
    for question in questions:
        hint = find_hint(store, Prompt(question.text), semantic_index)
        if hint is None:
            continue
        hints += 1
        named += any(turns[line.turn_id].answers(question) for line in hint.lines)
        answered += all(term in hint.text for term in question.terms)
    return QuestionFigures(len(questions), hints, named, answered)


def hints_in_order(
    store: StoreReader, semantic_index: SemanticIndex
) -> Iterator[tuple[PastPrompt, Hint | None]]:
    """Returns the hints of every prompt, oldest first, as its session would have been given
    them."""
    hinted: dict[int, frozenset[int]] = {}
    for past in store.read(past_prompts):
        session = past.session_db_id
        prompt = Prompt(
            past.text,
            session_db_id=session,
            is_first=past.is_first,
            hinted_turns=hinted.get(session, frozenset()),
            until=past.created_at_epoch,
        )
        hint = find_hint(store, prompt, semantic_index)
        if hint is not None:
            turns = {line.turn_id for line in hint.lines}
            hinted[session] = prompt.hinted_turns | turns
        yield past, hint


def past_prompts(connection: sqlite3.Connection) -> list[PastPrompt]:
    rows = connection.execute(
        "SELECT coalesce(prompt_text, ''), session_id, prompt_number = (SELECT min(prompt_number)"
        " FROM user_prompts f WHERE f.session_id = t.session_id AND notice = 0), created_at_epoch"
        " FROM user_prompts t WHERE notice = 0 ORDER BY created_at_epoch, id"
    )
    return [PastPrompt(text, session, bool(first), at) for text, session, first, at in rows]


def print_samples(
    store: Store, semantic_index: SemanticIndex, count: int, seed: int
) -> tuple[int, int]:
    """Returns how many hints there were, and prompts."""
    given = list(hints_in_order(store, semantic_index))
    spoken = [(past, hint) for past, hint in given if hint is not None]
    for number, (past, hint) in enumerate(
        random.Random(seed).sample(spoken, min(count, len(spoken))), 1
    ):
        first = "first" if past.is_first else "later"
        evidence = ", ".join(f"{line.evidence:.2f}" for line in hint.lines)
        print(f"\n== {number}: {first} prompt, evidence {evidence},"
              f" {estimate_tokens(hint.text)} tokens")  # fmt: skip
        print(past.text[:SHOWN_PROMPT])
        print(f"--\n{hint.text}")
    return len(spoken), len(given)


if __name__ == "__main__":
    sys.exit(main())
