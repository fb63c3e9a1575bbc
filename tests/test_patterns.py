"""No text from outside makes a regular expression slow: twice the text, about twice the time."""

from collections.abc import Sequence

import pytest

from tests.growth import TIMES, too_fast_growth
from tests.pattern_attacks import Attack, Use, attacks, inline_patterns, uses

# What meets no text from outside.
OWN_TEXTS = {
    "launcher": "reads the launcher that this program wrote",
}

USES = [use for use in uses() if not any(f"{name}, line" in use.name for name in OWN_TEXTS)]


def grows_too_fast(use: Use, attack: Attack, times: Sequence[int] = TIMES) -> str | None:
    complaint = too_fast_growth(use.run, attack.text, times)
    return f"{use.name} {complaint}: {attack}" if complaint else None


@pytest.mark.extra
@pytest.mark.parametrize("use", USES, ids=lambda use: use.name)
def test_a_pattern_takes_time_in_proportion_to_the_text(use: Use) -> None:
    slow = (grows_too_fast(use, attack) for attack in attacks(use.pattern))
    assert next((complaint for complaint in slow if complaint), None) is None


# The sweep itself


def test_the_sweep_looks_at_the_patterns_of_every_room() -> None:
    names = {use.name for use in USES}
    for expected in (
        "claude_mem.recall.parsed_query._OCCASION",
        "claude_mem.recall.parsed_query._PATTERNS",
        "claude_mem.observer.models.replies",
        "claude_mem.observer.local.tool_uses",
        "claude_mem.intake.projects",
        "claude_mem.intake.transcripts.transcript",
        "claude_mem.index.text.words",
        "claude_mem.redaction",
    ):
        assert any(name.startswith(expected) for name in names), expected


@pytest.mark.parametrize(
    "pattern",
    [
        r"(?i)\b(before|after)\s+((?:[\w.-]+\s*){1,4})(?=[?!.,;:]|$)",
        r"(a+)+$",
        r"\s+$",
        r"x.*y",
        r"key[\w ]*[:=]",
    ],
)
def test_the_sweep_finds_a_slow_pattern(pattern: str) -> None:
    ((_, compiled),) = inline_patterns(f"def f():\n    re.search({pattern!r}, text)\n")
    use = Use("a slow one", compiled, anchored=False)
    # Measured once: repeating it is for patterns that only seem slow.
    assert any(grows_too_fast(use, attack, times=[1]) for attack in attacks(compiled))
