"""Trains which titles a reader understands alone: a logistic regression on shapes and signs."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from claude_mem.observer.local.titles.clarity import Clarity, known_of, plain_words

FEWEST_TITLES = 6  # with a word, in at least two projects, for it to count as such
FEWEST_TITLES_WITH = 3  # a run or a sign
DOUBTFUL = 0.5  # what a doubtful title counts of a clear one
RIDGE = 6.0
STEPS, RATE = 150, 0.05
LEAST_WEIGHT = 30  # thousandths; smaller ones are not kept


@dataclass(frozen=True, slots=True)
class JudgedTitle:
    project: str
    source: str
    text: str
    clear: float  # 0: not understood alone, 1: doubtful, 2: clear; between, where readers differ

    @property
    def target(self) -> float:
        """Doubtful titles are hardly better than those that nobody understands."""
        if self.clear <= 1:
            return self.clear * DOUBTFUL
        return DOUBTFUL + (self.clear - 1) * (1 - DOUBTFUL)


def read_judged(path: Path) -> list[JudgedTitle]:
    """Reads JSON lines, or a table with the same columns, with a domain in place of the project."""
    lines = path.read_text("utf-8").splitlines()
    if path.suffix == ".tsv":
        cells = [line.split("\t") for line in lines[1:]]
        return [
            JudgedTitle(name, source, text, float(clear)) for name, clear, source, text in cells
        ]
    values = [json.loads(line) for line in lines if line.strip()]
    return [JudgedTitle(x["project"], x["source"], x["title"], float(x["clear"])) for x in values]


def digest_of(title: str) -> str:
    """Stands for a title of past sessions: their texts are not part of the repository."""
    return sha256(title.encode()).hexdigest()[:16]


def read_digests(path: Path) -> dict[str, float]:
    """How clear readers found the titles, by digest."""
    cells = (line.split("\t") for line in path.read_text("utf-8").splitlines()[1:])
    return {digest: float(clear) for digest, clear in cells}


def with_verdicts(
    titles: Iterable[tuple[str, str, str]], clear: Mapping[str, float]
) -> list[JudgedTitle]:
    """Returns, of titles (project, source, text), those that were judged, each once."""
    found = {digest_of(text): (project, source, text) for project, source, text in titles}
    return [JudgedTitle(*found[digest], clear[digest]) for digest in sorted(found.keys() & clear)]


def common_words(titles: Iterable[JudgedTitle]) -> frozenset[str]:
    counts: Counter[str] = Counter()
    projects: defaultdict[str, set[str]] = defaultdict(set)
    for title in titles:
        for word in plain_words(title.text):
            counts[word] += 1
            projects[word].add(title.project)
    return frozenset(
        word for word, count in counts.items() if count >= FEWEST_TITLES and len(projects[word]) > 1
    )


def fit_clarity(titles: Sequence[JudgedTitle]) -> Clarity:
    words = common_words(titles)
    known = [known_of(title.text, title.source, words) for title in titles]
    counts = Counter(name for of_title in known for name in of_title)
    names = sorted(name for name, count in counts.items() if count >= FEWEST_TITLES_WITH)
    places = {name: place for place, name in enumerate(names)}
    rows = np.zeros((len(titles), len(names)), np.float32)
    for number, of_title in enumerate(known):
        rows[number, [places[name] for name in of_title if name in places]] = 1
    base, weights = _fit(rows, np.array([title.target for title in titles], np.float32))
    table = {name: round(1000 * float(weights[place])) for name, place in places.items()}
    kept = {name: weight for name, weight in table.items() if abs(weight) >= LEAST_WEIGHT}
    return Clarity(round(1000 * base), words, kept)


def _fit(rows: NDArray[Any], targets: NDArray[Any]) -> tuple[float, NDArray[Any]]:
    """Fits by Adam, in full batches: the result is the same for the same titles."""
    weights = np.zeros(rows.shape[1], np.float32)
    mean = float(targets.mean())
    base, rate = float(np.log(mean / (1 - mean))), RATE
    slope = np.zeros(rows.shape[1] + 1)
    square = np.zeros(rows.shape[1] + 1)
    for step in range(1, STEPS + 1):
        error = 1 / (1 + np.exp(-(rows @ weights + base))) - targets
        gradient = np.append(rows.T @ error + RIDGE * weights, error.sum())
        slope = 0.9 * slope + 0.1 * gradient
        square = 0.99 * square + 0.01 * gradient**2
        change = slope / (1 - 0.9**step) / (np.sqrt(square / (1 - 0.99**step)) + 1e-8)
        weights -= (rate * change[:-1]).astype(np.float32)
        base -= rate * float(change[-1])
        if step > 0.6 * STEPS:
            rate *= 0.97
    return base, weights
