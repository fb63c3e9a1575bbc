"""What every observer must do, on the way that production takes: events, jobs, refiner, store.
Then what the local one makes of a turn."""

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claude_mem.observer import LOCAL
from claude_mem.observer.local.observer import distil as local_distil
from claude_mem.observer.models.prompts import build_request
from claude_mem.types import Distillate, Json, Observation, Turn
from tests.fake_api import Body, FakeApi, Reply
from tests.malformed import MALFORMED
from tests.observed import KINDS, Observed, answer, children, says, stored_memory
from tests.payloads import (
    PROJECT_DIR,
    Payload,
    edit,
    failure,
    one_of_each,
    prompt,
    read,
    stop,
    tool,
    write,
)
from tests.real_client import skip_without_client
from tests.story import Story
from tests.turns import TURN, check, stopped, texts, turn, turn_from, use

# Every observer


class Observing:
    """A story that is distilled by this observer, as the worker does it."""

    def __init__(self, story: Story, api: FakeApi, name: str) -> None:
        self.story, self.name = story, name
        self._model = None if name == LOCAL else Observed(story, api, name)
        self._numbers = itertools.count(1)

    def distil(self, *payloads: Payload) -> tuple[Turn, Distillate]:
        """A turn of these events, and its memories."""
        (memory,) = self.distil_turns(payloads)
        return memory

    def distil_turns(self, *turns: Sequence[Payload]) -> list[tuple[Turn, Distillate]]:
        """Distils the turns of a session; a model gets them in one conversation."""
        prompt_ids = [self._record(payloads) for payloads in turns]
        if self._model is None:
            self.story.distil()
        else:
            self._model.draft()
            self._model.refine()
        return [self._memory(prompt_id) for prompt_id in prompt_ids]

    def _record(self, payloads: Sequence[Payload]) -> str:
        prompt_id = f"turn-{next(self._numbers)}"
        events = [
            self.story.event({**payload, "prompt_id": prompt_id})
            for payload in (*payloads, stop("", stop_hook_active=True))
        ]
        self.story.store.record_events(events).result()
        return prompt_id

    def _memory(self, prompt_id: str) -> tuple[Turn, Distillate]:
        (turn_id,) = self.story.column("SELECT id FROM user_prompts WHERE prompt_id = ?", prompt_id)
        return stored_memory(self.story, turn_id)


EVERY = skip_without_client(["local", *KINDS])


@pytest.fixture(params=EVERY)
def observer(request: pytest.FixtureRequest, story: Story, api: FakeApi) -> Iterator[Observing]:
    """The models answer as a fake API on loopback has them: the real SDK and client are asked."""
    api.otherwise = lambda body: Reply(answer("Seen by a model"))
    yield Observing(story, api, str(request.param))
    assert children() == []


TURNS: dict[str, list[Payload]] = {
    "whole": one_of_each(),
    "prompt only": [prompt()],
    "nothing": [],
}


@pytest.mark.parametrize("name", TURNS)
def test_every_turn_gets_a_summary_and_says_who_made_it(observer: Observing, name: str) -> None:
    of, distillate = observer.distil(*TURNS[name])
    check(distillate, of)
    assert distillate.observer == observer.name
    assert (distillate.model is None) is (observer.name == "local")


HOSTILE: list[Json] = [
    None,
    True,
    0,
    -1.5,
    float("nan"),
    "",
    "a text",
    [],
    [None, 1, ["deep"]],
    {},
    {"file_path": None},
    {"file_path": ""},
    {"file_path": 7},
    {"file_path": ["/a"]},
    {"file_path": {"a": 1}},
    {"file_path": "/"},
    {"file_path": PROJECT_DIR},
    {"file_path": "x\0y\n\u2028"},
    {"file_path": "x" * 50_000},
    {"structuredPatch": None},
    {"structuredPatch": {"lines": "+a"}},
    {"structuredPatch": [None, 1, "+a", {}, {"lines": None}, {"lines": [None, 1, {}]}]},
    {"file_path": "/a", "structuredPatch": [{"lines": ["", "+", "-", " ", "+" + "y" * 50_000]}]},
    {"file_path": "/a", "old_string": 7, "new_string": ["x"], "content": {"a": 1}},
    {"type": ["create"], "filePath": "/a"},
    {"file": None},
    {"stdout": {"not": "text"}, "stderr": 5},
]
TOOLS = ["Edit", "Write", "MultiEdit", "NotebookEdit", "Read", "Bash", "Agent", "", None]


