"""The table of the learned weights: what is in it, and how a score is made of it."""

import json
import os
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

from claude_mem.observer.local import learned_trees
from claude_mem.observer.local.evidence import collect_evidence, find_candidates
from claude_mem.observer.local.learned_features import passage_features, turn_features, turn_words
from claude_mem.observer.local.learned_trees import Trees, Weights
from claude_mem.observer.local.titles.candidates import find_titles, title_context, title_features
from tests.turns import edited, stopped, turn

TURN = turn(edited("lamp.py"), stopped("The lamp blinks twice, because the relay moved."))

LONG_TURN = turn(
    edited("lamp.py"),
    stopped("The lamp blinks twice at night, because the relay behind the harbour gate was moved to"
            " another socket when the keeper painted the northern wall of the engine room."),
)  # fmt: skip


def test_a_score_is_the_base_and_a_value_of_each_tree() -> None:
    trees = Trees(1.0, 0.0, (("names", 0.5, 0.25, ("words", 3.0, 2.0, 4.0)), 0.5))
    assert trees.score({"names": 0.5, "words": 9}) == 1.75
    assert trees.score({"names": 1, "words": 3}) == 3.5
    assert trees.score({"names": 1, "words": 4}) == 5.5


def test_a_word_that_the_table_has_not_is_rare() -> None:
    assert Weights(rarity={"the": 0.1}, rarest=5.0).rarity_of(["the", "relay"]) == [0.1, 5.0]


def test_every_feature_of_the_table_is_measured() -> None:
    learned = learned_trees.current()
    evidence = collect_evidence(TURN)
    passages = find_candidates(evidence)
    titles = find_titles(evidence, passages, is_english=True)
    measured = {
        "sentence": passage_features(passages[0], turn_words(evidence, {}, passages), learned),
        "step": passage_features(passages[0], turn_words(evidence, {}, passages), learned),
        "title": title_features(titles[0], title_context(evidence, {}), learned),
        "turn": turn_features(evidence, [0.0], 0.0),
    }
    table = json.loads(
        files("claude_mem.observer.local").joinpath(learned_trees.TABLE).read_text("utf-8")
    )
    for name, features in measured.items():
        assert used(table[name]["trees"]) <= set(features), name


def used(node: object) -> set[str]:
    """The features in a table of trees."""
    if not isinstance(node, list):
        return set()
    here = {node[0]} if node and isinstance(node[0], str) else set()
    return here.union(*map(used, node))


def test_other_weights_can_be_used() -> None:
    packaged = learned_trees.current()
    mine = Weights(rarest=1.0)
    learned_trees.use(mine)
    try:
        assert learned_trees.current() is mine
    finally:
        learned_trees.use(None)
    assert learned_trees.current() is packaged


_PRINT_FEATURES = """
from tests.test_learned_trees import LONG_TURN as TURN, collect_evidence, find_candidates
from tests.test_learned_trees import find_titles, learned_trees, passage_features
from tests.test_learned_trees import title_context, title_features, turn_words
learned, evidence = learned_trees.current(), collect_evidence(TURN)
passages = find_candidates(evidence)
for passage in passages:
    print(passage_features(passage, turn_words(evidence, {}, passages), learned))
for title in find_titles(evidence, passages, is_english=True):
    print(learned.clarity.score(title.text, title.source))
    print(title_features(title, title_context(evidence, {}), learned))
"""


def test_figures_do_not_depend_on_the_order_of_a_set() -> None:
    """Its order differs between processes, and so would the last digit of a sum."""
    root = Path(__file__).parent.parent
    outputs = {
        subprocess.run(
            [sys.executable, "-c", _PRINT_FEATURES],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(root)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(outputs) == 1 and "rarity" in outputs.pop()
