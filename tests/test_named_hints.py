"""Hints for a first prompt that names what earlier turns worked on."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from claude_mem.recall.hint_lines import Hint
from claude_mem.recall.hint_prompt import MAX_NAMES, names_in
from claude_mem.recall.hint_text import whole_sentences, work_in
from claude_mem.recall.hints import Prompt, find_hint, is_task
from tests.api import Api, open_api
from tests.payloads import PROJECT_DIR

THINGS = ("crane", "ferry", "gate", "slipway", "gauge", "warehouse", "dredger", "buoy")
PLAN = """Implement the following plan:

# Plan: Let the horn rest at night

## Context
The neighbours complain. `sound_horn.py` must ask `nightSchedule` before it opens the valve, and
lower the pressure.

## Verification
Stand on the quay at midnight and listen.
"""


@pytest.fixture(scope="module")
def harbor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    with open_api(tmp_path_factory.mktemp("named")) as api:
        api.add_turn(
            "horn",
            "Make the horn louder",
            "The horn was too quiet for the ships. In `sound_horn.py` the pressure is now 4 bar,"
            " and the valve opens for two seconds. The relay of issue #318 was replaced by one that"
            " stands the salt.",
            edited=f"{PROJECT_DIR}/quay/sound_horn.py",
        )
        api.add_turn(
            "paint",
            "Inspect the new paint of the mast for me",
            "Inspection of the paint of the mast: two layers are dry. The third layer of paint has"
            " bubbles near the lamp, so it must be sanded.",
        )
        api.add_turn("paint", "Buy sandpaper", "Sandpaper of grain 80 lies in the shed of the quay"
                     " master.", branch="repaint")  # fmt: skip
        for number, thing in enumerate(THINGS * 3):
            api.add_turn(
                f"other-{number}",
                f"Look after the {thing} number {number}",
                f"The {thing} was checked: bolt {number} is new. It took 318 seconds.",
                edited=f"{PROJECT_DIR}/{thing}s/index.py",
            )
        yield api


def hint(api: Api, text: str, **known: Any) -> Hint | None:
    return find_hint(api.worker.store, replace(Prompt(text), **known), api.worker.semantic_index)


def test_a_plan_is_given_the_turn_that_edited_its_file(harbor: Api) -> None:
    result = hint(harbor, PLAN)
    assert result is not None
    line = result.lines[0]
    assert "4 bar" in line.text and line.words == ("sound_horn.py",)
    assert "In `sound_horn.py` the pressure" in line.text


def test_what_a_long_plan_says_in_other_forms_is_not_given_to_it(harbor: Api) -> None:
    steps = "\n".join(
        f"- step {n}: check {thing}{n} at post{n}" for n, thing in enumerate(THINGS * 6)
    )
    repeats = (
        "\nShips found horns too quiet: pressures in `sound_horn.py` go to 4 bars, valves open two"
        " seconds; relays of issue 318 get replaced by others standing salts."
    )
    assert hint(harbor, PLAN + steps) is not None
    assert hint(harbor, PLAN + repeats + steps) is None


def test_the_number_of_an_issue_is_no_other_number(harbor: Api) -> None:
    result = hint(harbor, "Look again at https://git.test/harbor/port/issues/318 and fix the rest")
    assert result is not None
    assert len(result.lines) == 1 and "relay" in result.lines[0].text


def test_a_prompt_about_this_branch_is_given_what_its_session_said(harbor: Api) -> None:
    project = harbor.worker.store.find_project("harbor")
    again = "Inspect the paint of this branch again"
    result = hint(harbor, again, branch="repaint", project_id=project)
    assert result is not None and len(result.lines) == 1
    assert "bubbles" in result.lines[0].text
    for branch in ("", "main", "other"):
        assert hint(harbor, again, branch=branch, project_id=project) is None
    assert hint(harbor, "Inspect the paint again", branch="repaint", project_id=project) is None


def test_a_memory_that_the_context_shows_is_not_given_again(harbor: Api) -> None:
    result = hint(harbor, PLAN)
    assert result is not None
    shown = f"- Loud horn {result.lines[0].text.split()[0]}: it is loud"
    assert hint(harbor, PLAN, context=shown) is None


@pytest.mark.parametrize(
    "prompt",
    [
        PLAN.replace("sound_horn.py", "night_horn.py"),  # no turn knows it
        "Sort the imports of sound_horn.py, then write a summary of the tests of the quay",
        "Which pressure does sound_horn.py set, and who wanted it?",  # a question, not work
        "Rename the first function of index.py and commit it",  # in every folder
        f"/plan {PLAN}",
    ],
)
def test_other_prompts_are_given_nothing_by_their_names(harbor: Api, prompt: str) -> None:
    assert hint(harbor, prompt) is None


def test_only_the_first_prompt_is_looked_up_by_its_names(harbor: Api) -> None:
    assert hint(harbor, PLAN, is_first=False) is None


def test_what_the_context_says_of_it_is_not_given_again(harbor: Api) -> None:
    context = (
        "- In `sound_horn.py` the pressure is now 4 bar, and the valve opens for two seconds. The"
        " relay of issue #318 was replaced by one that stands the salt."
    )
    assert hint(harbor, PLAN, context=context) is None
    assert hint(harbor, PLAN, context="- 2025-11-15 Make the horn louder") is not None


@pytest.mark.parametrize(
    ("prompt", "names"),
    [
        ("Fix src/quay/sound_horn.py:12 and `nightSchedule`", ["sound_horn.py", "nightSchedule"]),
        ("Change src/cli/index.ts", ["cli/index.ts"]),
        ("See https://git.test/a/b/pull/77, PR 78 and #79", ["78", "77", "79"]),
        ("Merge fix/quiet-horn e.g. today with TypeScript and README.md", ["fix/quiet-horn"]),
        ("Ask harbor.com about SoundHorn in SoundHorn.ts", ["SoundHorn.ts"]),
        ("```\nsecret_name()\n```\n/usr is full", []),
        ("<task-notification>sound_horn.py</task-notification>", []),
    ],
)
def test_what_a_prompt_names(prompt: str, names: list[str]) -> None:
    assert [name.text for name in names_in(prompt)] == names


def test_a_prompt_names_first_what_it_is_about() -> None:
    text = " ".join(f"lamp_number_{number}" for number in range(MAX_NAMES + 5))
    assert [name.text for name in names_in(text)] == text.split()[:MAX_NAMES]


@pytest.mark.parametrize(
    ("prompt", "is_work"),
    [
        ("Why is the horn silent?", False),
        ("At what pressure does horn.py whistle?", False),
        ("can you take a look at horn.py?", True),
        ("Paint the horn", True),
    ],
)
def test_a_question_asks_for_no_work_unless_it_is_a_request(prompt: str, is_work: bool) -> None:
    assert is_task(prompt) is is_work


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("was never oiled. The horn rusts. It needs oil.", "The horn rusts. It needs oil."),
        ("The pier is old. The horn rusts.", "The horn rusts."),
        ("## Horn\nThe horn rusts.\nconst horn = open();\nOil it.", "The horn rusts. Oil it."),
        ("`make horn` failed (no oil). The horn rusts.", "The horn rusts."),
        ("The pier is old.", ""),
    ],
)
def test_work_is_told_from_the_first_sentence_about_it(text: str, shown: str) -> None:
    assert work_in(text, lambda sentence: "horn" in sentence) == shown


def test_only_whole_sentences_are_shown() -> None:
    text = "The horn is loud. It rests at night. Nobody minds."
    assert whole_sentences(text, 9) == "The horn is loud. It rests at night."
    assert whole_sentences("Two parts: 1. oil 2.", 20) == "Two parts: 1. oil"