@pytest.mark.parametrize("tool_name", TOOLS)
def test_hostile_inputs_with_hostile_responses_are_distilled_and_a_model_can_be_told_of_them(
    story: Story, api: FakeApi, tool_name: str | None
) -> None:
    payloads = [
        tool(tool_name=tool_name, tool_input=tool_input, tool_response=tool_response)
        for tool_input in HOSTILE
        for tool_response in HOSTILE
    ]
    of, distillate = Observing(story, api, LOCAL).distil(*payloads)
    assert len(of.events) >= len(payloads)
    check(distillate, of)
    assert build_request(of, distillate, continues=False).text.count("</record>") == 2


def test_turns_of_hostile_inputs_and_responses_are_distilled_without_failing(
    observer: Observing,
) -> None:
    """Each input and each response with each tool, but not each input with each response."""
    turns = [
        [
            tool(tool_name=tool_name, tool_input=HOSTILE[n], tool_response=HOSTILE[n - shift])
            for n in range(len(HOSTILE))
        ]
        for shift, tool_name in enumerate(TOOLS)
    ]
    for payloads, (of, distillate) in zip(turns, observer.distil_turns(*turns), strict=True):
        assert len(of.events) >= len(payloads)
        check(distillate, of)
        assert distillate.observer == observer.name


@pytest.mark.parametrize("tool_name", TOOLS)
def test_each_hostile_input_and_response_is_distilled_without_failing(
    tool_name: str | None,
) -> None:
    for number, value in enumerate(HOSTILE):
        of = turn(use(number, tool_name=tool_name, tool_input=value, tool_response=value))
        check(local_distil(of), of)


NAMES = ["file_path", "filePath", "notebook_path", "structuredPatch", "lines", "content",
         "new_string", "old_string", "type"]  # fmt: skip
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4)
    ),
    max_leaves=8,
)
events = st.builds(
    use,
    st.integers(1, 10**6),
    st.sampled_from(["PostToolUse", "PostToolUseFailure", "Stop", "StopFailure", "SubagentStop"]),
    tool_name=st.sampled_from(TOOLS),
    tool_input=json_values,
    tool_response=json_values,
    text=st.none() | st.text(max_size=50),
)
turns = st.builds(
    replace,
    st.just(TURN),
    events=st.lists(events, max_size=5, unique_by=lambda event: event.id).map(tuple),
    prompt=st.none() | st.text(max_size=50),
    project_dir=st.sampled_from(["", "/", PROJECT_DIR, PROJECT_DIR + "/"]),
)


@given(of=turns)
def test_whatever_happened_in_a_turn_it_is_distilled_the_same_each_time(of: Turn) -> None:
    before = repr(of)
    distillate = local_distil(of)
    check(distillate, of)
    assert local_distil(of) == distillate
    assert repr(of) == before


@given(of=turns)
def test_whatever_happened_in_a_turn_a_model_can_be_told_of_it(of: Turn) -> None:
    distillate = local_distil(of)
    text = build_request(of, distillate, continues=False).text
    text.encode("utf-8", "surrogatepass")
    assert text.count("</record>") == 2


def test_a_huge_turn_is_distilled_to_something_small(observer: Observing) -> None:
    long = "x" * 200_000
    of, distillate = observer.distil(
        prompt(long), edit(new=long, old=long), write(content=f"{long}\n" * 3), stop(long)
    )
    check(distillate, of)
    assert sum(len(text or "") for text in texts(distillate)) < 20_000


# Every model


RICH_TURN = [
    prompt(),
    tool("Bash", tool_input={"command": "make lamp"}, tool_response={"stdout": "lit"}),
    failure(),
    edit(),
    stop(
        "The cause was the timer: blink() reset it twice, because light.py starts it on every tick."
        " I changed blink() so that it starts the timer once.\n\n"
        "I also removed the second lamp from the configuration of the pier, since nobody can see it"
        " behind the new warehouse.\n\n"
        "Next steps: measure the current at night, and replace the fuse in the harbour box."
    ),
]


