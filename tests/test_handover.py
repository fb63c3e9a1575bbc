"""The sections of a context: the last state, what holds, what is open, and what came before."""

from pathlib import Path

import pytest

from claude_mem.intake.working_directory import read_rule_files
from claude_mem.observer.models.model import Reply
from claude_mem.observer.models.revision import revise_draft
from claude_mem.recall.context import build_context
from claude_mem.recall.handover.statements import says_what_was_done
from claude_mem.redaction import Redactor
from claude_mem.types import (
    CommandRun,
    Distillate,
    EnvironmentFault,
    Observation,
    OpenStep,
    Project,
    ProposedFact,
    Summary,
)
from tests.payloads import SESSION, prompt, stop
from tests.story import DAY, Story
from tests.test_context import WORDS


def tell(
    story: Story,
    session_id: str,
    summary: Summary,
    *observations: Observation,
    facts: tuple[ProposedFact, ...] = (),
    observer: str = "local",
) -> None:
    """One turn with its memories; the title of the session is its first request."""
    ids = {"session_id": session_id, "prompt_id": f"p{story.now}"}
    story.tell(prompt(**ids), stop(**ids))
    job, turn = story.claim()
    distillate = Distillate(
        summary, observations, summary.request, summary.completed, observer=observer, facts=facts
    )
    assert story.store.finish_job(job, turn, distillate, is_draft=True).result()


def context(story: Story, rule_files: str = "") -> str:
    project_id = story.store.find_project("harbor")
    return build_context(story.store, project_id, 1000, rule_files=rule_files)


def section(story: Story, heading: str, rule_files: str = "") -> list[str]:
    """The lines under a heading; none where there is no such heading."""
    text = context(story, rule_files)
    lines = text.partition(f"\n## {heading}")[2].split("\n## ")[0].splitlines()[1:]
    return [line for line in lines if line and line != "</claude-mem-context>"]


def last(story: Story) -> None:
    """A session that has nothing to do with those before."""
    story.now += DAY
    tell(
        story,
        "last",
        Summary(request="Paint the door", completed="Painted it green", files_edited=("door",)),
    )


def commit(value: str, subject: str) -> ProposedFact:
    return ProposedFact("artifact", "commit", value, note=subject)


# The last session


def test_the_last_session_is_one_state(story: Story) -> None:
    summary = Summary(
        request="Make the lamp of the pier blink",
        completed="The lamp blinks twice",
        files_edited=("src/lamp.py", "src/relay.py", "/tmp/try.py"),
        commands=(CommandRun("make test", "test", "failed", "2 passed, 1 failed"),),
        open_steps=(OpenStep("The fuse box must be replaced."), OpenStep("Shall I paint it?")),
    )
    narrative = "Current never reached the coil. Swapped both wires of the relay in `lamp.py`."
    observation = Observation("bugfix", title="Turn the relay around", narrative=narrative)
    url = "https://example.com/harbor/pull/7"
    request = ProposedFact("artifact", "pull request", url, note="Blink twice")
    branch = ProposedFact("artifact", "branch", "blink")
    made = (commit("1a2b3c4d5e", "Turn the relay of the lamp around"), branch, request)
    tell(story, SESSION, summary, observation, facts=made)
    assert section(story, "Last session") == [
        "Goal: Make the lamp of the pier blink",
        "- Turn the relay of the lamp around (1a2b3c4d) #1: Swapped both wires of the relay in "
        "`src/lamp.py`.",
        f"Pull request {url} (Blink twice; seen 2025-10-09, state unknown)",
        "Files edited: src/lamp.py, src/relay.py",
        "Tests failed at the end: `make test` (2 passed, 1 failed)",
        "Next: The fuse box must be replaced.",
    ]


