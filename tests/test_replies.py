"""Parsing a model's reply: whatever it looks like, none of its text is lost."""

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from claude_mem.observer.local.observer import distil
from claude_mem.observer.models.replies import (
    MAX_TEXT_CHARS,
    TAG_NAMES,
    Parsed,
    PartialObservation,
    parse_reply,
)
from claude_mem.observer.models.revision import merge
from claude_mem.types import OBSERVATION_TYPES, Distillate, Summary
from tests.malformed import MALFORMED, Malformed
from tests.turns import FULL_TURN, check

DRAFT = distil(FULL_TURN)


def memory_of(parsed: Parsed) -> str:
    """Every text of the memories that it becomes without a draft, types included.

    Rules and artifacts become facts where the turn proves them; otherwise the reply is stored."""
    made = merge(Distillate(Summary()), parsed)
    texts = [*map(repr, made.observations), repr(made.summary), repr(parsed.rules),
             repr(parsed.artifacts)]  # fmt: skip
    return json.dumps(texts, ensure_ascii=False).replace("\\\\", "\\")


def revised(parsed: Parsed) -> Distillate:
    made = merge(DRAFT, parsed)
    check(made, FULL_TURN)
    return made


def test_there_are_at_least_thirty_ways_of_getting_it_wrong() -> None:
    assert len({case.text for case in MALFORMED}) == len(MALFORMED) >= 30


@pytest.mark.parametrize("case", MALFORMED, ids=lambda case: case.name)
def test_what_a_malformed_answer_says_is_kept_or_the_draft_stands(case: Malformed) -> None:
    parsed = parse_reply(case.text)
    assert parsed.is_usable == case.is_usable
    memory = memory_of(parsed)
    assert (parsed.unplaced == []) is not case.says_more or not case.is_usable, parsed.unplaced
    assert not [words for words in case.survives if words not in memory], memory
    made = revised(parsed)
    if not parsed.observations and not parsed.no_observations:
        assert made.observations == DRAFT.observations
    if parsed.summary is None:
        assert made.summary == DRAFT.summary


def test_a_whole_answer_is_read_field_by_field() -> None:
    parsed = parse_reply("""
        <observation>
          <type>bugfix</type>
          <title>The lamp blinked once</title>
          <subtitle>Ships mistook it for a buoy</subtitle>
          <narrative>The timer was reset twice.</narrative>
          <facts><fact>blink() resets it</fact><fact>the period is 4 s</fact></facts>
          <concepts><concept>gotcha</concept><concept>bugfix</concept></concepts>
          <files_read><file>a.py</file></files_read>
          <files_modified><file>src/light.py</file><file>b.py</file></files_modified>
        </observation>
        <summary>
          <request>Blink twice</request><investigated>the timer</investigated>
          <learned>it is reset twice</learned><completed>it blinks</completed>
          <next_steps>none</next_steps><notes>mind the fog</notes>
          <files_read><file>a.py</file></files_read><files_edited><file>b.py</file></files_edited>
        </summary>""")
    (observation,) = parsed.observations
    assert observation == PartialObservation(
        type="bugfix",
        title="The lamp blinked once",
        subtitle="Ships mistook it for a buoy",
        narrative="The timer was reset twice.",
        facts=("blink() resets it", "the period is 4 s"),
        concepts=("gotcha",),  # a type is no concept
        files_read=("a.py",),
        files_modified=("src/light.py", "b.py"),
    )
    assert parsed.summary is not None
    assert parsed.summary.text == (
        "Blink twice\nthe timer\nit is reset twice\nit blinks\nnone\nmind the fog"
    )
    assert (parsed.summary.files_read, parsed.summary.files_edited) == (("a.py",), ("b.py",))
    assert parsed.unplaced == []


def test_the_optional_elements_are_read_wherever_they_stand() -> None:
    parsed = parse_reply("""
        <observation><title>Relay kept</title><status>unverified</status>
          <rejected><way>a transistor: too cold</way><way>a valve: too large</way></rejected>
          <rules><rule>Never paint the lamp</rule></rules></observation>
        <summary><completed>Kept</completed><rule>Always test</rule><branch>fog</branch>
          <commit>1a2b3c4</commit><pr>https://example.org/a/b/pull/7</pr></summary>""")
    (observation,) = parsed.observations
    assert observation.status == "unverified"
    assert observation.rejected == ("a transistor: too cold", "a valve: too large")
    assert parsed.rules == ("Never paint the lamp", "Always test")
    assert parsed.artifacts == (("branch", "fog"), ("commit", "1a2b3c4"),
                                ("pull request", "https://example.org/a/b/pull/7"))  # fmt: skip
    assert parsed.unplaced == []


