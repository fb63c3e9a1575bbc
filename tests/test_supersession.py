"""When one fact replaces another: decided for pairs of facts, applied when facts are merged."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from claude_mem.recall.context import build_context
from claude_mem.store.fact_comparison.supersession import relation
from claude_mem.store.facts import save_proposals
from claude_mem.store.forgetting import Selection, preview
from claude_mem.types import Distillate, Fact, Observation, Project, ProposedFact, Summary
from tests.neighbouring_facts import NEIGHBOURS
from tests.payloads import bash, failure, prompt, stop, tool
from tests.remembering import HARBOR, remember
from tests.reworded_facts import LOOKALIKES, REPEATED, REPLACED
from tests.story import MINUTE, Story
from tests.supersession_pairs import MUST_REPLACE, MUST_STAY, Pair


@pytest.fixture
def story(tmp_path: Path) -> Iterator[Story]:
    with Story(tmp_path) as story:
        yield story


def turn(story: Story, text: str, prompt_id: str, *events: dict[str, object]) -> None:
    story.tell(prompt(text, prompt_id=prompt_id), *events, stop("Done.", prompt_id=prompt_id))
    story.distil()


def facts(story: Story, kind: str) -> dict[str, Fact]:
    (project,) = story.column("SELECT id FROM projects")
    return {fact.value: fact for fact in story.store.facts(project) if fact.kind == kind}


def statuses(story: Story, kind: str) -> dict[str, str]:
    return {value: fact.status for value, fact in facts(story, kind).items()}


def save(story: Story, title: str, observer: str = "person") -> None:
    story.now += MINUTE
    story.store.save_memory(HARBOR, "/harbor", Observation("discovery", title), observer).result()


def context(story: Story) -> str:
    (project,) = story.column("SELECT id FROM projects")
    return build_context(story.store, project, 1_000)


@pytest.mark.parametrize("pair", MUST_REPLACE)
def test_a_newer_fact_replaces_or_repeats_the_older(pair: Pair) -> None:
    assert relation(*pair) != "unrelated"


@pytest.mark.parametrize("pair", (*MUST_STAY, *NEIGHBOURS, *LOOKALIKES))
def test_facts_about_different_things_stay(pair: Pair) -> None:
    assert relation(*pair) == "unrelated"


@pytest.mark.parametrize("pair", REPLACED)
def test_a_newer_fact_replaces_the_older_in_other_words(pair: Pair) -> None:
    assert relation(*pair) == "supersedes"


@pytest.mark.parametrize("pair", REPEATED)
def test_a_newer_fact_repeats_the_older_in_other_words(pair: Pair) -> None:
    assert relation(*pair) == "same"


def test_there_are_enough_pairs_of_both_sorts() -> None:
    assert len(MUST_REPLACE) >= 40 <= len(MUST_STAY)


# Rules


def test_a_rule_ends_when_the_user_takes_it_back(story: Story) -> None:
    turn(story, "Fix the fuse. Never push to main.", "p1")
    assert '"Never push to main."' in context(story)
    turn(story, "You may push to main again. Now fix the lamp.", "p2")
    rules = facts(story, "rule")
    assert rules["Never push to main."].status == "past"
    assert rules["Never push to main."].superseded_by == rules["You may push to main again."].id
    assert "Never push to main" not in context(story)


def test_a_withdrawal_without_a_rule_is_not_a_fact(story: Story) -> None:
    turn(story, "You may push to main again.", "p1")
    assert facts(story, "rule") == {}


def test_a_rule_that_is_stated_again_after_its_withdrawal_holds(story: Story) -> None:
    turn(story, "Never push to main.", "p1")
    turn(story, "You may push to main again.", "p2")
    turn(story, "Never push to main.", "p3")
    rule = facts(story, "rule")["Never push to main."]
    assert (rule.status, rule.superseded_by, rule.count) == ("holds", None, 2)


def test_a_rule_in_other_words_is_the_same_rule(story: Story) -> None:
    turn(story, "Always run the tests before you commit.", "p1")
    turn(story, "Always run the test suite before every commit.", "p2")
    ((value, rule),) = facts(story, "rule").items()
    assert (value, rule.count) == ("Always run the tests before you commit.", 2)


def test_a_rule_holds_again_when_its_withdrawal_is_forgotten(story: Story) -> None:
    turn(story, "Never push to main.", "p1")
    turn(story, "You may push to main again.", "p2")
    last = max(story.column("SELECT id FROM user_prompts"))
    selection = Selection(prompts=(last,))
    token = story.store.read(lambda c: preview(c, selection)).token
    forgotten = story.store.forget(selection, token).result()
    assert statuses(story, "rule") == {"Never push to main.": "holds"}
    story.store.undo_forgetting(forgotten.token).result()
    assert statuses(story, "rule")["Never push to main."] == "past"


def test_a_saved_memory_that_a_later_one_replaces_is_not_given(story: Story) -> None:
    for text in ("The API listens on port 8080", "The API now listens on port 9090"):
        save(story, text)
    assert "port 9090" in context(story)
    assert "8080" not in context(story).partition("## What holds here")[2]


def test_what_the_user_saved_yields_only_to_the_user(story: Story) -> None:
    save(story, "The API listens on port 8080")
    save(story, "The API now listens on port 9090", observer="agent")
    assert "port 8080" in context(story)


# Contexts


@pytest.fixture(scope="module")
def contexts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    with Story(tmp_path_factory.mktemp("contexts")) as story:
        yield story


SHOWN = [pair for pair in MUST_REPLACE if relation(*pair) == "supersedes"]


@pytest.mark.parametrize(("number", "pair"), list(enumerate(SHOWN)))
def test_no_context_gives_a_replaced_value(contexts: Story, number: int, pair: Pair) -> None:
    """Each pair in a project of its own; what an agent notes is saved."""
    project = Project(f"p{number}", f"p{number}")
    for fact in pair:
        state(contexts, project, fact)
    (row,) = contexts.rows(f"SELECT id FROM projects WHERE key = 'p{number}'")
    context = build_context(contexts.store, int(str(row["id"])), 1_000)
    holding = context.partition("## What holds here")[2]
    assert pair.older.value not in holding
    facts = contexts.store.facts(int(str(row["id"])))
    assert [fact.status for fact in facts if fact.value == pair.older.value] == ["past"]


def state(story: Story, project: Project, fact: ProposedFact) -> None:
    if fact.kind == "decision" and not fact.subject:
        story.now += MINUTE
        note = Observation("discovery", fact.value, narrative=fact.value)
        story.store.save_memory(project, "/p", note, "agent").result()
        return
    for _ in range(2):  # a command must be seen twice
        remember(story, "Painted the door", session=project.key, project=project)
        turn = max(story.column("SELECT id FROM user_prompts"))
        propose(story, turn, fact)


def propose(story: Story, turn_id: int, fact: ProposedFact) -> None:
    distillate = Distillate(Summary(), facts=(fact,))
    story.store.write(lambda c: save_proposals(c, turn_id, distillate)).result()


# Decisions, faults and commands


def ask(question: str, answer: str, prompt_id: str) -> dict[str, object]:
    return tool(
        "AskUserQuestion",
        tool_input={"questions": [{"question": question, "options": []}]},
        tool_response={"answers": {question: answer}},
        prompt_id=prompt_id,
    )


def test_a_later_answer_reverses_a_decision(story: Story) -> None:
    turn(story, "Plan it", "p1", ask("Which database should we use?", "PostgreSQL", "p1"))
    turn(story, "Plan again", "p2", ask("Which database do we use?", "SQLite", "p2"))
    assert statuses(story, "decision") == {"PostgreSQL": "past", "SQLite": "holds"}
    assert "PostgreSQL" not in context(story)


@pytest.mark.parametrize(("more", "status"), [("in winter", "past"), ("in winter storms", "holds")])
def test_an_answer_replaces_that_to_a_question_with_three_quarters_of_its_words(
    story: Story, more: str, status: str
) -> None:
    question = "Which colour should the lamp on the harbour wall have"
    turn(story, "Plan it", "p1", ask(f"{question}?", "Green", "p1"))
    turn(story, "Plan again", "p2", ask(f"{question} {more}?", "Red", "p2"))
    assert statuses(story, "decision") == {"Green": status, "Red": "holds"}


def test_the_time_of_the_turn_decides_not_the_order_of_distilling(story: Story) -> None:
    turn(story, "Plan it", "p1")
    turn(story, "Plan again", "p2", ask("Which database do we use?", "SQLite", "p2"))
    first = min(story.column("SELECT id FROM user_prompts"))
    earlier = ProposedFact("decision", "Which database do we use?", "MySQL", origin="person")
    propose(story, first, earlier)
    assert statuses(story, "decision") == {"MySQL": "past", "SQLite": "holds"}


def test_a_command_that_passes_twice_closes_its_fault(story: Story) -> None:
    broken = {"tool_input": {"command": "wrap make test"}, "error": "error: no such command"}
    turn(story, "Test it", "p1", failure(**broken, prompt_id="p1"),
         bash("make test", "3 passed", prompt_id="p1"))  # fmt: skip
    assert statuses(story, "fault") == {"make test": "holds"}
    for prompt_id in ("p2", "p3"):
        turn(story, "Test it", prompt_id, bash("wrap make test", "3 passed", prompt_id=prompt_id))
    assert statuses(story, "fault") == {"make test": "past"}


def run(story: Story, command: str, *prompt_ids: str) -> None:
    for prompt_id in prompt_ids:
        turn(story, "Test it", prompt_id, bash(command, "3 passed", prompt_id=prompt_id))


def test_a_command_replaces_another_that_is_not_run_any_more(story: Story) -> None:
    run(story, "pytest -q", "p1", "p2", "p3")
    run(story, "uv run pytest -q -n auto", "p4")
    assert set(statuses(story, "command").values()) == {"holds"}
    run(story, "uv run pytest -q -n auto", "p5")
    assert statuses(story, "command")["pytest -q"] == "past"


def test_commands_that_are_run_by_turns_both_hold(story: Story) -> None:
    for number in range(3):
        run(story, "pytest -q", f"a{number}")
        run(story, "pytest -x", f"b{number}")
    assert statuses(story, "command") == {"pytest -q": "holds", "pytest -x": "holds"}


def test_a_decision_of_the_agent_yields_to_a_rule_of_the_user(story: Story) -> None:
    turn(story, "Draw the map", "p1")
    (first,) = story.column("SELECT id FROM user_prompts")
    propose(story, first, ProposedFact("decision", "", "I cache the tiles for 24 hours"))
    turn(story, "Draw the rivers", "p2")
    rule = ProposedFact("rule", "", "Cache the tiles for one hour only", origin="person")
    propose(story, max(story.column("SELECT id FROM user_prompts")), rule)
    assert set(statuses(story, "decision").values()) == {"past"}
