"""Places of secrets in a text."""

from dataclasses import dataclass

MARK = "[redacted:"


@dataclass(frozen=True, slots=True, order=True)
class Span:
    start: int
    end: int
    kind: str