def revised(observed: Observed, reply: str) -> tuple[Distillate, Distillate]:
    """The memories of a turn before and after this reply."""
    observed.tell(*RICH_TURN)
    # The draft leaves it out where the observation says the same.
    completed = "UPDATE session_summaries SET completed = 'The lamp is lit' WHERE completed IS NULL"
    observed.story.store.write(lambda c: c.execute(completed)).result()
    _, draft = observed.memory()
    summary = draft.summary
    assert summary.request and summary.completed
    assert summary.next_steps and summary.notes and summary.files_edited
    observed.api.say(says(reply))
    observed.refine()
    _, distillate = observed.memory()
    assert distillate.observer == observed.kind
    return draft, distillate


def test_a_summary_is_merged_field_by_field(observed: Observed) -> None:
    draft, distillate = revised(observed, "<summary><request>r</request></summary>")
    assert distillate.summary == replace(draft.summary, request="r")
    assert distillate.observations == draft.observations


def test_each_field_that_a_summary_has_replaces_that_of_the_draft(observed: Observed) -> None:
    draft, distillate = revised(
        observed,
        "<summary><learned>l</learned><notes></notes><next_steps>n</next_steps><files_edited>"
        "<file>light.py</file></files_edited></summary>",
    )
    assert distillate.summary == replace(
        draft.summary, learned="l", next_steps="n", files_edited=("light.py",)
    )


def test_an_observation_is_merged_field_by_field(observed: Observed) -> None:
    draft, distillate = revised(
        observed,
        "<observation><subtitle>s</subtitle><facts><fact>f</fact></facts></observation>",
    )
    (before,), (after,) = draft.observations, distillate.observations
    assert before.title and before.narrative and before.concepts and before.files_modified
    assert replace(after, sources=()) == replace(before, subtitle="s", facts=("f",), sources=())
    assert set(after.sources) >= set(before.sources)
    assert distillate.summary == draft.summary


def test_each_field_that_an_observation_has_replaces_that_of_the_draft(observed: Observed) -> None:
    _, distillate = revised(
        observed,
        "<observation><type>bugfix</type><title>t</title><subtitle>s</subtitle><narrative>n"
        "</narrative><facts><fact>f</fact></facts><concepts><concept>gotcha</concept></concepts>"
        "<files_read><file>light.py</file></files_read><files_modified><file>light.py</file>"
        "</files_modified></observation>",
    )
    (after,) = distillate.observations
    assert replace(after, sources=()) == Observation(
        type="bugfix", title="t", subtitle="s", narrative="n", facts=("f",), concepts=("gotcha",),
        files_read=("light.py",), files_modified=("light.py",),
    )  # fmt: skip


def test_every_malformed_answer_is_stored_as_far_as_it_goes_or_kept_with_the_job(
    observed: Observed,
) -> None:
    """One session, a turn for each: the real client gets them all in one conversation."""
    observed.api.otherwise = malformed
    for number in range(len(MALFORMED)):
        observed.story.tell(
            prompt(f"topic-n{number} ", prompt_id=f"p{number}"),
            tool("Bash", prompt_id=f"p{number}", tool_input={"command": "cc lamp.h lamp.c"}),
            stop("Done.", prompt_id=f"p{number}"),
        )
    observed.draft()
    drafted = stored(observed)
    observed.refine()
    assert not observed.waiting()
    memories = stored(observed)
    replies = {row["turn_id"]: row for row in observed.kept()}
    assert len(memories) == len(observed.rows("SELECT 1 FROM session_summaries")) == len(MALFORMED)
    for turn_id, case in enumerate(MALFORMED, 1):
        answer = replies.pop(turn_id, None)
        if case.is_usable:
            assert not [text for text in case.survives if text not in memories[turn_id]], case.name
            assert f"'observer': '{observed.kind}'" in memories[turn_id], case.name
            assert (answer is not None) is case.says_more, case.name
        else:
            assert memories[turn_id] == drafted[turn_id], case.name
            assert answer is not None and answer["last_error"], case.name
        if answer is not None:
            assert (answer["reply"] or "").strip() == storable(case.text).strip(), case.name
    assert replies == {}


def malformed(body: Body) -> Reply:
    """What the turn of the last message is to be answered with, however often it is asked for."""
    text = str(body["messages"]).rpartition("The turn:")[2]
    number = int(re.findall(r"topic-n(\d+)", text)[0])
    return Reply(MALFORMED[number].text)