def test_results_of_a_long_session_are_its_latest_in_order(story: Story) -> None:
    words = WORDS[:12]
    for word in words:
        body = f"The {word} was rusty. " + f"Nobody had oiled the {word} for years. " * 4
        title = f"Scrape the rust off the {word}"
        tell(story, SESSION, Summary(), Observation("change", title=title, narrative=body))
    lines = [line for line in section(story, "Last session") if line.startswith("- Scrape")]
    shown = [line.split("#")[0].split()[-1] for line in lines]
    assert shown == words[-len(shown) :]
    assert 2 < len(shown) < len(words)


def test_turns_that_cannot_be_understood_alone_are_left_out(story: Story) -> None:
    for title in ("Yes, do it", "/clear", "All 12 tests pass", "This is the cause", "Go on"):
        tell(story, SESSION, Summary(request=title), Observation("change", title=title))
    tell(story, SESSION, Summary(), Observation("change", title="Lamp blinks twice at night"))
    assert section(story, "Last session") == ["- Lamp blinks twice at night #6"]


def test_the_last_session_is_the_last_that_came_to_something(story: Story) -> None:
    tell(story, "a", Summary(), Observation("change", title="Lamp blinks twice at night"))
    story.now += DAY
    tell(story, "b", Summary(request="What did we do in the tower?", completed="OK"))
    assert section(story, "Last session") == ["- Lamp blinks twice at night #1"]


def test_only_the_last_turn_says_what_comes_next(story: Story) -> None:
    tell(story, SESSION, Summary(open_steps=(OpenStep("The mast must be painted."),)))
    tell(story, SESSION, Summary(open_steps=(OpenStep("The fuse must be replaced."),)))
    assert section(story, "Last session") == ["Next: The fuse must be replaced."]


def test_a_model_may_see_a_step_that_the_events_do_not_show(story: Story) -> None:
    tell(story, SESSION, Summary(next_steps="The fuse must be replaced."), observer="claude")
    assert section(story, "Last session") == ["Next: The fuse must be replaced."]
    tell(story, SESSION, Summary(next_steps="Shall I oil it?"), observer="claude")
    assert section(story, "Last session") == []


# What is open


def open_step(request: str, *texts: str) -> Summary:
    return Summary(request=request, open_steps=tuple(OpenStep(text) for text in texts))


def test_steps_are_open_until_something_later_is_about_them(story: Story) -> None:
    tell(story, "a", open_step("Light it", "The fuse box must be replaced."))
    tell(story, "b", open_step("Oil it", "The harbour plan needs a date."))
    last(story)
    assert section(story, "Left open") == [
        "- 2025-10-09 The harbour plan needs a date.",
        "- 2025-10-09 The fuse box must be replaced.",
    ]
    tell(story, "c", Summary(request="So", completed="The fuse box was replaced, as it must"))
    last(story)
    assert section(story, "Left open") == ["- 2025-10-09 The harbour plan needs a date."]


def test_a_step_that_the_session_went_on_from_is_not_open(story: Story) -> None:
    tell(story, "a", open_step("Light it", "The fuse box must be replaced."))
    tell(story, "a", Summary(request="do it", completed="Finished"))
    last(story)
    assert section(story, "Left open") == []


def test_a_finding_is_no_open_step_unless_it_says_what_is_left_of_it(story: Story) -> None:
    found = "The fuse box was too small and caused the fire."
    left = "The fuse box was too small and is not replaced yet."
    tell(story, "a", open_step("Light it", found, left))
    last(story)
    assert section(story, "Left open") == [f"- 2025-10-09 {left}"]


def test_an_offer_lapses_with_its_session_and_a_step_after_some(story: Story) -> None:
    tell(story, "a", open_step("Light it", "Call the pilot.", "Shall I push it?"))
    last(story)
    assert section(story, "Left open") == ["- 2025-10-09 Call the pilot."]
    for number in range(6):
        story.now += DAY
        tell(
            story,
            f"later {number}",
            Summary(request=f"Row to island {number}", files_edited=("log",)),
        )
    assert section(story, "Left open") == []


