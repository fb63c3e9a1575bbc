"""Open steps: what the last message announces, each as a step with its event."""

import pytest

from claude_mem.observer.local.evidence import find_steps
from claude_mem.observer.local.observer import distil
from tests.payloads import edit, stop
from tests.turns import turn_from

LIST = "- Add a revocation endpoint\n- Rotate the keys\n- Ask the harbour master"
STEPS = ["Add a revocation endpoint", "Rotate the keys", "Ask the harbour master"]


@pytest.mark.parametrize(
    "message",
    [
        "Done. Next: add a revocation endpoint",
        "Done.\n\nNext: add a revocation endpoint",
        "Done.\n\n**Next:** add a revocation endpoint",
        "Done.\n\n**Next step**: Add a revocation endpoint",
        "TODO: add a revocation endpoint",
        "Left open: add a revocation endpoint",
        "Deferred: add a revocation endpoint",
        "## Next steps\n\nAdd a revocation endpoint",
        "Nächste Schritte:\n- Add a revocation endpoint",
    ],
)
def test_an_announced_step_is_open(message: str) -> None:
    assert [step.rstrip(".") for step in find_steps(message)] == STEPS[:1]


@pytest.mark.parametrize(
    "message",
    [
        f"All done.\n\n## Next steps\n{LIST}\n\n## Files\n- lamp.py",
        f"All done.\n\n**Next steps:**\n{LIST}\n\nThe lamp is lit.",
        f"All done.\n\nNext steps:\n\n{LIST}",
        "Remaining work\n1. Add a revocation endpoint\n2. Rotate the keys\n"
        "3. Ask the harbour master",
        "### TODO\n- [ ] Add a revocation endpoint\n- [x] Light the lamp\n- [ ] Rotate the keys\n"
        "- [ ] Ask the harbour master",
    ],
)
def test_every_item_under_next_steps_is_open(message: str) -> None:
    assert list(find_steps(message)) == STEPS


@pytest.mark.parametrize(
    "message",
    [
        "Next I looked at the lamp.",
        "The next step was easy.",
        "Remaining tests pass.",
        "Next steps: none.",
        "Next: shall I add an endpoint?",
        "## Next steps\nLet me know if anything is missing.",
        "```\nNext: add an endpoint\n```",
        "## Changes\n- Add a revocation endpoint",
        "",
    ],
)
def test_what_is_not_announced_is_not_open(message: str) -> None:
    assert list(find_steps(message)) == []


def test_a_step_after_a_short_answer_is_open_and_not_completed() -> None:
    turn = turn_from(edit(), stop("Tokens expire now. Next: add a revocation endpoint"))
    summary = distil(turn).summary
    (step,) = summary.open_steps
    assert (step.text, step.sources) == ("Add a revocation endpoint", (101,))
    assert summary.next_steps == "Add a revocation endpoint."
    assert "revocation" not in (summary.completed or "")


def test_every_bullet_becomes_a_step_of_the_summary() -> None:
    turn = turn_from(edit(), stop(f"Tokens expire now.\n\n## Next steps\n{LIST}"))
    summary = distil(turn).summary
    assert [step.text for step in summary.open_steps] == STEPS
    assert summary.next_steps == " ".join(f"{step}." for step in STEPS)
    assert not any(step in (summary.completed or "") for step in STEPS)