def stored(observed: Observed) -> dict[int, str]:
    """All texts of each turn."""
    memories: dict[int, str] = {}
    for table in ("observations", "session_summaries"):
        for row in observed.rows(f"SELECT * FROM {table} ORDER BY turn_id, id"):
            memories[row["turn_id"]] = memories.get(row["turn_id"], "") + str(row)
    return memories


def storable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


# The local observer


def local(of: Turn) -> Distillate:
    result = local_distil(of)
    check(result, of)
    return result


def test_a_summary_is_what_was_asked_and_what_was_said_last() -> None:
    result = local(turn(stopped("First thoughts.", 1), stopped("It blinks twice. Done.", 2)))
    assert result.summary.request == "Make the harbour light blink twice"
    assert result.summary.completed == "It blinks twice."
    assert result.summary.sources == (2,)
    assert result.title == "Make the harbour light blink twice"


def test_a_stop_without_words_takes_none_away() -> None:
    result = local(turn(stopped("It blinks twice.", 1), stopped(None, 2), stopped("", 3)))
    assert result.summary.completed == "It blinks twice."
    assert result.summary.sources == (1,)


def test_an_error_that_ended_the_turn_is_a_note() -> None:
    result = local(turn(use(1, "StopFailure", text="API Error: 400 bad")))
    assert result.summary.notes == "Ended by an error: API Error: 400 bad"
    assert result.summary.completed is None


def test_where_nobody_says_what_was_changed_the_change_itself_is_told() -> None:
    of = turn_from(
        edit(f"{PROJECT_DIR}/a.py", old="one", new="uno"),
        edit(f"{PROJECT_DIR}/b.py", old="x" * 500, new="y"),
        edit(f"{PROJECT_DIR}/a.py", old="two", new="due"),
    )
    (result,) = local(of).observations
    assert result.files_modified == ("a.py", "b.py")
    assert result.facts == ("a.py: `one` became `uno`", "a.py: `two` became `due`")
    assert result.sources == (100, 102, 101)


def test_files_give_a_title_where_words_give_none() -> None:
    (created,) = local(turn_from(write(), prompt="continue")).observations
    assert created.title == "Created notes.md"
    path = f"{PROJECT_DIR}/notes.md"
    (both,) = local(turn_from(edit(), write(path), prompt="continue")).observations
    assert both.title == "light.py: `blink(1)` became `blink(2)`"


def test_an_edit_that_failed_is_no_change() -> None:
    failed = use(1, "PostToolUseFailure", tool_name="Edit", tool_input={"file_path": "/a"})
    assert local(turn(failed)).observations == ()


@pytest.mark.parametrize(
    ("path", "project_dir", "shown"),
    [
        (f"{PROJECT_DIR}/src/light.py", PROJECT_DIR, "src/light.py"),
        (f"{PROJECT_DIR}/src/light.py", PROJECT_DIR + "/", "src/light.py"),
        (f"{PROJECT_DIR}-old/light.py", PROJECT_DIR, f"{PROJECT_DIR}-old/light.py"),
        ("/etc/hosts", PROJECT_DIR, "/etc/hosts"),
        ("light.py", PROJECT_DIR, "light.py"),
        ("/etc/hosts", "/", "/etc/hosts"),
        ("/etc/hosts", "", "/etc/hosts"),
    ],
)
def test_paths_are_shown_relative_to_the_project(path: str, project_dir: str, shown: str) -> None:
    result = local(turn_from(edit(path), project_dir=project_dir))
    assert result.observations[0].files_modified == (shown,)
    assert result.summary.files_edited == (shown,)


def test_files_that_were_read_are_named_where_none_was_edited() -> None:
    a, b = f"{PROJECT_DIR}/a.py", f"{PROJECT_DIR}/b.py"
    result = local(turn_from(read(a), read(b), read(b), edit(a)))
    assert result.summary.files_edited == ("a.py",)
    assert local(turn_from(read(a), read(b), read(b))).summary.files_read == ("a.py", "b.py")


def test_long_texts_end_at_a_word() -> None:
    result = local(turn(stopped("word " * 1000), prompt="ask " * 1000))
    assert result.summary.completed is not None and result.summary.request is not None
    assert result.summary.completed.endswith("word…") and len(result.summary.completed) <= 160
    assert result.summary.request.endswith("ask…") and len(result.summary.request) <= 300
