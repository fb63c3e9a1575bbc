"""Vectors of passages by the model that ships with claude-mem, as PostgreSQL takes them."""

from collections.abc import Sequence
from functools import cache

from claude_mem.index.embedders.static_model import StaticModel
from claude_mem.index.vectors.blocks import Rows, quantise
from claude_mem.index.vectors.calibration import Calibration
from claude_mem.index.vectors.similar_words import SimilarWords


@cache
def model() -> StaticModel:
    return StaticModel.load()


@cache
def similar_words() -> SimilarWords:
    return SimilarWords(model())


@cache
def calibration() -> Calibration:
    return Calibration.of(model())


def vectors_of(texts: Sequence[str]) -> list[str]:
    """Returns vectors as text of pgvector's type halfvec, in the whole numbers of the local index:
    shorter."""
    return [as_text(row) for row in quantise(model().encode(texts))]


def as_text(row: Rows) -> str:
    return str(row.tolist())
