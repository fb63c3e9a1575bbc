"""The table of weights by which turns are ranked, and the limits on what is compared."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Weights:
    """Chosen by `training/ranking.py` on the questions of three projects and five LoCoMo
    conversations, each left out in turn; neighbouring values do about as well."""

    bm25: float = 0.25
    cosine: float = 1.0
    similar_words: float = 1.0
    repetition_factor: float = 0.8  # of plans and compaction summaries: they repeat what was said
    turn_support: float = 0.1  # times ln(1 + the scores of the turn's other passages)
    # Shares of its score that a turn gives to the next and second next, and to the previous and
    # second previous turn of its session; in full only between turns of no words.
    next_shares: tuple[float, ...] = (0.6, 0.2)
    previous_shares: tuple[float, ...] = (0.2, 0.1)
    half_share_words: int = 150  # a turn of so many words gives and gets half
    length_exponent: float = 0.1  # score * words ** this
    title_boost: float = 0.5  # when the query holds all words of the title
    time_boost: float = 1.0  # within the time that the query names
    week_after_boost: float = 0.5  # within a week after it: events are reported later
    dated_boost: float = 0.25  # the query asks when, and the passage names a time
    # Deviations above the mean of unrelated texts that a cosine must have for a turn that shares
    # no word with a keyword query.
    min_deviations: float = 4.0
    # A passage is noise unless it holds so much of the query's weight, or is so near.
    min_coverage: float = 0.15
    min_deviations_in_sentence: float = 1.0
    min_score_share: float = 0.25  # of the best score; less only fills the page of a sentence


WEIGHTS = Weights()
