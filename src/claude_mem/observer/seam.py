"""What every observer is: something that makes a `Distillate` of a `Turn`."""

from typing import Protocol

from claude_mem.types import Distillate, Turn


class Observer(Protocol):
    name: str

    async def distil(self, turn: Turn) -> Distillate:
        """Raises when it cannot; the worker tries again, then asks the local observer."""
        ...
