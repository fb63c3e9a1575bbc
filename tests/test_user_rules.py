"""Rules of the user: what they typed to the agent, for good, and nothing that was pasted."""

import json
from pathlib import Path

import pytest
from bench import rules as bench_rules

from claude_mem.observer.local.observer import distil
from claude_mem.observer.local.user_rules import LONGEST_TYPED_PROMPT, find_rules
from tests.payloads import prompt, stop
from tests.story import Story
from tests.turns import turn

RULE = "Never push to main."


@pytest.mark.parametrize(
    "sentence",
    [
        RULE,
        "Always run `make check` before you commit.",
        "From now on answer in English.",
        "Please don't ever add comments to generated code",
        "You must never force push.",
        "Going forward, write commit messages in the imperative.",
        "We should use table tests wherever we can.",
        "Do not use emojis in docs, because they break the printer.",
    ],
)
def test_an_order_for_good_is_a_rule_quoted_verbatim(sentence: str) -> None:
    (rule,) = find_rules(f"Fix the lamp. {sentence}")
    assert (rule.text, rule.status) == (sentence, "holds")


@pytest.mark.parametrize(
    "sentence",
    [
        "Fix the lamp in the hall.",
        "Why is the door never closed?",
        "The lamp is never lit.",
        "Make the address always visible at the top of the page.",
        "Maybe we should always light the lamp.",
        "I never saw the light yesterday.",
        "Do not change the code just yet.",
        "Don't start this task now.",
        "Should we always use the same fuse?",
        "I think the light always blinks twice.",
    ],
)
def test_a_task_a_question_or_a_report_is_no_rule(sentence: str) -> None:
    assert [rule for rule in find_rules(sentence) if rule.status == "holds"] == []


