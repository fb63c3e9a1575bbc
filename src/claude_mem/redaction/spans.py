"""Places of secrets in a text, and how these are cut out."""

from collections.abc import Iterable
from dataclasses import dataclass

MARK = "[redacted:"


@dataclass(frozen=True, slots=True, order=True)
class Span:
    start: int
    end: int
    kind: str


def cut_out(text: str, spans: Iterable[Span]) -> str:
    """The text with each span replaced by its kind; of spans that overlap, the first names it."""
    parts: list[str] = []
    done = 0
    for span in sorted(spans):
        if span.start >= done:
            parts += (text[done : span.start], f"{MARK}{span.kind}]")
        done = max(done, span.end)
    return "".join((*parts, text[done:])) if parts else text
