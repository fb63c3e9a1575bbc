"""The learned part of the observer: trees over features, and how rare words are.

The table is `weights.json` beside this module; `training/observer.py` writes it. A tree is a
number, or `[feature, limit, below, above]`: the value of `below` where the feature is at most the
limit. The score of an item is the base plus the values of all trees.
`titles/clarity.py` has the rest.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from itertools import repeat
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from claude_mem.observer.local.titles.clarity import Clarity

TABLE = "weights.json"

Features = Mapping[str, float]
Tree: TypeAlias = "float | tuple[str, float, Tree, Tree]"


Test = TypeVar("Test")
Tests: TypeAlias = tuple[tuple[str, Test], ...]


def among(tests: Tests[Test], names: frozenset[str] | None) -> Tests[Test]:
    """The tests for features that are asked for."""
    return tests if names is None else tuple(test for test in tests if test[0] in names)


@dataclass(frozen=True, slots=True)
class Trees:
    base: float = 0.0
    threshold: float = 0.0  # from which score an item counts
    trees: tuple[Tree, ...] = ()

    def score(self, features: Features) -> float:
        return _compiled(self).score(features)

    @property
    def names(self) -> frozenset[str]:
        """The features that the trees ask for; a score needs no others."""
        return _compiled(self).names


@dataclass(frozen=True, slots=True)
class _Compiled:
    trees: Trees
    score: Callable[[Features], float]
    names: frozenset[str]


_compiled_trees: dict[int, _Compiled] = {}


def _compiled(trees: Trees) -> _Compiled:
    """Compiles the trees to a function: walking them takes most of the time of an import."""
    cached = _compiled_trees.get(id(trees))  # hashing all trees would take longer than a score
    if cached is None:
        cached = _compiled_trees[id(trees)] = _compile(trees)
    return cached


def _compile(trees: Trees) -> _Compiled:
    names: dict[str, str] = {}

    def expression(tree: Tree) -> str:
        if not isinstance(tree, tuple):
            return repr(tree)
        feature, limit, below, above = tree
        name = names.setdefault(feature, f"x{len(names)}")
        return f"({expression(below)} if {name} <= {limit!r} else {expression(above)})"

    sums = [f"    total += {expression(tree)}" for tree in trees.trees]
    values = [f"    {name} = features[{feature!r}]" for feature, name in names.items()]
    lines = ["def score(features):", *values, f"    total = {trees.base!r}", *sums]
    namespace: dict[str, Any] = {}
    exec("\n".join([*lines, "    return total"]), namespace)
    return _Compiled(trees, namespace["score"], frozenset(names))


@dataclass(frozen=True, slots=True)
class Weights:
    sentence: Trees = Trees()  # is it worth keeping?
    title: Trees = Trees()  # how many words would it share with a reader's title?
    turn: Trees = Trees()  # is it worth an observation?
    step: Trees = Trees()  # is it work left to do?
    clarity: Clarity = field(default_factory=Clarity)  # is a title understood alone?
    rarity: Mapping[str, float] = field(default_factory=dict)  # of words that all projects use
    rarest: float = 6.0  # of every other word

    def rarity_of(self, words: Iterable[str]) -> list[float]:
        return list(map(self.rarity.get, words, repeat(self.rarest)))


_chosen: list[Weights] = []


def use(weights: Weights | None) -> None:
    """Uses these weights from now on, or with None those of the package again."""
    _chosen[:] = [] if weights is None else [weights]


def current() -> Weights:
    return _chosen[0] if _chosen else _packaged()


@lru_cache(maxsize=1)
def _packaged() -> Weights:
    return parse(json.loads(files(__package__).joinpath(TABLE).read_text("utf-8")))


def load_weights() -> None:
    """Loads the weights before the first turn: parsing and compiling the trees takes longer than
    most turns."""
    weights = current()
    for trees in (weights.sentence, weights.title, weights.turn, weights.step):
        _compiled(trees)


def load(path: Path) -> Weights:
    return parse(json.loads(path.read_text("utf-8")))


def parse(table: Mapping[str, Any]) -> Weights:
    return Weights(
        **{name: _trees(table[name]) for name in ("sentence", "title", "turn", "step")},
        clarity=_clarity(table["clarity"]),
        rarity=table["rarity"],
        rarest=table["rarest"],
    )


def _clarity(table: Mapping[str, Any]) -> Clarity:
    return Clarity(table["base"], frozenset(table["words"]), table["weights"])


def _trees(table: Mapping[str, Any]) -> Trees:
    return Trees(table["base"], table["threshold"], tuple(map(_tree, table["trees"])))


def _tree(node: Any) -> Tree:
    if not isinstance(node, list):
        return float(node)
    feature, limit, below, above = node
    return (str(feature), float(limit), _tree(below), _tree(above))
