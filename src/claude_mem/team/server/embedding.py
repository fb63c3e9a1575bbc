"""Vectors of passages by the model that ships with claude-mem, as PostgreSQL takes them."""

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from claude_mem.index.embedders.static_model import StaticModel
from claude_mem.index.vectors.calibration import Calibration
from claude_mem.index.vectors.soft_words import SoftWords

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@cache
def model() -> StaticModel:
    return StaticModel.load()


@cache
def soft_words() -> SoftWords:
    return SoftWords(model())


@cache
def calibration() -> Calibration:
    return Calibration.of(model())


def vectors_of(texts: Sequence[str]) -> list[str]:
    """As text of pgvector's type halfvec."""
    return [as_text(row) for row in model().encode(texts)]


def as_text(vector: "NDArray[np.float32]") -> str:
    return "[" + ",".join(f"{value:.4g}" for value in vector.tolist()) + "]"
