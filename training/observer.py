"""Trains the local observer on the notes of readers.

    python -m training.observer --sessions DIR … --labels FILE … [--titles FILE …] [--out FILE]
                                [--folds DIR]

A DIR has the name of its project. Each FILE of labels has a JSON object per line (see
`bench/labels.py`), with the open step that a turn left as `next`; the turns of each FILE are a
project of their own. Written are the weights that were trained on all of them, and with `--folds`
for every project those that were trained without it: `python -m bench.labels --weights` measures
them on that project. The features are the product's.
"""

import argparse
import json
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from bench.labels import read_labels, title_f1
from bench.observer import turns_of
from training.boosting import Boosting, Floats, Model, fit
from training.title_clarity import (
    JudgedTitle,
    fit_clarity,
    read_digests,
    read_judged,
    with_verdicts,
)

from claude_mem.cli.imports import find_transcripts
from claude_mem.observer.local import cues, learned_trees
from claude_mem.observer.local.evidence import (
    Candidate,
    TurnEvidence,
    collect_evidence,
    find_candidates,
)
from claude_mem.observer.local.learned_features import (
    passage_features,
    turn_features,
    turn_words,
    word_weights,
)
from claude_mem.observer.local.learned_trees import Features, Weights
from claude_mem.observer.local.scoring import (
    RankedTitle,
    in_order,
    is_clear_enough,
    is_evident_work,
    is_only_commit_request,
    speaks_english,
)
from claude_mem.observer.local.titles.candidates import (
    TitleCandidate,
    find_titles,
    passages_with_titles,
    title_context,
    title_features,
)

JUDGED = Path("training/judged_titles.tsv")
PACKAGED = Path("src/claude_mem/observer/local") / learned_trees.TABLE
SENTENCE = Boosting(trees=120, depth=5, rate=0.07, rows=0.8, features=0.4)
TITLE = Boosting(trees=80, depth=3, loss="squared", ridge=10, fewest=40)
TURN = Boosting(trees=60, depth=2, fewest=12)
STEP = Boosting(trees=30, depth=2)
COMMON_WORDS = 1_500
FOLDS = 5
# Shares of words: of what the reader marked, and of that and the passage together.
HELD, SAME = 0.8, 0.5
UNMARKED = 0.05  # weight of a turn in which the reader marked nothing
# The share of each error to aim at; on an unseen project more turns are missed, and not more noise
# passes the other checks: so the threshold is lower than what balances the two.
NOISE, MISSED, LENIENCE = 0.16, 0.04, 0.8


@dataclass(frozen=True, slots=True)
class LabelledTurn:
    project: str
    session_id: str
    worth: int
    title: str
    keep: tuple[str, ...]
    step: str
    evidence: TurnEvidence
    passages: list[Candidate]

    def titles(self, scores: Floats) -> list[TitleCandidate]:
        """`scores` of its passages."""
        said = passages_with_titles(self.passages, list(scores))
        return find_titles(self.evidence, said, is_english=speaks_english(self.passages))

    @property
    def fold(self) -> int:
        return crc32(self.session_id.encode()) % FOLDS


@dataclass(slots=True)
class Corpus:
    turns: list[LabelledTurn] = field(default_factory=list)
    words: dict[str, list[set[str]]] = field(default_factory=dict)  # of every turn, by project
    judged: list[JudgedTitle] = field(default_factory=list)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=Path, nargs="+", required=True)
    parser.add_argument("--labels", type=Path, nargs="+", required=True)
    parser.add_argument("--titles", type=Path, nargs="*", default=[], help="that readers judged")
    parser.add_argument("--out", type=Path, default=PACKAGED)
    parser.add_argument("--folds", type=Path, help="a directory for weights without each project")
    options = parser.parse_args()
    corpus = read_corpus(options.sessions, options.labels)
    corpus.judged = [title for path in options.titles for title in read_judged(path)]
    corpus.judged += with_verdicts(all_titles(options.sessions), read_digests(JUDGED))
    print(f"{len(corpus.judged)} judged titles")
    if options.folds:
        options.folds.mkdir(parents=True, exist_ok=True)
        for project in corpus.words:
            print(f"without {project}:")
            path = options.folds / f"without-{project}.json"
            write(path, train(corpus, [p for p in corpus.words if p != project]))
    print("all:")
    write(options.out, train(corpus, list(corpus.words)))
    return 0


