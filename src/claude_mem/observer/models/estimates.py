"""What it will take a model to revise turns, from a sample of their requests."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil

from claude_mem.config import Settings
from claude_mem.observer.models.active_observer import DEFAULT_MODEL, model_name
from claude_mem.observer.models.prompts import build_request
from claude_mem.store import StoreReader
from claude_mem.store.refine_requests import RefineSelection
from claude_mem.store.spending import Caps
from claude_mem.text import pluralize
from claude_mem.types import Turn, Verbosity

SAMPLE = 40
SAMPLED_TURNS = 400  # of which a day is estimated


@dataclass(frozen=True, slots=True)
class Estimate:
    turns: int
    input_tokens: int
    output_tokens: int
    days: int  # under the daily caps
    dollars: float | None  # at list prices; None where the price is not known

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens


def estimate(
    turn_ids: Sequence[int],
    load: Callable[[int], Turn | None],
    verbosity: Verbosity,
    caps: Caps,
    model: str,
) -> Estimate:
    """`caps`: what may be spent on these turns in a day."""
    sizes = [_input_tokens(turn, verbosity) for turn in map(load, _sample(turn_ids)) if turn]
    mean = sum(sizes) / len(sizes) if sizes else 0.0
    input_tokens, output_tokens = round(mean * len(turn_ids)), REPLY_TOKENS * len(turn_ids)
    price = price_of(model)
    return Estimate(
        turns=len(turn_ids),
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        days=_days(len(turn_ids), input_tokens + output_tokens, caps),
        dollars=price.cost(input_tokens, output_tokens) if price else None,
    )


def _sample(turn_ids: Sequence[int]) -> Sequence[int]:
    """Takes a sample spread over all turns: valuable ones are longer than others."""
    return turn_ids[:: ceil(len(turn_ids) / SAMPLE)] if turn_ids else ()


def _input_tokens(turn: Turn, verbosity: Verbosity) -> int:
    assert turn.draft is not None
    return build_request(turn, turn.draft, verbosity).input_tokens


def _days(turns: int, tokens: int, caps: Caps) -> int:
    if not turns:
        return 0
    if caps.requests <= 0 or caps.tokens <= 0:
        return -1
    return max(ceil(turns / caps.requests), ceil(tokens / caps.tokens))


def daily_use(store: StoreReader, settings: Settings) -> str:
    """What a model would use on a day with sessions, by the user's history; empty without one."""
    turns, days = store.turns_and_days()
    turn_ids = store.refinable_turns(RefineSelection(limit=SAMPLED_TURNS))
    if not turns or not turn_ids:
        return ""
    model = model_name(settings) or DEFAULT_MODEL
    caps = Caps(settings.observer.daily_requests, settings.observer.daily_tokens)
    sample = estimate(turn_ids, store.drafted_turn, settings.observer.verbosity, caps, model)
    per_day = turns / days
    tokens = round(per_day * sample.tokens / sample.turns, -3)
    price = (
        ""
        if sample.dollars is None
        else f", ${per_day * sample.dollars / sample.turns:.2f} at list prices of {model}"
    )
    return (
        f"it would use about {tokens:,.0f} tokens on a day with sessions"
        f" ({pluralize(round(per_day), 'turn')}){price}"
    )


# What models cost: list prices in US dollars per million tokens, for estimates.
#
# From public documentation of November 2026 (of older models not the provider's own), for requests
# without cache and below 100,000 tokens. Prices change, and a subscription is not billed by the
# token. A model that is not listed here has no estimate in dollars.

REPLY_TOKENS = 700  # of a usual reply


@dataclass(frozen=True, slots=True)
class Price:
    input: float
    output: float

    def cost(self, input_tokens: int, output_tokens: int) -> float:
        return (input_tokens * self.input + output_tokens * self.output) / 1_000_000


# By a part of the model's name; the first that matches counts.
_PRICES: tuple[tuple[str, Price], ...] = (
    ("haiku-5-5", Price(0.1, 0.5)),
    ("haiku-4-5", Price(1.0, 5.0)),
    ("3-5-haiku", Price(0.8, 4.0)),
    ("sonnet-5-5", Price(2.0, 10.0)),
    ("sonnet-4", Price(3.0, 15.0)),
    ("opus-5-5", Price(4.0, 20.0)),
    ("opus-5", Price(5.0, 25.0)),
    ("opus-4-5", Price(5.0, 25.0)),
)


def price_of(model: str) -> Price | None:
    """None for a model whose price is not known here."""
    return next((price for name, price in _PRICES if name in model.lower()), None)