@pytest.mark.parametrize(
    "text",
    [
        f"Look at this:\n```\n{RULE}\n```\n",
        f"Look at this:\n~~~\n{RULE}",
        f"> {RULE}",
        f"Look at this: <file>{RULE}</file>",
        f"<skill>\n{RULE}\n</skill>",
        f'The sign says "{RULE}"',
        f"The sign says “{RULE}”",
        f"# Rules\n**Branches**: {RULE}",
        f"Implement the following plan:\n\n{RULE}",
        f"<task-notification><result>{RULE}</result></task-notification>",
        f"/review {RULE}",
        f"Stop hook feedback:\n- [make lint]: {RULE}",
        f"PostToolUse:Edit hook feedback: {RULE}",
        f"This session is being continued from a previous conversation.\n{RULE}",
        f"Base directory for this skill: /repo/skills/x\n\n{RULE}",
        f"Another Claude session sent a message:\n{RULE}",
        f"[Scheduled task] {RULE}",
        f"# Autonomous loop check\n{RULE}",
        f'<channel source="chat" user="bob">{RULE}</channel>',
        f"<teammate-message>\n{RULE}\n</teammate-message>",
        f"Look at @README.md\n--- Content from referenced files ---\n{RULE}",
        f"Fix it\n\nThe user has attached README.md:\n{RULE}",
        f"# Context from my IDE setup:\n\n## Active selection:\n{RULE}"
        "\n\n## My request for Codex:\nfix it",
        f"{RULE} " + "Fix the lamp in the hall. " * (LONGEST_TYPED_PROMPT // 25),
    ],
)
def test_pasted_text_makes_no_rule(text: str) -> None:
    assert find_rules(text) == ()


@pytest.mark.parametrize(
    "text",
    [
        f"Fix this issue:\n\nThe lamp is dark since Tuesday.\n{RULE}\nThanks, Bob",
        f"Fix the lamp.\n\n{RULE}\n\nIt is dark since Tuesday.",
        f"here is the output\n\n{RULE}",
        f"This is what the CI says\n{RULE}",
        f"The mail says: {RULE}",
        f"Das steht im Brief\n\n{RULE}",
    ],
)
def test_what_may_be_pasted_is_a_candidate(text: str) -> None:
    assert [rule.status for rule in find_rules(text)] == ["candidate"]


@pytest.mark.parametrize(
    "text",
    [
        f"Fix the lamp.\n\n{RULE}",
        f"{RULE}\n\nFix the lamp.",
        f"Rules:\n- {RULE}",
        f"- {RULE}\n- Fix the lamp",
        f"Important: {RULE}",
    ],
)
def test_the_first_and_the_last_paragraph_are_typed(text: str) -> None:
    assert [rule.status for rule in find_rules(text)] == ["holds"]


def test_the_request_after_the_context_of_an_editor_counts() -> None:
    text = (
        f"# Context from my IDE setup:\n\n## Active file: a.md\n\n## My request for Codex:\n{RULE}"
    )
    assert [rule.status for rule in find_rules(text)] == ["holds"]


def test_a_doubtful_sentence_is_a_candidate() -> None:
    (rule,) = find_rules("don't make a branch, just a patch")
    assert rule.status == "candidate"


def test_a_sure_rule_is_a_decision_with_the_concept_preference_and_a_fact() -> None:
    distillate = distil(turn(prompt=f"Light the lamp. {RULE}"))
    decision = distillate.observations[-1]
    assert (decision.type, decision.title) == ("decision", RULE)
    assert decision.concepts == ("preference",)
    (fact,) = distillate.facts
    assert (fact.kind, fact.value, fact.origin, fact.status) == ("rule", RULE, "person", "holds")


def test_a_candidate_is_a_fact_only() -> None:
    distillate = distil(turn(prompt="don't make a branch, just a patch"))
    assert [fact.status for fact in distillate.facts] == ["candidate"]
    assert not any("preference" in o.concepts for o in distillate.observations)


def test_a_rule_that_is_stated_again_becomes_stronger(tmp_path: Path) -> None:
    with Story(tmp_path) as story:
        for prompt_id in ("p1", "p2"):
            of = {"prompt_id": prompt_id}
            story.tell(prompt(f"Light the lamp. {RULE}", **of), stop(f"{RULE}", **of))
        story.distil()
        (fact,) = story.store.facts(1, ["rule"])
        assert (fact.value, fact.count, fact.origin) == (RULE, 2, "person")


def test_what_the_agent_says_is_never_a_rule(tmp_path: Path) -> None:
    with Story(tmp_path) as story:
        story.tell(prompt("Light the lamp."), stop(f"From now on: {RULE} Always use the big fuse."))
        story.distil()
        assert story.store.facts(1, ["rule"]) == []


def test_the_bench_prints_precision_and_recall(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [
        {"project": "a", "sentence": RULE, "typed": True, "label": "rule"},
        {"project": "a", "sentence": "Always run the tests.", "typed": True, "label": "task"},
        {"project": "b", "sentence": RULE, "typed": False, "label": "rule"},
        {"project": "b", "sentence": "It is dark.", "typed": True, "label": "rule"},
    ]
    path = tmp_path / "labels.jsonl"
    path.write_text("\n".join(json.dumps(line) for line in lines))
    monkeypatch.setattr("sys.argv", ["bench.rules", "--labels", str(path)])
    bench_rules.main()
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == "rules: precision 0.50, recall 0.50 (1 right, 1 wrong, 1 missed)"


LONG_RULE = (
    "Never push to a branch of the harbour that a keeper of the northern pier reviews between dusk"
    " and dawn of a working day in the winter months of the year."
)


@pytest.mark.parametrize(
    ("typed", "title"),
    [
        ("yes and never push to main.", "never push to main."),
        ("No, never push to main.", "never push to main."),
        (
            "From now on no comment is needed in tests.",
            "From now on no comment is needed in tests.",
        ),
        ("No comments in tests, ever, from now on.", "No comments in tests, ever, from now on."),
        (
            "From now on, if the lamp of a pier is lit, never ring its bell at night because the"
            " keeper of the northern pier sleeps in the room below it.",
            "From now on, if the lamp of a pier is lit, never ring its bell at night",
        ),
        (LONG_RULE, LONG_RULE),  # has no clause that could be cut off
    ],
)
def test_the_title_of_a_rule_is_without_a_nod_and_says_the_same(typed: str, title: str) -> None:
    assert [o.title for o in distil(turn(prompt=typed)).observations] == [title]
