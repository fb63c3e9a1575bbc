"""In which state the last session left its work, and where in the project work was done."""

import pytest

from claude_mem.recall.context import build_context
from claude_mem.recall.handover.digests import place_of, with_paths
from claude_mem.types import CommandRun, Observation, ProposedFact, Summary
from tests.payloads import prompt, session_end, tool
from tests.story import DAY, Story
from tests.test_context import WORDS
from tests.test_handover import commit, last, section, tell

BLINK, DIM = "Make the lamp blink in fog", "Dim the lamp at dawn"
PUSH = ProposedFact("artifact", "push", "lamps")


def test_a_reverted_commit_is_told_as_that_with_the_reason_and_without_its_files(
    story: Story,
) -> None:
    tell(story, "a", Summary(request="Dim it", files_edited=("dim.py",)),
         facts=(commit("1a2b3c4", DIM),))  # fmt: skip
    tell(story, "a", Summary(request="Blink", files_edited=("blink.py",)),
         facts=(commit("2b3c4d5", BLINK),))  # fmt: skip
    why = Observation("discovery", title="Captains wait", narrative="Ferries took it for a wreck.")
    tell(story, "a", Summary(request="The ferries stopped"), why,
         facts=(commit("3c4d5e6", f'Revert "{BLINK}"'),))  # fmt: skip
    assert section(story, "Last session") == [
        f"- {DIM} (1a2b3c4)",
        f'- Revert "{BLINK}" (3c4d5e6) #1: Ferries took it for a wreck.',
        "Files edited: dim.py",
    ]


@pytest.mark.parametrize(
    ("turns", "line"),
    [
        (((commit("1a2b3c4", BLINK), PUSH),), ["Pushed"]),
        (((commit("1a2b3c4", BLINK), PUSH), (commit("2b3c4d5", DIM),)),
         ["Pushed, except for the last commit"]),
        (((commit("1a2b3c4", BLINK),),), []),
    ],
)  # fmt: skip
def test_whether_commits_were_pushed_is_told_of_a_session_that_pushed(
    story: Story, turns: tuple[tuple[ProposedFact, ...], ...], line: list[str]
) -> None:
    for facts in turns:
        tell(story, "a", Summary(request="Go on"), facts=facts)
    assert [text for text in section(story, "Last session") if "ushed" in text] == line


def test_commits_that_were_not_pushed_are_told_where_sessions_push(story: Story) -> None:
    tell(story, "a", Summary(request="Blink"), facts=(commit("1a2b3c4", BLINK), PUSH))
    tell(story, "b", Summary(request="Dim it"), facts=(commit("2b3c4d5", DIM),))
    assert section(story, "Last session") == [f"- {DIM} (2b3c4d5)", "Not pushed in that session"]
    tell(story, "c", Summary(request="Oil the hinge", files_edited=("hinge.py",)))
    assert not any("ushed" in line for line in section(story, "Last session"))


def test_files_edited_after_the_last_commit_are_named_as_in_the_project(story: Story) -> None:
    facts = (commit("1a2b3c4", BLINK),)
    tell(story, "a", Summary(request="Blink", files_edited=("pier\\lamp.py",)), facts=facts)
    tell(story, "a", Summary(request="Oil it", files_edited=("pier\\hinge.py",)))
    assert "Edited after its last commit: pier/hinge.py" in section(story, "Last session")


def test_a_goal_that_is_a_heading_is_explained_by_its_turn(story: Story) -> None:
    review = Observation(
        "discovery",
        title="Inspection report of the north mast",
        narrative="A second lamp hangs below the first.",
    )
    tell(story, "a", Summary(request=review.title), review)
    (goal, *_) = section(story, "Last session")
    assert goal == "Goal: Inspection report of the north mast. A second lamp hangs below the first."


def test_without_a_result_the_last_edit_tells_the_outcome(story: Story) -> None:
    tell(story, "a", Summary(request="Lamp burns twice as much oil", files_edited=("oil.py",)))
    found = Observation(
        "change", title="lamp.py: the valve is bigger", narrative="The valve leaks no more oil."
    )
    tell(story, "a", Summary(request="Yes", files_edited=("pier/lamp.py",)), found)
    assert "- The valve leaks no more oil. #1" in section(story, "Last session")


@pytest.mark.parametrize("facts", [(), ("lamp.py: `one` became `two`",)])
def test_a_clear_title_tells_more_than_what_was_replaced_in_its_file(
    story: Story, facts: tuple[str, ...]
) -> None:
    title = "lamp.py: the relay gets 48 volts because the fuse is old"
    change = Observation("change", title=title, facts=facts, files_modified=("lamp.py",))
    tell(story, "a", Summary(request="Repair it", files_edited=("lamp.py",)), change)
    assert f"- {title} #1" in section(story, "Last session")


