"""Private text in a transcript is removed before anything is read from it."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from claude_mem.hook.private_text import NAMES, strip_and_tell
from claude_mem.intake.transcripts import transcript
from tests.transcripts import SESSION, Chat, image, read_events, read_prompts, read_sessions, text

HIDDEN = "the cook's birthday"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / f"{SESSION}.jsonl"


@pytest.mark.parametrize(
    "wrapped",
    [
        f"<private>{HIDDEN}</private>",
        f"<PRIVATE class='x'>{HIDDEN}</Private >",
        f"<private>{HIDDEN}",
        f"<private><private>a</private>{HIDDEN}</private>",
        f"<system-reminder>{HIDDEN}</system-reminder>",
        f"<claude-mem-context>{HIDDEN}</claude-mem-context>",
        f"<persisted-output>{HIDDEN}</persisted-output>",
    ],
)
def test_private_text_is_gone_wherever_it_stands(file: Path, wrapped: str) -> None:
    chat = Chat().prompt(f"Go {wrapped}").agent(f"Yes. {wrapped}")
    chat.bash(f"echo '{wrapped}'", wrapped, stderr=wrapped).failing("x", f"no lamp {wrapped}")
    chat.tool("Grep", {"deep": [{"in": [wrapped]}]}, [text(wrapped)], content=[text(wrapped)])
    chat.edit(f"/home/{wrapped}.py", wrapped, f"x {wrapped}").command("review", wrapped)
    chat.agent("Reviewed.")
    for data in (chat.data(), chat.data().replace(b"\n", b""), chat.data()[:-30]):
        assert HIDDEN not in repr(read_events(file, data))


@pytest.mark.parametrize(
    "spelled",
    [rb"\u003cprivate\u003e", rb"\u003Cprivate>", rb"<\u0070rivate>", rb"\\u003cprivate>",
     rb"<private\n>", rb"<PRIV\u0041TE>", b"&lt;private&gt;", "＜private＞".encode(),
     rb"\uff1cprivate\uFF1E", "<pri\u200bvate>".encode(), rb"<pri\u200Bvate>"],
)  # fmt: skip
def test_private_text_is_gone_however_its_tag_is_spelled(file: Path, spelled: bytes) -> None:
    data = Chat().prompt("Go TAG").agent("Done TAG").bash("x", "TAG").data()
    data = data.replace(b"TAG", spelled + HIDDEN.encode() + rb"<\/private>")
    assert HIDDEN not in repr(read_events(file, data))
    assert read_events(file, data)[-2].payload["last_assistant_message"] == "Done"


@settings(max_examples=300)
@given(
    st.lists(
        st.sampled_from([b"<", b">", b"/", b"\\", b"\\u003c", b"\\U003C", b"u00", b"private", b"x",
                         b"PRIVATE", b'"', b" ", b"\\u0070rivate", b"&lt;", b"&LT;", b"&gt;",
                         "＜".encode(), "＞".encode(), b"\\uff1c", b"\\uFF1C", b"pri", b"vate",
                         "\u200b".encode(), b"\\u200b", *NAMES]),
        max_size=14,
    ).map(b"".join)
)  # fmt: skip
def test_what_is_looked_for_before_scanning_misses_nothing_that_scanning_finds(line: bytes) -> None:
    has_escapes = b"\\u" in line or b"\\U" in line
    assert transcript._without_private(line, has_escapes) == strip_and_tell(line)


@pytest.mark.parametrize("prompt_ids", [True, False])
@pytest.mark.parametrize(
    "content",
    [f"<private>{HIDDEN}</private>", [text(f" <private>{HIDDEN}</private>\n")],
     [image(), text(f"<private>{HIDDEN}")]],
)  # fmt: skip
def test_a_prompt_that_is_private_as_a_whole_leaves_nothing_of_its_turn(
    file: Path, prompt_ids: bool, content: Any
) -> None:
    chat = Chat(prompt_ids=prompt_ids).prompt("Go").agent("Done.")
    chat.prompt(content).agent("The cake is ordered.").bash("order cake", "ordered")
    chat.failing("pay", "no money for the cake").agent("All about the cake.")
    chat.prompt("Go on").agent("Went on.")
    sessions, reader = read_sessions(file, chat.data())
    (session,) = sessions
    assert [(turn.number, turn.prompt) for turn in session.turns] == [
        (1, "Go"), (2, None), (3, "Go on"),
    ]  # fmt: skip
    assert session.turns[1].events == ()
    assert session.turns[1].distillate is None
    assert "cake" not in repr(sessions)
    assert HIDDEN not in repr(sessions)
    assert reader.text_chars == len("Go" + "Done." + "Go on" + "Went on.")


def test_a_line_of_results_alone_is_no_private_prompt(file: Path) -> None:
    chat = Chat(prompt_ids=False).prompt("Go").bash("make", "<private>x</private>").agent("Done.")
    assert read_prompts(file, chat) == ["Go"]