@pytest.mark.parametrize(
    ("step", "is_open"),
    [
        ("Replace crane cable, winch, pulley, brake, hooks, drum, motor, gears", False),  # 3 of 10
        ("Replace crane cable, winch, pulley, brake, hooks, drum, motor, gears, rails", True),
    ],
)
def test_a_step_is_taken_up_by_a_later_session_with_three_tenths_of_its_words(
    story: Story, step: str, is_open: bool
) -> None:
    tell(story, "a", open_step("Light it", step))
    story.now += DAY
    done = "The crane has a stronger cable on its winch."
    tell(story, "b", Summary(request="Repair the quay", completed=done, files_edited=("quay",)))
    last(story)
    assert bool(section(story, "Left open")) is is_open


# What holds


def test_a_rule_of_the_user_is_quoted_with_its_day(story: Story) -> None:
    rule = ProposedFact("rule", "", "Never push to main.", origin="person")
    tell(story, "a", Summary(request="Oil the hinge"), facts=(rule,))
    last(story)
    assert section(story, "What holds here") == ['- The user, 2025-10-09: "Never push to main."']


def test_what_was_saved_explicitly_is_shown(story: Story) -> None:
    project = Project("/home/dev/harbor", "harbor")
    note = Observation("discovery", title="Bell is cracked")
    story.store.save_memory(project, "/home/dev/harbor", note, "person").result()
    assert section(story, "What holds here") == ["- Bell is cracked #1"]


def test_what_the_instructions_of_the_project_say_is_not_repeated(story: Story) -> None:
    rule = ProposedFact("rule", "", "Never push to the main branch.", origin="person")
    tell(story, "a", Summary(request="Oil the hinge"), facts=(rule,))
    assert section(story, "What holds here") != []
    rules = "# Rules\n\n- Never push to the main branch, use pull requests.\n"
    assert section(story, "What holds here", rules) == []


def test_an_answer_of_the_user_is_a_decision_unless_it_is_about_the_next_step(story: Story) -> None:
    question = "Should lamps burn oil or gas?"
    facts = (
        ProposedFact("decision", question, "Oil (Recommended)", origin="person"),
        ProposedFact("decision", "Ready to push?", "Push it now", origin="person"),
        ProposedFact("decision", "Is the plan good?", "Yes", origin="person"),
    )
    tell(story, "a", Summary(request="Oil the hinge"), facts=facts)
    assert section(story, "What holds here") == [f"- Decided 2025-10-09: {question} Oil"]


def test_decisions_and_traps_are_shown_and_plain_discoveries_not(story: Story) -> None:
    decision = Observation("decision", title="Keep fuses at nine amperes")
    gotcha = Observation("discovery", title="Gulls steal ropes", concepts=("gotcha",))
    plain = Observation("discovery", title="Ships have names")
    summary = Summary(request="Oil the hinge")
    tell(story, "a", summary, decision, gotcha, plain, observer="claude")
    last(story)
    assert sorted(section(story, "What holds here")) == [
        "- Gulls steal ropes #2",
        "- Keep fuses at nine amperes #1",
    ]


def test_what_a_trap_was_about_does_not_make_it_one(story: Story) -> None:
    title = "Gulls steal ropes"
    about = Observation("decision", title="Ropes are of hemp [asked: must ropes never fail?]")
    gotcha = Observation("discovery", title=f"{title} [asked: why?]", concepts=("gotcha",))
    tell(story, "a", Summary(request="Oil the hinge"), about, gotcha, observer="claude")
    last(story)
    assert section(story, "What holds here") == [f"- {title} [asked: why?] #2"]


FAULT = EnvironmentFault("wrap make", "error: no such command", "make")


def test_a_trap_of_a_draft_is_not_told_as_what_holds(story: Story) -> None:
    found = Observation("discovery", title="`moor()` never waits", concepts=("gotcha",))
    tell(story, "a", Summary(request="Oil the hinge"), found)
    last(story)
    assert section(story, "What holds here") == []


