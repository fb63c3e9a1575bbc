"""What every observer must do, whoever distils; then what the local one says."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claude_mem.observer import LocalObserver, Observer
from claude_mem.observer.local.observer import distil as local_distil
from claude_mem.observer.models.failures import UnusableReply
from claude_mem.observer.models.model import ModelObserver
from claude_mem.observer.models.prompts import turn_prompt
from claude_mem.types import Distillate, Json, Turn
from tests.fake_api import Reply, running_api
from tests.malformed import MALFORMED
from tests.payloads import PROJECT_DIR, edit, one_of_each, read, write
from tests.real_client import where_there_is_a_client
from tests.turns import TURN, check, stopped, texts, told, turn, use

# Every observer


EVERY = where_there_is_a_client(["local", "anthropic", "openai", "claude"])


@pytest.fixture(params=EVERY)
def observer(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator["Seen"]:
    """The models answer as a fake API on loopback has them: the real SDK and client are asked."""
    from tests.observed import answer, make_model

    if request.param == "local":
        yield Seen(LocalObserver, LocalObserver.name)
        return
    with running_api() as api:
        api.otherwise = lambda body: Reply(answer("Seen by a model"))
        directory = tmp_path_factory.mktemp("observer")
        yield Seen(lambda: ModelObserver(make_model(request.param, api, directory)), request.param)


class Seen:
    """An observer for the length of one event loop: a client belongs to its loop."""

    def __init__(self, make: Callable[[], Observer], name: str) -> None:
        self._make, self.name = make, name

    async def distil(self, of: Turn) -> Distillate:
        made = self._make()
        try:
            return await made.distil(of)
        finally:
            if isinstance(made, ModelObserver):
                await made.model.close()


@pytest.mark.parametrize("name", EVERY)
def test_whatever_is_answered_a_turn_is_distilled_or_the_answer_is_told(
    name: str, tmp_path: Path
) -> None:
    from tests.observed import make_model

    async def each() -> list[Distillate | UnusableReply]:
        made: Observer = LocalObserver()
        if name != "local":
            made = ModelObserver(make_model(name, api, tmp_path))
        found: list[Distillate | UnusableReply] = []
        for case in MALFORMED:
            api.otherwise = lambda body, text=case.text: Reply(text)  # type: ignore[misc]
            try:
                found.append(await made.distil(WHOLE))
            except UnusableReply as error:
                found.append(error)
        if isinstance(made, ModelObserver):
            await made.model.close()
        return found

    with running_api() as api:
        found = asyncio.run(each())
    for case, one in zip(MALFORMED, found, strict=True):
        if isinstance(one, UnusableReply):
            assert name != "local" and not case.is_usable, case.name
            assert one.reply.strip() == case.text.strip(), case.name
        else:
            assert case.is_usable or name == "local", case.name
            assert one.observer == name
            check(one, WHOLE)


def distil(observer: Observer, of: Turn) -> Distillate:
    return asyncio.run(observer.distil(of))


WHOLE = told(*one_of_each())
NOTHING = turn(prompt=None)


@pytest.mark.parametrize("of", [WHOLE, TURN, NOTHING], ids=["whole", "prompt only", "nothing"])
def test_every_turn_gets_a_summary(observer: Observer, of: Turn) -> None:
    check(distil(observer, of), of)


def test_an_observer_names_itself(observer: Observer) -> None:
    assert distil(observer, WHOLE).observer == observer.name


def test_a_turn_is_not_changed_by_being_distilled(observer: Observer) -> None:
    before = repr(WHOLE)
    distil(observer, WHOLE)
    assert repr(WHOLE) == before


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
def test_hostile_inputs_and_responses_are_distilled_without_failing(
    observer: Observer, tool_name: str | None
) -> None:
    pairs = [(given, answered) for given in HOSTILE for answered in HOSTILE]
    events = [
        use(n, tool_name=tool_name, tool_input=given, tool_response=answered)
        for n, (given, answered) in enumerate(pairs)
    ]
    of = turn(*events)
    check(distil(observer, of), of)
    one_by_one = events[:: len(HOSTILE) + 1] if observer.name == "local" else events[:1]
    for event in one_by_one:
        check(distil(observer, turn(event)), turn(event))


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
    observer = LocalObserver()
    made = distil(observer, of)
    check(made, of)
    assert distil(observer, of) == made


@given(of=turns)
def test_whatever_happened_in_a_turn_a_model_can_be_told_of_it(of: Turn) -> None:
    made = local_distil(of)
    text = turn_prompt(of, made, continues=False)
    text.encode("utf-8", "surrogatepass")
    assert text.count("</record>") == 2


def test_a_huge_turn_is_distilled_to_something_small(observer: Observer) -> None:
    long = "x" * (200_000 if observer.name == "local" else 20_000)
    of = told(edit(new=long, old=long), write(content=f"{long}\n" * 3), prompt=long)
    of = replace(of, events=(*of.events, stopped(long)))
    made = distil(observer, of)
    check(made, of)
    assert sum(len(text or "") for text in texts(made)) < 20_000


# The local observer


def local(of: Turn) -> Distillate:
    made = asyncio.run(LocalObserver().distil(of))
    check(made, of)
    return made


def test_a_summary_is_what_was_asked_and_what_was_said_last() -> None:
    made = local(turn(stopped("First thoughts.", 1), stopped("It blinks twice. Done.", 2)))
    assert made.summary.request == "Make the harbour light blink twice"
    assert made.summary.completed == "It blinks twice."
    assert made.summary.sources == (2,)
    assert made.title == "Make the harbour light blink twice"


def test_a_stop_without_words_takes_none_away() -> None:
    made = local(turn(stopped("It blinks twice.", 1), stopped(None, 2), stopped("", 3)))
    assert made.summary.completed == "It blinks twice."
    assert made.summary.sources == (1,)


def test_an_error_that_ended_the_turn_is_a_note() -> None:
    made = local(turn(use(1, "StopFailure", text="API Error: 400 bad")))
    assert made.summary.notes == "Ended by an error: API Error: 400 bad"
    assert made.summary.completed is None


def test_where_nobody_says_what_was_changed_the_change_itself_is_told() -> None:
    of = told(
        edit(f"{PROJECT_DIR}/a.py", old="one", new="uno"),
        edit(f"{PROJECT_DIR}/b.py", old="x" * 500, new="y"),
        edit(f"{PROJECT_DIR}/a.py", old="two", new="due"),
    )
    (made,) = local(of).observations
    assert made.files_modified == ("a.py", "b.py")
    assert made.facts == ("a.py: `one` became `uno`", "a.py: `two` became `due`")
    assert made.sources == (100, 102, 101)


def test_files_give_a_title_where_words_give_none() -> None:
    (created,) = local(told(write(), prompt="continue")).observations
    assert created.title == "Created notes.md"
    path = f"{PROJECT_DIR}/notes.md"
    (both,) = local(told(edit(), write(path), prompt="continue")).observations
    assert both.title == "Changed light.py and notes.md"


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
    made = local(told(edit(path), project_dir=project_dir))
    assert made.observations[0].files_modified == (shown,)
    assert made.summary.files_edited == (shown,)


def test_files_that_were_read_are_named_where_none_was_edited() -> None:
    a, b = f"{PROJECT_DIR}/a.py", f"{PROJECT_DIR}/b.py"
    made = local(told(read(a), read(b), read(b), edit(a)))
    assert made.summary.files_edited == ("a.py",)
    assert local(told(read(a), read(b), read(b))).summary.files_read == ("a.py", "b.py")


def test_long_texts_end_at_a_word() -> None:
    made = local(turn(stopped("word " * 1000), prompt="ask " * 1000))
    assert made.summary.completed is not None and made.summary.request is not None
    assert made.summary.completed.endswith("word…") and len(made.summary.completed) <= 160
    assert made.summary.request.endswith("ask…") and len(made.summary.request) <= 300