# The turns


def read_corpus(sessions: list[Path], labels: list[Path]) -> Corpus:
    files = {path.stem: path for path in find_transcripts(sessions)}
    learned_trees.use(Weights())  # reading distils, but what it distils is not used
    corpus = Corpus()
    for path in labels:
        project = path.name.partition(".")[0]
        notes = {(n.session_id, n.prompt_id): n for n in read_labels(path)}
        raw = [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]
        steps = {(x["session_id"], x["prompt_id"]): x.get("next") or "" for x in raw}
        corpus.words[project] = []
        for session_id in sorted({session_id for session_id, _ in notes}):
            for turn in turns_of(files[session_id]):
                evidence = collect_evidence(replace(turn, recent_memories=()))
                passages = find_candidates(evidence)
                corpus.words[project].append({w for p in passages for w in p.words})
                key = (session_id, turn.prompt_id)
                if note := notes.get(key):
                    corpus.turns.append(
                        LabelledTurn(project, session_id, note.worth, note.title, note.keep,
                                     steps[key], evidence, passages)
                    )  # fmt: skip
    print(f"{len(corpus.turns)} labelled turns of {len(corpus.words)} projects")
    return corpus


def all_titles(sessions: list[Path]) -> Iterator[tuple[str, str, str]]:
    """Every title that a turn could get: project (the name of its directory), source and text."""
    for directory in sessions:
        for path in find_transcripts([directory]):
            for turn in turns_of(path):
                evidence = collect_evidence(replace(turn, recent_memories=()))
                passages = find_candidates(evidence)
                is_english = speaks_english(passages)
                for said in ([], *([passage] for passage in passages)):
                    for title in find_titles(evidence, said, is_english=is_english):
                        yield directory.name, title.source, title.text


def rarity_table(corpus: Corpus, projects: Sequence[str]) -> tuple[dict[str, float], float]:
    """Returns the rarity of the commonest words that at least two projects use; and of any other
    word."""
    counts: dict[str, list[float]] = {}
    for project in projects:
        turns = corpus.words[project]
        for word, count in Counter(w for words in turns for w in words).items():
            counts.setdefault(word, []).append(math.log(1 + len(turns) / (count + 0.5)))
    shared = {w: sum(v) / len(v) for w, v in counts.items() if len(v) > 1 and w.isalpha()}
    common = sorted(shared, key=lambda word: (shared[word], word))[:COMMON_WORDS]
    return {word: round(shared[word], 2) for word in sorted(common)}, 5.0


# Training


