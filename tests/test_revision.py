"""Merging a reply into the draft: field by field, and the right observation with the right one."""

from dataclasses import replace

import pytest

from claude_mem.observer.local.observer import distil
from claude_mem.observer.models.failures import UnusableReply
from claude_mem.observer.models.model import Reply
from claude_mem.observer.models.prompts import PROMPT_VERSION
from claude_mem.observer.models.revision import Revision, revise_draft
from claude_mem.redaction import Redactor
from claude_mem.types import Distillate, Observation, Summary, Turn
from tests.turns import FULL_TURN, check, edited, ran, stopped, turn, use

DRAFT = distil(FULL_TURN)


def revise(text: str, draft: Distillate = DRAFT, of: Turn = FULL_TURN) -> Revision:
    return revise_draft(of, draft, Reply(text, "some-model"), "claude", Redactor())


def revised(text: str, draft: Distillate = DRAFT) -> Distillate:
    made = revise(text, draft).distillate
    check(made, FULL_TURN)
    return made


def test_what_the_reply_does_not_mention_stays_as_the_draft_has_it() -> None:
    made = revised("<observation><title>New</title></observation>")
    assert [observation.title for observation in made.observations] == ["New"]
    assert made.summary == DRAFT.summary
    made = revised("<summary><completed>All of it</completed></summary>")
    assert made.observations == DRAFT.observations
    assert made.summary == replace(DRAFT.summary, completed="All of it")


def test_a_reply_may_say_that_nothing_is_worth_an_observation() -> None:
    assert DRAFT.observations
    made = revised("<no_observation/><summary><completed>Small talk</completed></summary>")
    assert made.observations == ()
    assert made.summary.completed == "Small talk"


def test_of_a_turn_that_was_revised_before_it_means_no_further_observation() -> None:
    earlier = replace(DRAFT, model="some-model")
    assert revised("<no_observation/>", earlier).observations == DRAFT.observations


def test_a_revised_memory_names_its_observer_and_the_events_it_came_from() -> None:
    made = revised("<observation><title>New</title></observation>")
    assert (made.observer, made.model) == ("claude", "some-model")
    assert made.prompt_version == PROMPT_VERSION
    assert set(made.observations[0].sources) >= set(DRAFT.summary.sources)


def test_a_turn_that_went_on_has_its_later_events_as_sources_too() -> None:
    of = turn(stopped("Done.", 1), use(2, tool_name="Bash"), use(3, "Notification"))
    earlier = Distillate(Summary(completed="Done", sources=(1,)), model="some-model")
    reply = Reply("<observation><title>More</title></observation>", "some-model")
    made = revise_draft(of, earlier, reply, "claude", Redactor()).distillate
    assert made.summary.sources == made.observations[0].sources == (1, 2, 3)
    fresh = revise_draft(of, replace(earlier, model=None), reply, "claude", Redactor()).distillate
    assert fresh.summary.sources == fresh.observations[0].sources == (1,)


@pytest.mark.parametrize("text", ["", " \n", "I have nothing to say.", "<observation>"])
def test_a_reply_without_a_memory_is_refused_and_carried_by_the_error(text: str) -> None:
    with pytest.raises(UnusableReply) as caught:
        revise(text)
    assert caught.value.reply == text


def test_the_full_reply_is_returned_only_if_it_says_more_than_the_memories() -> None:
    text = "<observation><title>New</title></observation>"
    assert revise(text).kept_reply is None
    assert revise(f"Sure! {text}").kept_reply == f"Sure! {text}"


LAMP = Observation("bugfix", title="The lamp blinks twice", narrative="A timer was reset too often"
                   " in the blink function.", files_modified=("lamp.py",))  # fmt: skip
HORN = Observation("decision", title="The fog horn keeps its relay", facts=("It survives the cold",
                   "A transistor would be cheaper"), files_modified=("horn.py",))  # fmt: skip
BOTH = replace(DRAFT, observations=(LAMP, HORN))


@pytest.mark.parametrize(
    ("replies", "files"),
    [
        # by their titles, in any order
        ((HORN.title, LAMP.title), ("horn.py", "lamp.py")),
        (("THE LAMP BLINKS TWICE",), ("lamp.py",)),
        # by their words
        (("Relay of the fog horn survives the cold",), ("horn.py",)),
        (("Timer reset in the blink function", "Relay of the horn"), ("lamp.py", "horn.py")),
        # a subject that the draft does not have
        (("Documentation translated to Dutch",), (None,)),
        (("Documentation translated", LAMP.title, HORN.title), (None, "lamp.py", "horn.py")),
        # none revises the same one twice
        ((LAMP.title, "The lamp blinks twice now"), ("lamp.py", None)),
    ],
)
def test_an_observation_is_completed_by_the_one_of_the_draft_that_it_revises(
    replies: tuple[str, ...], files: tuple[str | None, ...]
) -> None:
    text = "".join(f"<observation><title>{title}</title></observation>" for title in replies)
    made = revised(text, BOTH)
    assert [observation.title for observation in made.observations] == list(replies)
    expected = [(path,) if path else () for path in files]
    assert [observation.files_modified for observation in made.observations] == expected


