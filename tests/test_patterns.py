"""No text from outside makes a regular expression slow: twice the text, about twice the time.

Time is the thread's own CPU time, and only ever compared with that of the same pattern over a
shorter text. What a shorter text takes next to no time for is not looked at further: a pattern
that looked at every place for each place would have shown there.
"""

import signal
import time
from collections.abc import Iterator
from types import FrameType

import pytest

from tests.pattern_attacks import Attack, Use, attacks, inline_patterns, uses

SIZE = 4_000
NO_TIME = 0.002  # seconds; the square of SIZE takes ten times that
PER_DOUBLING = 3.0  # 2 is linear, 4 is quadratic
HANGS = 20.0  # seconds of CPU time, for what is not even quadratic

# What meets no text from outside.
OWN_TEXTS = {
    "launcher": "reads the launcher that this program wrote",
}

USES = [use for use in uses() if not any(f"{name}, line" in use.name for name in OWN_TEXTS)]


class Hanging(Exception):
    pass


@pytest.fixture(autouse=True)
def _interrupts_what_hangs() -> Iterator[None]:
    def interrupt(number: int, frame: FrameType | None) -> None:
        raise Hanging

    previous = signal.signal(signal.SIGPROF, interrupt)
    yield
    signal.setitimer(signal.ITIMER_PROF, 0)
    signal.signal(signal.SIGPROF, previous)


def seconds(use: Use, attack: Attack, size: int, times: int = 1) -> float:
    """The least of several: what else the machine does only ever adds to it."""
    text = attack.text(size)
    least = HANGS
    for _ in range(times):
        signal.setitimer(signal.ITIMER_PROF, HANGS)
        begun = time.thread_time()
        try:
            use.run(text)
        except Hanging:
            return HANGS
        least = min(least, time.thread_time() - begun)
    signal.setitimer(signal.ITIMER_PROF, 0)
    return least


def grows_too_fast(use: Use, attack: Attack) -> str | None:
    once = seconds(use, attack, SIZE)
    if once < NO_TIME:
        return None
    if once >= HANGS:
        return f"{use.name} hangs at {SIZE} characters: {attack}"
    short, long = (seconds(use, attack, size, times=3) for size in (SIZE, 4 * SIZE))
    if long < PER_DOUBLING**2 * short:
        return None
    return f"{use.name} takes {long / short:.1f} times as long for four times the text: {attack}"


@pytest.mark.parametrize("use", USES, ids=lambda use: use.name)
def test_a_pattern_takes_time_in_proportion_to_the_text(use: Use) -> None:
    slow = (grows_too_fast(use, attack) for attack in attacks(use.pattern))
    assert next((complaint for complaint in slow if complaint), None) is None


# The sweep itself


def test_the_sweep_looks_at_the_patterns_of_every_room() -> None:
    names = {use.name for use in USES}
    for expected in (
        "claude_mem.recall.times._OCCASION",
        "claude_mem.recall.times._PATTERNS",
        "claude_mem.observer.models.replies",
        "claude_mem.observer.local.commands",
        "claude_mem.intake.projects",
        "claude_mem.intake.transcripts.transcript",
        "claude_mem.index.text.words",
        "claude_mem.privacy",
    ):
        assert any(name.startswith(expected) for name in names), expected


@pytest.mark.parametrize(
    "pattern",
    [
        r"(?i)\b(before|after)\s+((?:[\w.-]+\s*){1,4})(?=[?!.,;:]|$)",
        r"^[a-z]+://(?:[^/\s]*@)?([^/\s]+?)(?::\d+)?/(.+)$",
        r"(a+)+$",
        r"\s+$",
        r"x.*y",
        r"\w+\s*=\s*\w+\s*;",
        r"key[\w ]*[:=]",
    ],
)
def test_the_sweep_finds_a_slow_pattern(pattern: str) -> None:
    ((_, compiled),) = inline_patterns(f"def f():\n    re.search({pattern!r}, text)\n")
    use = Use("a slow one", compiled, anchored=False)
    assert any(grows_too_fast(use, attack) for attack in attacks(compiled))
