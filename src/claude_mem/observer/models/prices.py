"""What models cost: list prices in US dollars per million tokens, for estimates.

A subscription is not billed by the token; its limits count about the same. Prices change: an
estimate says which it used.
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
    ("haiku-4", Price(1.0, 5.0)),
    ("3-5-haiku", Price(0.8, 4.0)),
    ("sonnet", Price(3.0, 15.0)),
    ("opus", Price(5.0, 25.0)),
)


def price_of(model: str) -> Price | None:
    """None for a model whose price is not known here."""
    return next((price for name, price in _PRICES if name in model.lower()), None)