def train(corpus: Corpus, projects: Sequence[str]) -> dict[str, Any]:
    turns = [turn for turn in corpus.turns if turn.project in projects]
    rarity, rarest = rarity_table(corpus, projects)
    judged = [t for t in corpus.judged if t.project in projects or t.project not in corpus.words]
    clarity = fit_clarity(judged)
    # Of a project that it has not seen, as it will be of every other project.
    unseen = {p: fit_clarity([t for t in judged if t.project != p]) for p in projects}
    words = Weights(rarity=rarity, rarest=rarest)
    passages = [passage_rows(turn, words) for turn in turns]
    passage_names = list(passages[0][0])
    kept = [np.array([is_marked(p.words, turn.keep) for p in turn.passages]) for turn in turns]
    steps = [np.array([is_marked(p.words, [turn.step]) for p in turn.passages]) for turn in turns]
    x_passages = [matrix(rows, passage_names) for rows in passages]
    folds = np.array([turn.fold for turn in turns])

    sentence, sentence_scores = with_folds(
        SENTENCE, x_passages, kept, folds,
        weights=[1.0 if turn.keep else UNMARKED for turn in turns],
    )  # fmt: skip
    step, step_scores = with_folds(STEP, x_passages, steps, folds)
    titles = [turn.titles(scores) for turn, scores in zip(turns, sentence_scores, strict=True)]
    of_titles = [title_rows(t, of, words) for t, of in zip(turns, titles, strict=True)]
    clarities = [
        [unseen[turn.project].score(title.text, title.source) for title in of_turn]
        for turn, of_turn in zip(turns, titles, strict=True)
    ]
    title_names = list(next(filter(None, of_titles))[0])
    x_titles = [matrix(rows, title_names) for rows in of_titles]
    f1 = [
        np.array([title_f1(t.text, turn.title) for t in of_turn])
        for turn, of_turn in zip(turns, titles, strict=True)
    ]
    is_titled = [turn.worth >= 1 for turn in turns]
    title, title_scores = with_folds(TITLE, x_titles, f1, folds, is_titled)
    ranked = [shown_titles(*each) for each in zip(titles, clarities, title_scores, strict=True)]
    rows = [
        turn_features(turn.evidence, list(of_passages), best_shown(of_turn))
        for turn, of_passages, of_turn in zip(turns, sentence_scores, ranked, strict=True)
    ]
    turn_names = list(rows[0])
    worth = np.array([turn.worth for turn in turns])
    weight = np.select([worth == 0, worth == 1], [2.0, 0.3], 1.0)
    of_turns = [matrix([row], turn_names) for row in rows]
    targets = [np.array([float(value >= 2)]) for value in worth]
    turn_model, turn_scores = with_folds(TURN, of_turns, targets, folds, weights=list(weight))
    is_evident = np.array(
        [is_evident_work(turn.evidence, turn.passages, is_english=True) for turn in turns]
    )
    is_commit = np.array([is_only_commit_request(turn.evidence) for turn in turns])
    flat = np.where(is_commit, -np.inf, np.concatenate(turn_scores))
    flat = np.where(is_evident, np.inf, flat)
    threshold = turn_threshold(flat, worth)
    best = [
        title_f1(of_turn[0].title.text, turn.title) if of_turn else 0.0
        for turn, of_turn in zip(turns, ranked, strict=True)
    ]
    report(flat, worth, threshold, np.array(best))
    return {
        "sentence": sentence.table(passage_names),
        "title": title.table(title_names),
        "turn": turn_model.table(turn_names, threshold),
        "step": step.table(passage_names, step_threshold(step_scores, steps)),
        "clarity": {
            "base": clarity.base,
            "words": sorted(clarity.words),
            "weights": dict(sorted(clarity.weights.items())),
        },
        "rarity": rarity,
        "rarest": rarest,
    }


def passage_rows(turn: LabelledTurn, words: Weights) -> list[Features]:
    of_turn = turn_words(turn.evidence, word_weights(turn.evidence, words), turn.passages)
    return [passage_features(passage, of_turn, words) for passage in turn.passages]


def title_rows(turn: LabelledTurn, titles: list[TitleCandidate], words: Weights) -> list[Features]:
    facts = title_context(turn.evidence, word_weights(turn.evidence, words))
    return [title_features(title, facts, words) for title in titles]


def shown_titles(
    titles: list[TitleCandidate], clarities: list[float], scores: Floats
) -> list[RankedTitle]:
    """Returns the titles as the turn would show them."""
    ranked = (
        RankedTitle(float(score), clarity, title)
        for title, clarity, score in zip(titles, clarities, scores, strict=True)
    )
    return in_order(title for title in ranked if is_clear_enough(title, is_english=True))


def best_shown(ranked: list[RankedTitle]) -> float | None:
    """The score of the title that the turn would get."""
    return ranked[0].score if ranked else None


def is_marked(words: Iterable[str], spans: Iterable[str]) -> float:
    """Whether the passage holds a span that the reader marked, or is most of it."""
    ours = set(words)
    for span in spans:
        theirs = cues.words(span)
        shared = len(ours & theirs)
        if theirs and (shared >= HELD * len(theirs) or shared >= SAME * len(ours | theirs)):
            return 1.0
    return 0.0