def test_work_is_told_by_its_purpose_rather_than_by_the_problem(story: Story) -> None:
    work = Observation(
        "change",
        title="Numbered crates for the lamp oil",
        narrative="Currently the oil crates fail to fit. The goal: number each crate so that any"
        " keeper finds the next one.",
    )
    tell(story, "a", Summary(request="Paint", files_edited=("crates.py",)), work)
    assert section(story, "Last session")[0].endswith(
        "#1: The goal: number each crate so that any keeper finds the next one."
    )


def test_a_session_is_told_with_its_main_files(story: Story) -> None:
    files = ("tests/test_lamp.py", "CHANGELOG.md", "pier\\lamp.py", "pier\\fuse.py")
    tell(story, "a", Summary(request="Replace the fuse of every lamp", files_edited=files))
    last(story)
    assert section(story, "Earlier sessions") == [
        "- 2025-10-09 Replace the fuse of every lamp — pier/lamp.py, pier/fuse.py"
    ]


def test_files_that_the_title_names_come_first_one_of_each_folder() -> None:
    files = ["pier/fuse.py", "pier/lampPost.py", "docs/lamps.md", "pier/lamp.py", "boat/oar.py"]
    named = place_of(files, "Light the lamps of each post")
    assert named == "pier/lampPost.py, docs/lamps.md, pier/lamp.py and 2 more"
    assert place_of(files, "Row") == "pier/fuse.py, docs/lamps.md, boat/oar.py and 2 more"
    assert place_of(["CHANGELOG.md"], "Ring") == "CHANGELOG.md"  # there is no other
    tree = ".agent/worktrees/a1b2/pier/lamp.py"
    assert place_of([tree, "pier/tmp_try.py"], "Ring") == "pier/lamp.py"


def test_of_many_commits_a_title_is_told_with_its_own_files_only(story: Story) -> None:
    for number, subject in enumerate(("Dry the sails", "Count every net", "Tar the hull")):
        facts = (commit(f"{number}a2b3c4", subject),)
        tell(story, "a", Summary(request="Go on", files_edited=(f"x{number}.py",)), facts=facts)
    tell(story, "a", Summary(request="Also", files_edited=("crane.py", "netList.py")))
    last(story)
    (line,) = section(story, "Earlier sessions")
    assert line.endswith("Dry the sails; Count every net — x1.py, x0.py")


def test_a_file_is_named_with_its_path_where_only_one_has_its_name() -> None:
    files = ["pier/lamp.py", "boat/oar.py", "canoe/oar.py"]
    text = "Moved the fuse to `lamp.py:12`; lamp.py blinks; oar.py is new."
    assert with_paths(text, files) == (
        "Moved the fuse to `pier/lamp.py:12`; lamp.py blinks; oar.py is new."
    )


def test_of_sessions_about_one_thing_the_title_is_followed_by_what_changed(story: Story) -> None:
    work = Observation(
        "change", title="Harbour night watch rota", narrative="Added a `watch` column to the rota."
    )
    tell(story, "a", Summary(request=work.title, files_edited=("rota.py",)), work)
    last(story)
    assert section(story, "Earlier sessions") == [
        "- 2025-10-09 Harbour night watch rota: Added a `watch` column to the rota — rota.py"
    ]


def test_a_draft_of_a_session_that_changed_nothing_gives_no_line(story: Story) -> None:
    report = Observation("discovery", title="Harbour leak report")
    tell(story, "a", Summary(request="Read this"), report)
    last(story)
    assert section(story, "Earlier sessions") == []


# Rules


def rule(text: str) -> ProposedFact:
    return ProposedFact("rule", "", text, origin="person")


def test_rules_of_one_message_are_one_line_with_what_was_worked_on(story: Story) -> None:
    rules = (rule("Never paint at night."), rule("Always stir the paint first"))
    tell(story, "a", Summary(request="Paint", files_edited=("pier\\door.py",)), facts=rules)
    assert section(story, "What holds here") == [
        "- The user, 2025-10-09, while editing pier/door.py: "
        '"Never paint at night. Always stir the paint first."'
    ]


def test_rules_of_a_session_are_told_in_their_order_and_texts_for_elsewhere_as_that(
    story: Story,
) -> None:
    tell(story, "a", Summary(request="Paint"), facts=(rule("Never wrap the signs in rope."),))
    story.now += DAY
    letter = Summary(request="Write", files_edited=("/home/dev/letters/letter.md",))
    tell(story, "a", letter, facts=(rule("Always sign with both names."),))
    assert section(story, "What holds here") == [
        '- The user, 2025-10-09: "Never wrap the signs in rope."',
        "- The user, 2025-10-10, of a text for elsewhere (letter.md), not of files of "
        'this project: "Always sign with both names."',
    ]


