"""Obstacles that several sessions ran into: what the agent blamed, and what helped."""

from claude_mem.observer.local.proposed_facts import find_obstacles, propose_facts
from claude_mem.types import Json, Project, ProposedFact, Summary, Turn, TurnEvent
from tests.story import DAY, Story
from tests.test_handover import section, tell

BLAME = "The harbour check fails because it picks up the wrecks in `tmp/wrecks/`."


def turn(*events: TurnEvent) -> Turn:
    project = Project("/home/dev/harbor", "harbor")
    return Turn(1, 1, "s", "m", project, "/home/dev/harbor", "", "p", 1, "Go on", 0, events)


def says(text: str) -> TurnEvent:
    return TurnEvent(7, "Statement", None, None, None, text, None)


def uses(tool: str, **params: Json) -> TurnEvent:
    return TurnEvent(8, "PostToolUse", tool, params, {"stdout": ""}, None, None)


def names(*events: TurnEvent) -> list[str]:
    return [fact.value for fact in find_obstacles(turn(*events))]


def test_what_is_blamed_for_a_failure_is_an_obstacle() -> None:
    (fact,) = find_obstacles(turn(says(f"Hm. {BLAME} Let me look.")))
    assert (fact.kind, fact.subject, fact.value, fact.status) == (
        "fault", "", "tmp/wrecks", "candidate",
    )  # fmt: skip
    assert fact.note == BLAME and fact.sources == (7,)


def test_also_the_folder_of_what_is_blamed() -> None:
    text = "All failures are from `tmp/wrecks/boat-x7/`, an unrelated left-over."
    assert names(says(text)) == ["tmp/wrecks/boat-x7", "tmp/wrecks"]


def test_what_the_turn_edits_is_its_own_work() -> None:
    edit = uses("Edit", file_path="/home/dev/harbor/tmp/wrecks/list.py")
    assert names(edit, says(BLAME)) == []


def test_lists_and_sentences_without_blame_are_not_obstacles() -> None:
    assert names(says(f"- {BLAME}"), says("Added `tmp/wrecks/` to the list of places.")) == []
    assert names(says("The test of `tmp/wrecks/` fails.")) == []


def test_the_next_command_about_it_is_its_remedy() -> None:
    look, remove = (
        uses("Bash", command=f"{verb} /home/dev/harbor/tmp/wrecks/boat-x7")
        for verb in ("ls", "rm -r")
    )
    (fact,) = find_obstacles(turn(says(BLAME), look, remove))
    assert fact.note == f"{BLAME} Then: `rm -r tmp/wrecks/boat-x7`"


def obstacle(note: str) -> tuple[ProposedFact, ...]:
    return (ProposedFact("fault", "", "tmp/wrecks", note=note, status="candidate"),)


def test_an_obstacle_is_told_from_its_third_session_on_in_the_most_typical_words(
    story: Story,
) -> None:
    notes = (
        "The harbour check fails in `tmp/wrecks/`.",
        f"{BLAME} Then: `rm -r tmp/wrecks/boat-x7`",
        "It picks up `tmp/wrecks/` because of the storm.",
    )
    for number, note in enumerate(notes):
        story.now += DAY
        for prompt in ("Check", "Check again"):
            tell(story, f"{number}", Summary(request=prompt), facts=obstacle(note))
        assert len(section(story, "What holds here")) == (number == 2)
    (line,) = section(story, "What holds here")
    assert line == (
        f"- 3 sessions ran into this, last 2025-10-12: {BLAME}"
        " What was done about it: `rm -r tmp/wrecks/…`"
    )


def test_an_obstacle_lapses_after_many_sessions_without_it(story: Story) -> None:
    for number in range(3):
        tell(story, f"{number}", Summary(request="Check"), facts=obstacle(BLAME))
    assert len(section(story, "What holds here")) == 1
    for number in range(16):
        story.now += DAY
        tell(story, f"later {number}", Summary(request="Row out", files_edited=("log.py",)))
    assert section(story, "What holds here") == []


def test_what_a_hook_of_git_runs_is_told_with_the_commands(story: Story) -> None:
    text = "Committed: the pre-commit hook ran the tests and lint, all green."
    (fact,) = propose_facts(turn(says(text)))
    assert (fact.subject, fact.value, fact.note) == ("hook", "pre-commit", "tests, lint")
    assert propose_facts(turn(says("I looked at the pre-commit hook."))) == ()
    for name in ("a", "b"):
        tell(story, name, Summary(request="Oil it"), facts=(fact,))
    assert section(story, "Commands") == ["- Git runs the pre-commit hook: tests, lint"]
