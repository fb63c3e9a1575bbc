"""What the local observer's summaries leave out."""

from claude_mem.observer.local.observer import distil
from tests.turns import edited, ran, stopped, turn


def test_a_long_error_is_cut_in_the_note() -> None:
    error = f"lamp.py:3: error returned from {'x' * 300} is not checked"
    failed = ran("make check", error, 1, failed=True)
    notes = distil(turn(failed, stopped("It fails."))).summary.notes or ""
    assert "`make check` failed (lamp.py:3: error returned" in notes and len(notes) < 200


def test_the_first_words_of_the_answer_are_not_told_beside_an_observation() -> None:
    change = edited("lamp.py", old="pass", new="def dim_at_night(lamp):\n    return lamp.dim(3)")
    result = distil(turn(change, stopped("That was the last of it."), prompt="Go on"))
    assert [o.title for o in result.observations] == ["lamp.py: added `dim_at_night`"]
    assert result.summary.completed is None