HOSTILE = {
    "open observations": "<observation>" * 76_000,
    "open fields": "<observation>" + "<title>" * 140_000,
    "open lists": "<facts><fact>" * 76_000,
    "closing tags": "</fact>" * 140_000,
    "half tags": "<title " * 140_000,
    "attributes": "<title a='" * 100_000,
    "one long text": "<narrative>" + "words " * 850_000,
    "entities": "<narrative>" + "&lt;" * 250_000,
    "blocks": "<observation><title>T</title></observation>" * 22_000,
    "lists": "<observation><facts>" + "<fact>f</fact>" * 72_000 + "</facts></observation>",
    "alternating": "<title><narrative>" * 56_000,
    "summaries": "<summary><notes>n</notes></summary>" * 28_000,
    "fields of the other kind": "<summary>" + "<title>t</title>" * 62_000,
    "no block at all": "some words " * 86_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_megabytes_are_read_step_by_step_and_come_out_small(name: str) -> None:
    assert len(HOSTILE[name]) > 900_000
    parsed = parse_reply(HOSTILE[name])
    for observation in parsed.observations:
        assert len(observation.narrative or "") <= MAX_TEXT_CHARS
    revised(parsed)


PIECES = [
    "<observation>", "</observation>", "<summary>", "</summary>", "<title>", "</title>", "<fact>",
    "</fact>", "<facts>", "</facts>", "<type>", "bugfix", "<file>", "&lt;", "&#0;", "<", ">", "</",
    "```", "<skip_summary/>", "\ud800", "\0",
]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=10), max_size=40).map("".join))
def test_whatever_is_said_can_be_read(text: str) -> None:
    made = revised(parse_reply(text))
    for observation in made.observations:
        assert observation.type in OBSERVATION_TYPES
        assert observation.title
    repr(made).encode()  # no lone surrogates: they cannot be stored


TAGS = [*sorted(TAG_NAMES), "severity", "b", "think"]
_words = st.sampled_from([1, 1, 2, 3, 60, 100, 700, 2500])  # beyond each of the limits
_tag = st.builds(
    str.format,
    st.sampled_from(["<{0}>", "</{0}>", "<{0}/>", '<{0} of="{1}">', '<{0} of="{1}"/>', "< {0} >"]),
    st.sampled_from(TAGS),
    st.just("{}"),
)
_said = _words.map(lambda count: " ".join(["{}"] * count))
_around = st.sampled_from(["\n", "\n- ", "```xml\n", "&lt;", "<![CDATA[", "<", "</", " "])


@settings(max_examples=300)
@given(st.lists(_tag | _said | _around, max_size=60).map("".join))
def test_every_word_is_in_a_memory_or_told_to_be_in_none(text: str) -> None:
    count = text.count("{}")
    words = [f"w{number:06}w" for number in range(count)]
    parsed = parse_reply(text.format(*words))
    texts = (memory_of(parsed), *parsed.unplaced)
    stored = {word for text in texts for word in WORD.findall(text)}
    assert not [word for word in words if word not in stored]
    if not parsed.unplaced:
        assert set(WORD.findall(memory_of(parsed))) >= set(words)


WORD = re.compile(r"w\d{6}w")


def words(count: int) -> str:
    return " ".join(f"w{number:06}w" for number in range(count))


@pytest.mark.parametrize(
    ("text", "is_unplaced"),
    [
        (f"<observation><title>{words(60)}</title></observation>", False),
        (f"<observation><title>T</title><subtitle>{words(90)}</subtitle></observation>", False),
        (f"<observation><title>T</title><fact>{words(90)}</fact></observation>", False),
        ("<observation><title>T</title><facts>"
         + "".join(f"<fact>{word}</fact>" for word in words(90).split())
         + "</facts></observation>", False),
        ("<observation><title>T</title><completed>w000000w</completed></observation>", False),
        ("<observation><title>T</title><files_edited>w000000w</files_edited></observation>", False),
        ("<summary><request>T</request><concepts>w000000w</concepts></summary>", False),
        ("<observation><title>T</title><narrative>a <w000000w", False),
        (f"<observation><title>T</title><narrative>{words(900)}</narrative></observation>", True),
        (f"<summary><learned>{words(900)}</learned></summary>", True),
        ("<observation><title>T</title><concept>" + "w" * 50 + "</concept></observation>", True),
        ("<observation><title>T</title><file path='w000000w'/></observation>", True),
        ("<observation><files_read><file>w000000w</file></files_read></observation>", False),
        ("<observation><type>w000000w</type><title>T</title></observation>", True),
        ('<skip_summary because="w000000w"/>', True),
        ("w000000w <observation><title>T</title></observation>", True),
    ],
)  # fmt: skip
def test_what_does_not_fit_its_field_moves_and_what_fits_nowhere_is_listed(
    text: str, is_unplaced: bool
) -> None:
    parsed = parse_reply(text)
    assert bool(parsed.unplaced) is is_unplaced
    if not is_unplaced:
        assert set(WORD.findall(memory_of(parsed))) == set(WORD.findall(text))


def test_the_fence_of_the_request_is_no_text_of_a_reply() -> None:
    parsed = parse_reply("<record>\n<title>Pump</title><narrative>It leaks.\n</record>\n")
    assert [o.narrative for o in parsed.observations] == ["It leaks."]
    assert not parsed.unplaced