def test_a_title_is_the_same_with_and_without_what_it_was_about() -> None:
    lamp = replace(LAMP, title=f"{LAMP.title} [asked: how often?]")
    of_horn = " ".join((HORN.title or "", *HORN.facts))
    text = f"<title>{LAMP.title}</title><narrative>{of_horn}</narrative>"
    draft = replace(DRAFT, observations=(lamp, HORN))
    (observation,) = revised(f"<observation>{text}</observation>", draft).observations
    assert observation.files_modified == ("lamp.py",)


def test_a_new_observation_without_type_and_title_is_a_change_with_a_title_from_its_text() -> None:
    (made,) = revised("<observation><narrative>It leaks.\nAt joint four.</narrative></observation>",
                      replace(DRAFT, observations=())).observations  # fmt: skip
    assert (made.type, made.title) == ("change", "It leaks.")
    assert made.narrative == "It leaks.\nAt joint four."


def of_horn(extra: str) -> Observation:
    text = f"<observation><title>{HORN.title}</title>{extra}</observation>"
    (made,) = revised(text, replace(DRAFT, observations=(HORN,))).observations
    return made


def test_a_status_and_rejected_ways_are_facts_beside_those_of_the_draft() -> None:
    made = of_horn("<status>failed</status><rejected><way>a valve: too large</way></rejected>")
    assert made.facts == ("Status: failed", *HORN.facts, "Rejected: a valve: too large")
    assert of_horn("<status>done</status>").facts == HORN.facts
    made = of_horn("<status>proposed</status><fact>It rusts</fact>")
    assert made.facts == ("Status: proposed", "It rusts")


def test_a_later_status_replaces_the_earlier_one() -> None:
    earlier = replace(HORN, facts=("Status: failed", "It rusts"))
    draft = replace(DRAFT, observations=(earlier,), model="some-model")
    text = f"<observation><title>{HORN.title}</title>{{}}</observation>"
    assert revised(text.format("<status>done</status>"), draft).observations[0].facts == (
        "It rusts",
    )
    assert revised(text.format(""), draft).observations[0].facts == earlier.facts


RULE = "Never push to main without asking me."
COMMIT, PULL_REQUEST = "1a2b3c4d", "https://example.org/harbor/light/pull/7"


def stated(prompt: str, elements: str) -> Revision:
    of = turn(ran("git log", f"{COMMIT} Blink\nsee {PULL_REQUEST}"), stopped("Done."),
              prompt=prompt)  # fmt: skip
    reply = Reply(f"<summary><completed>Done</completed>{elements}</summary>", "some-model")
    return revise_draft(of, distil(of), reply, "claude", Redactor())


@pytest.mark.parametrize(
    ("prompt", "rule", "is_fact"),
    [
        (f"Fix the lamp. {RULE}", RULE, True),
        (f"Fix the lamp. {RULE}", f'"{RULE}"', True),
        (f"Fix the lamp. {RULE}", "Never push to main", True),
        (f"Fix the lamp. {RULE}", "Do not push to the main branch.", False),
        (f"Fix the lamp.\n```\n{RULE}\n```", RULE, False),
        (f"Fix the lamp.\n> {RULE}", RULE, False),
        (f"<skill>{RULE}</skill>", RULE, False),
        (RULE + " Words of a pasted plan." * 100, RULE, False),
    ],
)
def test_a_rule_is_a_fact_only_in_the_words_that_the_user_typed(
    prompt: str, rule: str, is_fact: bool
) -> None:
    revision = stated(prompt, f"<rules><rule>{rule}</rule></rules>")
    facts = [(fact.kind, fact.value, fact.origin) for fact in revision.distillate.facts]
    assert facts == ([("rule", rule.strip('"'), "person")] if is_fact else [])
    assert (revision.kept_reply is None) is is_fact


@pytest.mark.parametrize(
    ("element", "fact"),
    [
        (f"<commit>{COMMIT}</commit>", ("commit", COMMIT)),
        (f"<commit>{COMMIT} (Blink)</commit>", ("commit", COMMIT)),
        (f"<pull_request>{PULL_REQUEST}</pull_request>", ("pull request", PULL_REQUEST)),
        ("<commit>deadbeef</commit>", None),
        ("<branch>invented-branch</branch>", None),
    ],
)
def test_a_commit_is_a_fact_only_if_the_turn_contains_it(
    element: str, fact: tuple[str, str] | None
) -> None:
    revision = stated("Fix the lamp", element)
    assert [(f.subject, f.value) for f in revision.distillate.facts] == ([fact] if fact else [])
    assert (revision.kept_reply is None) is (fact is not None)


def test_none_in_place_of_a_branch_is_not_worth_keeping_the_reply() -> None:
    assert stated("Fix the lamp", "<branch>none</branch><rule>n/a</rule>").kept_reply is None


def test_a_block_with_only_a_type_and_files_is_an_observation() -> None:
    files = "<files_modified><file>horn.py</file><file>fog.py</file></files_modified>"
    (observation,) = revise(
        f"<observation><type>refactor</type>{files}</observation>",
        Distillate(Summary(), ()),
        turn(edited("horn.py", 1), edited("fog.py", 2)),
    ).distillate.observations
    assert (observation.type, observation.title) == ("refactor", "Changed horn.py, fog.py")
    assert observation.files_modified == ("horn.py", "fog.py")
