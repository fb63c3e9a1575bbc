"""Whether work grows in proportion to its input, by ratios of CPU time.

Time is the thread's own CPU time, and only ever compared with that of the same work over a shorter
input. What a short input takes next to no time for is not measured further: work that looks at
everything for each place would have shown there.
"""

import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

SIZE = 4_000
NO_TIME = 0.002  # seconds; the square of SIZE takes ten times that
PER_DOUBLING = 3.0  # 2 is linear, 4 is quadratic
TIMES = (2, 5)
HANGS = 2.0  # seconds of CPU time, for what is not even quadratic


class Hanging(Exception):
    pass


def too_fast_growth(
    work: Callable[[str], object], text: Callable[[int], str], times_measured: Sequence[int] = TIMES
) -> str | None:
    """A complaint if `work(text(size))` takes much more than twice as long for twice the size."""
    once = _seconds(work, text(SIZE))
    if once < NO_TIME:
        return None
    if once >= HANGS:
        return f"hangs at {SIZE} characters"
    growth = 0.0
    for (
        times
    ) in times_measured:  # again if it seems slow: other work may have slowed the long input alone
        short, long = (_seconds(work, text(size), times) for size in (SIZE, 4 * SIZE))
        growth = long / short
        if growth < PER_DOUBLING**2:
            return None
    return f"takes {growth:.1f} times as long for four times the text"


def _seconds(work: Callable[[str], object], text: str, times: int = 1) -> float:
    """The least of several: what else the machine does only ever adds to it."""
    least = HANGS
    for _ in range(times):
        with _interrupted(HANGS):
            begun = time.thread_time()
            try:
                work(text)
            except Hanging:
                return HANGS
            least = min(least, time.thread_time() - begun)
    return least


@contextmanager
def _interrupted(seconds: float) -> Iterator[None]:
    """Raises Hanging in this thread after that much CPU time; regular expressions hear of it."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise Hanging

    previous = signal.signal(signal.SIGPROF, interrupt)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, previous)
