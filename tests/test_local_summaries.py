"""What the local observer's summaries leave out."""

import pytest

from claude_mem.observer.local.observer import distil
from tests.turns import edited, ran, stopped, turn


def test_a_long_error_is_cut_in_the_note() -> None:
    error = f"lamp.py:3: error returned from {'x' * 300} is not checked"
    failed = ran("make check", error, 1, failed=True)
    notes = distil(turn(failed, stopped("It fails."))).summary.notes or ""
    assert "`make check` failed (lamp.py:3: error returned" in notes and len(notes) < 200


@pytest.mark.parametrize(
    "offer",
    [
        "Would you like me to proceed with the remaining two relays?",
        "Should I also commit this and open a pull request next?",
    ],
)
def test_an_offer_of_the_agent_is_no_next_step(offer: str) -> None:
    final = f"The lamp in `pier.py` blinks twice now.\n\nThe tests pass.\n\n{offer}"
    result = distil(turn(edited("pier.py"), ran("make test", "4 passed"), stopped(final)))
    assert result.summary.next_steps is None
    assert result.summary.open_steps == ()
