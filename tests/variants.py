"""Variants of a test of which only some run in `make test`, which has to stay short."""

from collections.abc import Iterable

import pytest
from _pytest.mark import ParameterSet


def mostly_extra(values: Iterable[object], usual: int = 1) -> list[object]:
    """The first `usual` values as they are; `make test-all` runs the others."""
    return [value if position < usual else _extra(value) for position, value in enumerate(values)]


def _extra(value: object) -> ParameterSet:
    if isinstance(value, ParameterSet):
        return pytest.param(*value.values, marks=[*value.marks, pytest.mark.extra], id=value.id)
    return pytest.param(value, marks=pytest.mark.extra)