# Which sessions


def test_older_sessions_about_what_the_branch_is_named_after_are_told(story: Story) -> None:
    tell(story, "old", Summary(request="Number the oil barrels", files_edited=("barrel_list.py",)))
    for number, word in enumerate(WORDS[:14]):
        story.now += DAY
        work = f"Replace {word} {word}s {word}ing"
        tell(story, word, Summary(request=work, files_edited=(f"{number}.py",)))
    project = story.store.find_project("harbor")
    for branch, is_told in (("kim/empty-barrels", True), ("kim/masts", False), ("", False)):
        text = build_context(story.store, project, 1000, branch=branch)
        assert ("Number the oil barrels" in text) is is_told
        assert f"Replace {WORDS[11]} " in text  # the latest are told in any case


def test_the_last_commit_is_told_where_no_result_tells_it(story: Story) -> None:
    made = (commit("1a2b3c4", "Number the oil barrels"), commit("2b3c4d5", "Count the barrels"))
    tell(story, "a", Summary(request="Go on"), facts=made)
    tell(story, "a", Summary(request="And?"), facts=(commit("3c4d5e6", "Fix lint findings"),))
    assert section(story, "Last session")[-1] == "Last commit 3c4d5e6 Fix lint findings"
    tell(story, "a", Summary(request="So"), facts=(commit("4d5e6f7", "fixup! Count the barrels"),))
    assert not any("ast commit" in line for line in section(story, "Last session"))


def test_what_was_found_is_told_before_what_was_changed_about_it(story: Story) -> None:
    found = Observation(
        "bugfix",
        title="The `oil` flag is unknown to the new pump",
        narrative="Replaced the `oil` flag by `fuel` in the rota of the pump.",
    )
    tell(story, "a", Summary(request="Hm", files_edited=("rota.py",)), found)
    assert section(story, "Last session")[0] == (
        "- The `oil` flag is unknown to the new pump. Replaced the `oil` flag by `fuel` in the"
        " rota of the pump. #1"
    )


@pytest.mark.parametrize(
    "title",
    ["The pump sends a signal", "Added the neighbour's pump to the list", "gull[bot] Oil the pump"],
)
def test_a_statement_or_half_a_sentence_is_no_title_of_a_session(story: Story, title: str) -> None:
    tell(story, "a", Summary(request=title, files_edited=("pump.py",)))
    last(story)
    assert section(story, "Earlier sessions") == []


def test_a_linter_of_single_files_is_one_command(story: Story) -> None:
    for number in range(4):
        run = CommandRun(f"npx textlint docs/{number}.md docs/x.md", "check", "passed")
        tell(story, f"{number}", Summary(request=f"Write page {number}", commands=(run,)))
    assert section(story, "Commands") == ["- Checks: `npx textlint FILES`"]


def test_a_check_that_was_also_run_in_a_folder_is_told_once(story: Story) -> None:
    runs = [
        CommandRun("make lint", "check", "passed", scope=scope) for scope in ("", "", "", "pier")
    ]
    runs += [CommandRun("make vet", "check", "passed", scope="pier")] * 2
    for number, run in enumerate([*runs, runs[3]]):
        tell(story, f"{number}", Summary(request=f"Oil pump {number}", commands=(run,)))
    assert section(story, "Commands") == ["- Checks: `make lint`, `make vet` in pier"]


def test_of_a_session_that_was_interrupted_its_goal_is_told(story: Story) -> None:
    story.tell(prompt("Row across the bay"), tool(), session_end())
    story.distil()
    text = build_context(story.store, story.store.find_project("harbor"), 1000)
    assert "Goal: Row across the bay" in text


def test_work_of_an_earlier_session_that_was_not_committed_is_told_as_that(story: Story) -> None:
    """Where sessions usually commit."""
    for file, title, facts in (
        ("wall.py", "Paint the harbour wall with tar", ()),
        ("mole.py", "Lengthen the mole by a metre", (commit("3c4d5e6", "Lengthen the mole"),)),
        ("ropes.py", DIM, (commit("1a2b3c4", DIM),)),
        ("crane.py", BLINK, (commit("2b3c4d5", BLINK),)),
    ):
        summary = Summary(request=title, files_edited=(file,))
        tell(story, file, summary, Observation("feature", title=title), facts=facts)
        story.now += DAY
    assert [line.partition(" — ")[2] for line in section(story, "Earlier sessions")] == [
        "ropes.py",
        "mole.py",
        "wall.py; not committed in that session",
    ]