def passing(command: str) -> CommandRun:
    return CommandRun(command, "test", "passed", "2 passed")


def test_a_command_that_does_not_work_here_is_told_with_the_one_that_does(story: Story) -> None:
    tell(story, "a", Summary(request="x", faults=(FAULT,)))
    last(story)
    assert section(story, "What holds here") == []  # once may be chance
    tell(story, "b", Summary(request="y", faults=(FAULT,)))
    assert section(story, "What holds here") == [
        "- `wrap make` fails here (error: no such command); `make` works"
    ]


def test_a_command_that_worked_later_is_not_shown_as_failing(story: Story) -> None:
    for name in ("a", "b"):
        tell(story, name, Summary(request="x", faults=(FAULT,)))
    story.now += DAY
    passed = CommandRun("wrap make", "check", "passed")
    tell(story, "c", Summary(request="y", commands=(passed,)))
    assert section(story, "What holds here") == []


@pytest.mark.parametrize(
    "partial",
    ["pytest tests/test_lamp.py", "go test ./... -run TestLamp", "git stash && make test",
     "make test | tail -5", "npm test -- --grep lamp"],
)  # fmt: skip
def test_the_usual_commands_are_those_of_the_whole_project(story: Story, partial: str) -> None:
    for number in range(5):
        runs = [passing(partial), CommandRun("make lint", "check", "passed")]
        runs += [passing("make test")] * (number > 2)
        tell(story, f"{number}", Summary(request="x", commands=tuple(runs)))
    assert section(story, "Commands") == ["- Tests: `make test`", "- Checks: `make lint`"]


def test_commands_stay_when_a_model_rewrites_the_notes(story: Story) -> None:
    for number in range(2):
        tell(story, f"s{number}", Summary(notes="Tests pass.", commands=(passing("make test"),)))
        job, turn = story.store.claim_refinement().result() or (None, None)
        assert job is not None and turn is not None
        answer = "<summary><request>Light it</request><notes>All is well.</notes></summary>"
        draft = turn.draft or Distillate(Summary())
        revision = revise_draft(turn, draft, Reply(answer, "some-model"), "claude", Redactor())
        assert story.store.finish_refinement(job, turn, revision.distillate, "").result()
    assert section(story, "Commands") == ["- Tests: `make test`"]


# What came before


def test_a_session_before_is_told_by_its_commits(story: Story) -> None:
    made = (commit("1a2b3c4", "Light the lamp with oil"), commit("2b3c4d5", "Paint the mast"),
            commit("3c4d5e6", "fixup! Paint the mast"))  # fmt: skip
    branch = ProposedFact("artifact", "branch", "oil")
    tell(story, "a", Summary(request="Do what we said"), facts=(*made, branch))
    last(story)
    assert section(story, "Earlier sessions") == [
        "- 2025-10-09 Light the lamp with oil; Paint the mast — branch oil"
    ]


PLAN = ("plan.md",)


def test_of_a_conversation_that_changed_nothing_only_what_it_learned_is_told(story: Story) -> None:
    tell(story, "a", Summary(request="Explain the oil lamp of the pier"))
    last(story)
    assert section(story, "Earlier sessions") == []
    lesson = Observation("discovery", title="Oil lamps need a draught")
    request = Summary(request="Explain the oil lamp of the tower")
    tell(story, "b", request, lesson, observer="claude")
    last(story)
    (line,) = section(story, "Earlier sessions")
    assert line.endswith("Oil lamps need a draught")


def test_sessions_in_a_row_about_the_same_are_one_line(story: Story) -> None:
    tell(story, "a", Summary(request="Plan the oil lamp of the pier", files_edited=PLAN))
    story.now += DAY
    tell(story, "b", Summary(request="Plan the oil lamp of the pier again", files_edited=PLAN))
    last(story)
    (line,) = section(story, "Earlier sessions")
    assert line.startswith("- 2025-10-09 to 2025-10-10 Plan the oil lamp of the pier again")


