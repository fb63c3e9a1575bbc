"""Whether a result is strong or weak: likely to answer the query, or only the nearest there is."""

import math
from dataclasses import dataclass

from claude_mem.index.text.words import is_unspaced
from claude_mem.recall.parsed_query import ParsedQuery
from claude_mem.recall.ranking import RankedTurn


@dataclass(frozen=True, slots=True)
class StrengthModel:
    bias: float = -20.0
    length: float = 4.0
    cosine: float = 2.0
    soft_coverage: float = 2.0


STRENGTH = StrengthModel()
MAX_QUESTION = 120  # characters, up to which its length counts


@dataclass(frozen=True, slots=True)
class Strength:
    """What decides it for the results of a query.

    Any query is answered by a passage that holds all of its words. Of a sentence it is otherwise
    estimated by a logistic model from figures that do not depend on how much is remembered: how
    much the query says, how near the passage is, and how much of the query it covers.
    """

    is_sentence: bool
    length: float
    is_literal: bool = True  # each of its words is looked for in the passages

    @classmethod
    def of(cls, parsed: ParsedQuery) -> "Strength":
        length = min(MAX_QUESTION, max(1, len(parsed.text.strip())))
        is_literal = not any(w.is_time or any(map(is_unspaced, w.pieces)) for w in parsed.words)
        return cls(parsed.is_sentence, math.log(length), is_literal)

    def is_strong(self, result: RankedTurn) -> bool:
        if not self.is_sentence:
            return result.evidence.is_complete
        return (self.is_literal and result.evidence.is_complete) or self.logit(result) > 0

    def logit(self, result: RankedTurn, model: StrengthModel = STRENGTH) -> float:
        evidence = result.evidence
        return (
            model.bias
            + model.length * self.length
            + model.cosine * evidence.cosine
            + model.soft_coverage * evidence.soft_coverage
        )
