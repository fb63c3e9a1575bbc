"""What models cost: list prices in US dollars per million tokens, for estimates.

From public documentation of November 2026 (of older models not the provider's own), for requests
without cache and below 100,000 tokens. Prices change, and a subscription is not billed by the
token. A model that is not listed here has no estimate in dollars.
"""

from dataclasses import dataclass

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
