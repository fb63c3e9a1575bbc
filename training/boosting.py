"""Gradient-boosted trees of small depth, on histograms of the features."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Node = Any  # a number, or [feature, limit, below, above]
SEED = 1


@dataclass(frozen=True, slots=True)
class Boosting:
    trees: int
    depth: int
    loss: Literal["logistic", "squared"] = "logistic"
    rate: float = 0.08
    ridge: float = 5.0
    fewest: int = 30  # rows in a leaf
    bins: int = 16
    # The share of rows and of features that a tree is grown on, drawn anew for each.
    rows: float = 1.0
    features: float = 1.0


@dataclass(frozen=True, slots=True)
class Model:
    base: float
    trees: list[Node]  # features by number

    def scores(self, rows: Floats) -> Floats:
        total = np.full(len(rows), self.base)
        for tree in self.trees:
            total += _values(tree, rows)
        return total

    def table(self, names: list[str], threshold: float = 0.0) -> dict[str, Any]:
        trees = [_named(tree, names) for tree in self.trees]
        return {"base": round(self.base, 4), "threshold": round(threshold, 4), "trees": trees}


def fit(options: Boosting, rows: Floats, targets: Floats, weights: Floats | None = None) -> Model:
    count, features = rows.shape
    weight = np.ones(count) if weights is None else weights
    shares = np.linspace(0, 1, options.bins + 1)[1:-1]
    limits = [_limits(rows[:, j], shares) for j in range(features)]
    binned = np.stack(
        [np.searchsorted(of, rows[:, j], side="left") for j, of in enumerate(limits)], 1
    )
    mean = float((weight * targets).sum() / weight.sum())
    base = float(np.log(mean / (1 - mean))) if options.loss == "logistic" else mean
    model = Model(base, [])
    total = np.full(count, base)
    numbers = np.random.default_rng(SEED)
    for _ in range(options.trees):
        if options.loss == "logistic":
            chance = 1 / (1 + np.exp(-total))
            slope, curve = weight * (chance - targets), weight * chance * (1 - chance)
        else:
            slope, curve = weight * (total - targets), weight
        drawn = _draw(numbers, count, options.rows)
        allowed = _draw(numbers, features, options.features)
        grower = _Grower(options, limits, binned, slope, curve, allowed)
        tree = grower.grow(drawn, options.depth)
        total += _values(tree, rows)
        model.trees.append(tree)
    return model


def _limits(values: Floats, shares: Floats) -> Floats:
    """Between two values: a limit that is a value itself would, rounded, be above or below it."""
    distinct = np.unique(values)
    places = np.searchsorted(distinct, np.unique(np.quantile(values, shares)), side="right")
    inner = np.unique(places[(places > 0) & (places < len(distinct))])
    return (distinct[inner - 1] + distinct[inner]) / 2


def _draw(numbers: np.random.Generator, count: int, share: float) -> NDArray[np.int64]:
    """Some of `count` places, in order."""
    if share >= 1:
        return np.arange(count)
    return np.sort(numbers.choice(count, max(1, round(share * count)), replace=False))


@dataclass(slots=True)
class _Grower:
    options: Boosting
    limits: list[Floats]
    binned: NDArray[np.int64]
    slope: Floats
    curve: Floats
    allowed: NDArray[np.int64]  # the features to choose from

    def grow(self, rows: NDArray[np.int64], depth: int) -> Node:
        split = self._split(rows) if depth and len(rows) >= 2 * self.options.fewest else None
        if split is None:
            curve = self.curve[rows].sum() + self.options.ridge
            return float(-self.options.rate * self.slope[rows].sum() / curve)
        feature, place = split
        is_below = self.binned[rows, feature] <= place
        below, above = rows[is_below], rows[~is_below]
        limit = float(self.limits[feature][place])
        return [feature, limit, self.grow(below, depth - 1), self.grow(above, depth - 1)]

    def _split(self, rows: NDArray[np.int64]) -> tuple[int, int] | None:
        bins, features = self.options.bins, len(self.allowed)
        flat = (self.binned[np.ix_(rows, self.allowed)] + np.arange(features) * bins).ravel()

        def sums(values: Floats) -> Floats:
            repeated = np.repeat(values[rows], features)
            total = np.bincount(flat, repeated, features * bins).astype(np.float64)
            return total.reshape(features, bins).cumsum(1)

        slope, curve, size = sums(self.slope), sums(self.curve), sums(np.ones(len(self.slope)))
        ridge, fewest = self.options.ridge, self.options.fewest
        gain = (
            slope**2 / (curve + ridge)
            + (slope[0, -1] - slope) ** 2 / (curve[0, -1] - curve + ridge)
            - slope[0, -1] ** 2 / (curve[0, -1] + ridge)
        )
        gain[(size < fewest) | (size[0, -1] - size < fewest)] = -1
        best, place = np.unravel_index(int(gain.argmax()), gain.shape)
        feature = int(self.allowed[best])
        if gain[best, place] <= 1e-6 or place >= len(self.limits[feature]):
            return None
        return feature, int(place)


def _values(tree: Node, rows: Floats) -> Floats:
    if not isinstance(tree, list):
        return np.full(len(rows), tree)
    feature, limit, below, above = tree
    is_below = rows[:, feature] <= limit
    values = np.empty(len(rows))
    values[is_below] = _values(below, rows[is_below])
    values[~is_below] = _values(above, rows[~is_below])
    return values


def _named(tree: Node, names: list[str]) -> Node:
    if not isinstance(tree, list):
        return round(tree, 4)
    feature, limit, below, above = tree
    return [names[feature], round(limit, 6), _named(below, names), _named(above, names)]