# The instructions of a project


def test_instructions_are_read_from_the_project_and_the_home(tmp_path: Path) -> None:
    project, home = tmp_path / "project", tmp_path / "home"
    (home / ".claude").mkdir(parents=True)
    project.mkdir()
    assert read_rule_files(str(project), str(home)) == ""
    (project / "CLAUDE.md").write_text("one")
    (project / "AGENTS.md").write_text("two")
    (home / ".claude" / "CLAUDE.md").write_text("three")
    assert read_rule_files(str(project), str(home)).split() == ["one", "two", "three"]
    assert read_rule_files("", "") == ""
    assert read_rule_files(str(project / "\0"), "") == ""


# What came of a session


@pytest.mark.parametrize(
    "title",
    [
        "fix(lamp): stop blinking at noon",
        "Add a second lamp to the pier",
        "Removed the old bell",
        "Harbour Light Layout Cleanup",
        "Fog signal: louder horn and longer pauses",
    ],
)
def test_actions_and_headings_say_what_was_done(title: str) -> None:
    assert says_what_was_done(title)


@pytest.mark.parametrize(
    "title",
    [
        "The lamp of the pier was being painted",
        "6 ropes with knots",
        "Can the bell be heard at sea",
        "Confirmed: the horn is loud",
        "Changed pier/lamp.py",
        "No difference between the two ropes",
        "lamp, bell and horn of the pier",
    ],
)
def test_remarks_files_and_counts_do_not(title: str) -> None:
    assert not says_what_was_done(title)


def test_of_a_session_its_work_is_told_and_not_a_remark(story: Story) -> None:
    remark = Observation("discovery", title="The horn was being heard at sea")
    work = Observation("change", title="Replace the horn by a bell")
    summary = Summary(request="Look at the horn", files_edited=("horn.py",))
    tell(story, "a", summary, work, remark)
    tell(
        story, "b", Summary(request="Hm"), Observation("discovery", title="The sea was rough today")
    )
    last(story)
    lines = section(story, "Earlier sessions")
    assert [line.partition(" ")[2].partition(" ")[2] for line in lines] == [
        "Replace the horn by a bell — horn.py"
    ]


def test_details_do_not_say_the_title_again_nor_show_lines_of_code(story: Story) -> None:
    observation = Observation(
        "change",
        title="The lamp blinks twice in fog",
        narrative="The lamp blinks twice in fog. No response requested."
        " struct Lamp {; int blinks; }. Sailors could not tell it from the other lamp.",
    )
    tell(story, "a", Summary(request="Paint"), observation)
    assert (
        "- The lamp blinks twice in fog #1: Sailors could not tell it from the other lamp."
        in section(story, "Last session")
    )


def test_of_a_draft_that_changed_something_only_its_changes_are_told(story: Story) -> None:
    observation = Observation(
        "change",
        title="Make the lamp blink twice in fog",
        narrative="Let me look at the lamp first. A second lamp stands on the other pier.",
        facts=(
            "`lamp.py`: Added a `blinks` option; Removed the old `flash()` helper; // int blinks",
            "All tests pass, and the branch was pushed",
            "Two changes: moved the timer into `clock.py`",
        ),
    )
    tell(story, "a", Summary(request="Paint", files_edited=("lamp.py",)), observation)
    assert section(story, "Last session")[0] == (
        "- Make the lamp blink twice in fog #1: `lamp.py`: Added a `blinks` option. Removed the old"
        " `flash()` helper. Moved the timer into `clock.py`."
    )


def test_what_a_draft_found_is_not_told_where_something_was_changed(story: Story) -> None:
    work = Observation("change", title="Replace the horn by a bell")
    remark = Observation("discovery", title="The sanitizer scrubs `Horn.Name`")
    tell(story, "a", Summary(request="Paint", files_edited=("horn.py",)), work)
    tell(story, "a", Summary(request="Why?"), remark)
    assert section(story, "Last session") == [
        "- Replace the horn by a bell #1",
        "Files edited: horn.py",
    ]


