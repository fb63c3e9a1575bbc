"""Whether a result is likely to answer the query, or only the nearest there is.

A keyword query is answered by a passage that holds all of its words. Of a sentence it is estimated
by a logistic model from figures that do not depend on how much is remembered: how much the query
says, how near the passage is, and how much of the query it covers.
"""

import math
from dataclasses import dataclass

from claude_mem.recall.parsed_query import ParsedQuery
from claude_mem.recall.ranking import RankedTurn


@dataclass(frozen=True, slots=True)
class Model:
    bias: float = -20.0
    length: float = 4.0
    cosine: float = 2.0
    soft_coverage: float = 2.0


MODEL = Model()
MIN_LENGTH, MAX_LENGTH = 40, 120  # characters of a question between which its length counts


@dataclass(frozen=True, slots=True)
class Judge:
    is_sentence: bool
    length: float

    @classmethod
    def of(cls, parsed: ParsedQuery) -> "Judge":
        length = min(MAX_LENGTH, max(MIN_LENGTH, len(parsed.text.strip())))
        return cls(parsed.is_sentence, math.log(length))

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
