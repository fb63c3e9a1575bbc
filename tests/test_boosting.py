"""The trees of the training are those that are written."""

import json

import numpy as np
import pytest

from claude_mem.observer.local.learned_trees import parse

boosting = pytest.importorskip("training.boosting")


def test_written_trees_score_like_the_trained_ones() -> None:
    """Also where rows have the very values that limits were drawn from, as counts do."""
    numbers = np.random.default_rng(3)
    rows = np.log1p(numbers.integers(0, 12, (400, 3))).astype(np.float64)
    targets = (rows.sum(1) + numbers.normal(0, 0.3, 400) > 5).astype(np.float64)
    options = boosting.Boosting(trees=20, depth=3, rows=0.8, features=0.7)
    model = boosting.fit(options, rows, targets)
    names = ["first", "second", "third"]
    empty = {"base": 0.0, "threshold": 0.0, "trees": []}
    table = {
        "sentence": json.loads(json.dumps(model.table(names))),
        **dict.fromkeys(("title", "turn", "step"), empty),
        "clarity": {"base": 0.0, "words": [], "weights": {}},
        "rarity": {},
        "rarest": 5.0,
    }
    sentence = parse(table).sentence
    written = [sentence.score(dict(zip(names, row, strict=True))) for row in rows.tolist()]
    assert written == pytest.approx(model.scores(rows).tolist(), abs=0.01)


def test_a_second_fit_gives_the_same_trees() -> None:
    rows = np.random.default_rng(4).normal(size=(200, 4))
    targets = (rows[:, 0] > 0).astype(np.float64)
    options = boosting.Boosting(trees=5, depth=2, rows=0.5, features=0.5)
    assert boosting.fit(options, rows, targets) == boosting.fit(options, rows, targets)