def test_a_commit_in_a_turn_of_its_own_is_told_with_the_work_before_it(story: Story) -> None:
    work = Observation(
        "change", title="Blinking lamp", narrative="Added a timer to the lamp of the pier."
    )
    tell(story, "a", Summary(request="Blinking lamp", files_edited=("a.py",)), work)
    tell(story, "a", Summary(request="commit"), facts=(commit("1a2b3c4", "Make the light blink"),))
    assert section(story, "Last session")[:1] == [
        "- Make the light blink (1a2b3c4) #1: Added a timer to the lamp of the pier.",
    ]


def test_a_commit_without_a_hash_is_told_by_its_subject(story: Story) -> None:
    made = commit("Make the light blink", "Make the light blink")
    tell(story, "a", Summary(request="commit"), facts=(made,))
    assert section(story, "Last session") == ["- Make the light blink"]


def test_of_many_commits_those_that_say_most_are_told(story: Story) -> None:
    made = (commit("1a2b3c4", "Consolidate the logs of the tower"),
            commit("2b3c4d5", "Fix lint findings"), commit("3c4d5e6", "docs: describe the logs"),
            commit("4d5e6f7", "Rotate the logs every night"))  # fmt: skip
    tell(story, "a", Summary(request="One log for the whole tower"), facts=made)
    last(story)
    assert section(story, "Earlier sessions") == [
        "- 2025-10-09 Consolidate the logs of the tower; Rotate the logs every night"
    ]


def test_a_bug_as_a_title_is_told_as_fixed(story: Story) -> None:
    title = "Lamp shows red light instead of green"
    tell(story, "a", Summary(request=title, files_edited=("lamp.py",)))
    assert section(story, "Last session")[0] == f"Goal: Fix: {title}"
    last(story)
    assert section(story, "Earlier sessions") == [f"- 2025-10-09 Fix: {title} — lamp.py"]


def test_sessions_on_one_branch_are_one_line_unless_most_sessions_are_on_it(story: Story) -> None:
    branch = ProposedFact("artifact", "branch", "oil")
    works = (
        "Fill the tank",
        "Trim the lamp wick",
        "Clean the lamp lenses",
        "Paint the mast",
        "Wind the clock",
    )
    for number, work in enumerate(works[:2]):
        summary = Summary(request=work, files_edited=(f"{number}.py",))
        tell(story, work, summary, facts=(branch,))
        story.now += DAY
    last(story)
    assert section(story, "Earlier sessions") == [
        f"- 2025-10-09 to 2025-10-10 {works[1]}; {works[0]} — 1.py, 0.py; branch oil"
    ]
    for number, work in enumerate(works[2:]):
        story.now += DAY
        tell(story, work, Summary(request=work, files_edited=(f"{number}.py",)), facts=(branch,))
    assert len(section(story, "Earlier sessions")) == 5


def test_a_problem_is_the_state_before_where_something_was_changed(story: Story) -> None:
    found = Observation(
        "change",
        title="Lamp of the pier: longer pauses",
        narrative="Currently, the lamp does not pause at all.",
    )
    tell(story, "a", Summary(request="Paint", files_edited=("lamp.py",)), found)
    lines = section(story, "Last session")
    problem = "The problem was: the lamp does not pause at all."
    assert f"- Lamp of the pier: longer pauses #1: {problem}" in lines


def test_details_about_something_else_are_left_out(story: Story) -> None:
    work = Observation("change", title="Replace the horn by a bell", narrative="Gulls were loud.")
    tell(story, "a", Summary(request="Paint", files_edited=("horn.py",)), work)
    assert "- Replace the horn by a bell #1" in section(story, "Last session")