def matrix(rows: Sequence[Features], names: Sequence[str]) -> Floats:
    return np.array([[row[name] for name in names] for row in rows]).reshape(-1, len(names))


def with_folds(
    options: Boosting,
    rows: list[Floats],
    targets: list[Floats],
    folds: Any,
    is_used: Sequence[bool] | None = None,
    weights: Sequence[float] | None = None,
) -> tuple[Model, list[Floats]]:
    """A model of all turns; and the scores of each by a model that has not seen its session."""
    used = [i for i in range(len(rows)) if len(rows[i]) and (is_used is None or is_used[i])]

    def model(places: list[int]) -> Model:
        of = [np.full(len(rows[i]), weights[i]) for i in places] if weights is not None else None
        return fit(
            options,
            np.concatenate([rows[i] for i in places]),
            np.concatenate([targets[i] for i in places]),
            np.concatenate(of) if of else None,
        )

    parts = [model([i for i in used if folds[i] != fold]) for fold in range(FOLDS)]
    scores = [parts[folds[i]].scores(rows[i]) for i in range(len(rows))]
    return model(used), scores


def turn_threshold(scores: Floats, worth: Any) -> float:
    """Where neither error comes near what is accepted of it."""
    finite = scores[np.isfinite(scores)]
    choices = np.unique(np.quantile(finite, np.linspace(0.02, 0.98, 193)))

    def worst(threshold: float) -> float:
        noise = (scores[worth == 0] >= threshold).mean() / NOISE
        missed = (scores[worth >= 2] < threshold).mean() / MISSED
        return float(max(noise, missed))

    return float(min(choices, key=worst)) - LENIENCE


def step_threshold(scores: list[Floats], targets: list[Floats]) -> float:
    score, target = np.concatenate(scores), np.concatenate(targets)
    choices = np.quantile(score, np.linspace(0.8, 0.999, 100))

    def f1(threshold: float) -> float:
        chosen = score >= threshold
        return float(2 * (target[chosen]).sum() / max(1, chosen.sum() + target.sum()))

    best: float = float(max(choices, key=f1))
    print(f"  open steps: F1 {f1(best):.2f}")
    return best


def report(scores: Floats, worth: Any, threshold: float, title_f1s: Floats) -> None:
    """Reports on sessions that the models have not seen, though of projects that they have."""
    print(f"  noise {(scores[worth == 0] >= threshold).sum()} of {(worth == 0).sum()},"
          f" missed {(scores[worth >= 2] < threshold).sum()} of {(worth >= 2).sum()},"
          f" best title {title_f1s[worth >= 2].mean():.2f}")  # fmt: skip


# The table


def write(path: Path, table: dict[str, Any]) -> None:
    """Writes a table with a tree, or a few words, in each line."""
    dump: Callable[[Any], str] = lambda value: json.dumps(value, ensure_ascii=False)  # noqa: E731
    parts: list[str] = []
    for name in ("sentence", "title", "turn", "step"):
        of = table[name]
        trees = ",\n".join(f"  {dump(tree)}" for tree in of["trees"])
        head = f'"base": {of["base"]}, "threshold": {of["threshold"]}'
        parts.append(f'"{name}": {{{head}, "trees": [\n{trees}\n]}}')
    clarity = table["clarity"]
    common = in_lines(list(map(dump, clarity["words"])))
    known = in_lines([f"{dump(name)}: {value}" for name, value in clarity["weights"].items()])
    parts.append(
        f'"clarity": {{"base": {clarity["base"]}, "words": [{common}],\n "weights": {{{known}}}}}'
    )
    words = in_lines([f"{dump(word)}: {value}" for word, value in table["rarity"].items()])
    parts.append(f'"rarity": {{{words}}}')
    parts.append(f'"rarest": {table["rarest"]}')
    path.write_text("{\n" + ",\n".join(parts) + "\n}\n", "utf-8")
    print(f"  {path}: {path.stat().st_size / 1024:.0f} KB")


def in_lines(items: list[str]) -> str:
    lines = [", ".join(items[i : i + 8]) for i in range(0, len(items), 8)]
    return "\n  " + ",\n  ".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
