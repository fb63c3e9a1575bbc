"""Gradient-boosted trees of small depth, on histograms of the features."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Node = Any  # a number, or [feature, limit, below, above]


@dataclass(frozen=True, slots=True)
class Boosting:
    trees: int
    depth: int
    loss: Literal["logistic", "squared"] = "logistic"
    rate: float = 0.08
    ridge: float = 5.0
    fewest: int = 30  # rows in a leaf
    bins: int = 16


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
    limits = [np.unique(np.quantile(rows[:, j], shares)) for j in range(features)]
    binned = np.stack(
        [np.searchsorted(of, rows[:, j], side="left") for j, of in enumerate(limits)], 1
    )
    mean = float((weight * targets).sum() / weight.sum())
    base = float(np.log(mean / (1 - mean))) if options.loss == "logistic" else mean
    model = Model(base, [])
    total = np.full(count, base)
    for _ in range(options.trees):
        if options.loss == "logistic":
            chance = 1 / (1 + np.exp(-total))
            slope, curve = weight * (chance - targets), weight * chance * (1 - chance)
        else:
            slope, curve = weight * (total - targets), weight
        grower = _Grower(options, limits, binned, slope, curve, total)
        model.trees.append(grower.grow(np.arange(count), options.depth))
    return model


@dataclass(slots=True)
class _Grower:
    options: Boosting
    limits: list[Floats]
    binned: NDArray[np.int64]
    slope: Floats
    curve: Floats
    total: Floats  # the scores so far; a leaf adds its value

    def grow(self, rows: NDArray[np.int64], depth: int) -> Node:
        split = self._split(rows) if depth and len(rows) >= 2 * self.options.fewest else None
        if split is None:
            curve = self.curve[rows].sum() + self.options.ridge
            value = float(-self.options.rate * self.slope[rows].sum() / curve)
            self.total[rows] += value
            return value
        feature, place = split
        is_below = self.binned[rows, feature] <= place
        below, above = rows[is_below], rows[~is_below]
        limit = float(self.limits[feature][place])
        return [feature, limit, self.grow(below, depth - 1), self.grow(above, depth - 1)]

    def _split(self, rows: NDArray[np.int64]) -> tuple[int, int] | None:
        bins, features = self.options.bins, len(self.limits)
        flat = (self.binned[rows] + np.arange(features) * bins).ravel()

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
        feature, place = np.unravel_index(int(gain.argmax()), gain.shape)
        if gain[feature, place] <= 1e-6 or place >= len(self.limits[feature]):
            return None
        return int(feature), int(place)


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