def test_commits_tell_a_session_and_not_what_was_found_on_the_way(story: Story) -> None:
    commits = (commit("1a2b3c4", "Oil the lamp"), commit("2b3c4d5", "Wind the clock"))
    found = Observation("discovery", title="The lens lies under the stairs")
    later = Observation("discovery", title="Gulls sleep on the roof")
    tell(story, "a", Summary(request="Look after the tower"), found)
    tell(story, "a", Summary(request="And the lamp"), facts=commits[:1])
    tell(story, "a", Summary(request="And the clock"), facts=commits[1:])
    tell(story, "a", Summary(request="And the gulls"), later)
    lines = [line for line in section(story, "Last session") if line.startswith("- ")]
    assert lines == ["- Oil the lamp (1a2b3c4)", "- Wind the clock (2b3c4d5)"]


@pytest.mark.parametrize("command", ["go test ./pier/lamp/", "npm run lint:fix", "ruff format src"])
def test_a_command_for_a_part_or_that_rewrites_files_is_not_the_projects(
    story: Story, command: str
) -> None:
    for name in ("a", "b", "c"):
        run = CommandRun(command, "test" if "test" in command else "check", "passed", "")
        tell(story, name, Summary(request=f"Oil the hinge {name}", commands=(run,)))
        story.now += DAY
    assert section(story, "Commands") == []


def test_parts_of_a_repository_have_their_own_commands_and_the_project_is_built_and_started(
    story: Story,
) -> None:
    runs = (
        CommandRun("npm test", "test", "passed", scope="web"),
        CommandRun("pytest", "test", "passed", scope="api"),
        CommandRun("npm run build", "check", "passed", scope="web"),
        CommandRun("npm run dev", "run", "passed", scope="web"),
        CommandRun("npm publish", "release", "passed", scope="web"),
        CommandRun("golangci-lint run", "check", "passed"),
        CommandRun("golangci-lint run ./...", "check", "passed"),
        CommandRun("go test ./lamp/...", "test", "passed"),
    )
    for name in ("a", "b", "c"):
        tell(story, name, Summary(request=f"Oil the hinge {name}", commands=runs))
        story.now += DAY
    assert section(story, "Commands") == [
        "- Tests: `npm test` in web, `pytest` in api",
        "- Checks: `golangci-lint run`",
        "- Build: `npm run build` in web",
        "- Run: `npm run dev` in web",
    ]


def test_of_amended_commits_the_last_is_told_with_what_is_known_of_them(story: Story) -> None:
    work = Observation("change", title="Shade the lamp", narrative="Added a shade of green glass.")
    tell(story, "a", Summary(request="Shade the lamp of the pier", files_edited=("a.py",)), work,
         facts=(commit("1a2b3c4", "feat(lamp): shade the green lamp"),))  # fmt: skip
    later = commit("2b3c4d5", "feat(lamp): shade the green lamp of the whole pier")
    tell(story, "a", Summary(request="Squash it"), facts=(later,))
    lines = [line for line in section(story, "Last session") if line.startswith("- ")]
    assert lines == [f"- {later.note} (2b3c4d5) #1: Added a shade of green glass."]


def test_a_decision_that_was_committed_is_told_by_its_commit(story: Story) -> None:
    question = "Which glass should shade the green lamp of the pier?"
    decision = ProposedFact("decision", question, "Blue glass", origin="person")
    tell(story, "a", Summary(request="Look at the glass"), facts=(decision,))
    assert section(story, "What holds here") == [f"- Decided 2025-10-09: {question} Blue glass"]
    made = commit("1a2b3c4", "Use red glass to shade the lamp")
    tell(story, "a", Summary(request="No, red"), facts=(made,))
    assert section(story, "What holds here") == []


@pytest.mark.parametrize(
    "title",
    ["Remote: Permission to harbor.git denied to bot", "Changed lamp.py and lamp_test.py"],
)
def test_a_pasted_error_and_a_list_of_files_do_not_say_what_was_done(title: str) -> None:
    assert not says_what_was_done(title)
