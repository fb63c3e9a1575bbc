"""Whether a result is likely to answer the query, or only the nearest there is.

A keyword query is answered by a passage that holds all of its words. Of a sentence it is estimated
by a logistic model (`training/strength.py`) from figures that do not depend on how much is
remembered: how much the query says, how near the passage is, and how much of the query it covers.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from claude_mem.recall.parsed_text import ParsedText
from claude_mem.recall.ranking import RankedTurn


@dataclass(frozen=True, slots=True)
class Model:
    bias: float = -9.0
    length: float = 1.0
    cosine: float = 4.0
    soft_coverage: float = 0.0


MODEL = Model()
MAX_LENGTH = 120  # characters: a longer question says no more


@dataclass(frozen=True, slots=True)
class Judge:
    is_sentence: bool
    length: float

    @classmethod
    def of(cls, parsed: ParsedText, ranked: Sequence[RankedTurn]) -> "Judge":
        return cls(parsed.is_sentence, math.log(min(MAX_LENGTH, max(1, len(parsed.text.strip())))))

    def is_strong(self, result: RankedTurn) -> bool:
        evidence = result.evidence
        if not self.is_sentence:
            return evidence.is_complete
        return self.logit(result) > 0

    def logit(self, result: RankedTurn, model: Model = MODEL) -> float:
        evidence = result.evidence
        return (
            model.bias
            + model.length * self.length
            + model.cosine * evidence.cosine
            + model.soft_coverage * evidence.soft_coverage
        )
