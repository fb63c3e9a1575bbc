"""No private byte in any file under the data directory, ever: files read back after each step."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from claude_mem.hook.private_text import NAMES
from claude_mem.server import client
from tests.conftest import Home
from tests.payloads import edit, failure, post_compact, prompt, session_start, stop, tool, write
from tests.transcripts import Chat, recently

SECRET = "hush7hush"
TAGS = [name.decode() for name in NAMES]


@pytest.fixture(scope="module")
def shared_home(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """One worker for all examples: what an earlier one left behind would be found, too."""
    from claude_mem.install.launcher import write_launcher

    made = Home(tmp_path_factory.mktemp("privacy"))
    made.layout.create()
    write_launcher(made.layout)
    made.start_worker()
    yield made
    client.stop(made.layout)


def assert_nothing_private(home: Home, step: str) -> None:
    for path, content in home.files().items():
        where = f"{path.relative_to(home.path)} {step}"
        assert SECRET.encode() not in content, where
        assert SECRET.encode("utf-16-le") not in content, where


_filler = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="<>"), max_size=12)


@st.composite
def _hidden(draw: st.DrawFn) -> str:
    tag = draw(st.sampled_from(TAGS))
    opening = draw(
        st.sampled_from([f"<{tag}>", f"<{tag.upper()}>", f"<{tag} a='b'>", f"<{tag}\n>"])
    )
    nested = draw(st.sampled_from(["", f"<{tag}>{SECRET}</{tag}>", f"<private>{SECRET}"]))
    closing = draw(st.sampled_from([f"</{tag}></private>", f"</{tag.upper()}></private>", ""]))
    return draw(_filler) + opening + SECRET + nested + draw(_filler) + closing


@st.composite
def _spelled(draw: st.DrawFn, payload: dict[str, Any]) -> bytes:
    """The payload as JSON, with some of its characters written as escapes."""
    text = json.dumps(payload, ensure_ascii=draw(st.booleans()))
    for character in draw(st.sets(st.sampled_from("<>/pPrivate-_ms"), max_size=5)):
        if character in "<>/":
            text = text.replace(character, f"\\u{ord(character):04x}")
    if draw(st.booleans()):
        text = text.replace("</", "<\\/")
    if draw(st.booleans()):
        text = text.replace("rivate", "r\\u0069vate")
    return text.encode()


@st.composite
def _payloads(draw: st.DrawFn) -> tuple[str, bytes]:
    hidden = draw(_hidden())
    identity = {"session_id": "s", "prompt_id": draw(st.sampled_from(["p1", "p2", "p3"]))}
    payload = draw(
        st.sampled_from([
            prompt(f"please {hidden}", **identity),
            prompt(hidden, **identity),
            tool(tool_input={"command": hidden, "list": [hidden, {"deep": hidden}]}, **identity),
            tool(tool_response={"stdout": hidden, hidden: "as a key"}, **identity),
            tool(tool_response=json.dumps({"twice": hidden}), **identity),
            edit(f"/home/dev/harbor/{hidden}", hidden, hidden, **identity),
            write(content=hidden, **identity),
            failure(error=hidden, **identity),
            stop(hidden, **identity),
            post_compact(**identity) | {"compact_summary": hidden},
            session_start(session_id="s", note=hidden),
        ])
    )  # fmt: skip
    data = draw(_spelled(payload))
    if draw(st.integers(0, 9)) == 0:
        data = data[: draw(st.integers(0, len(data)))]  # a client that died while it wrote
    return payload["hook_event_name"], data


@settings(max_examples=150)
@given(_payloads())
def test_no_private_byte_reaches_any_file(shared_home: Home, sent: tuple[str, bytes]) -> None:
    event, data = sent
    done = shared_home.hook(data, event)
    assert done.returncode == 0
    assert SECRET.encode() not in done.stdout
    assert_nothing_private(shared_home, "after the hook")
    shared_home.wait_settled()
    assert_nothing_private(shared_home, "after the worker")


OVER_STRINGS: list[Any] = [
    ["a <private>x", SECRET, f"{SECRET}</private> after7after"],
    [{"type": "text", "text": "<private>"},
     {"type": "text", "text": f"{SECRET}</private>after7after"}],
    {"structuredPatch": [{"lines": ["+<private>", f"+{SECRET}", "+</private>after7after"]}]},
    {"stdout": ["after7after", "<private\u00a0>"], "stderr": SECRET, "more": [{SECRET: SECRET}]},
    {"deep": [[["< private>"]], {"deeper": [SECRET]}], "last": "</private>after7after"},
]  # fmt: skip


@pytest.mark.parametrize("way", ["hook", "http", "import"])
def test_a_tag_reaches_through_the_strings_after_it(home: Home, way: str) -> None:
    home.start_worker()
    if way == "hook":
        for number, value in enumerate(OVER_STRINGS):
            home.hook(tool(tool_use_id=f"toolu_{number}", tool_response=value))
    elif way == "http":
        body = {"contentSessionId": "s", "tool_name": "Read", "cwd": "/x"}
        for value in OVER_STRINGS:
            client.ask_worker(
                home.layout, "/api/sessions/observations", {**body, "tool_response": value}
            )
    else:
        chat = Chat(start=recently()).prompt("Look")
        for value in OVER_STRINGS:
            chat.tool("Read", {"file_path": "x"}, value)
        chat.agent("Done").save_in(home.path)
        done = home.command("import")
        assert done.returncode == 0, done.stderr
    home.wait_settled()
    assert_nothing_private(home, f"after the {way}")
    rows = home.rows("SELECT * FROM tool_events WHERE tool_name IS NOT NULL")
    assert len(rows) == len(OVER_STRINGS)
    assert all("after7after" in str(row) for row in rows)


def test_text_blocks_of_a_prompt_hide_what_a_tag_of_an_earlier_one_opened(home: Home) -> None:
    blocks = [
        {"type": "text", "text": f"{text}"} for text in ("See <private>", SECRET, "</private>it")
    ]
    Chat(start=recently()).prompt(blocks).agent("Seen").save_in(home.path)
    assert home.command("import").returncode == 0
    assert_nothing_private(home, "after the import")
    (row,) = home.rows("SELECT prompt_text FROM user_prompts")
    assert row["prompt_text"].split() == ["See", "it"]


def test_a_prompt_that_is_private_as_a_whole_takes_its_turn_with_it(home: Home) -> None:
    home.start_worker()
    identity = {"prompt_id": "hidden-turn"}
    for payload in (
        prompt("Look at the harbour", prompt_id="open-turn"),
        stop("I see ships.", prompt_id="open-turn"),
        prompt("<private>show me the treasure map</private>", **identity),
        tool(tool_response={"stdout": "treasure-under-the-oak"}, **identity),
        edit(new="treasure-under-the-oak", **identity),
        stop("The treasure-under-the-oak is yours.", **identity),
        prompt("And now the weather", prompt_id="third-turn"),
        stop("Sunny.", prompt_id="third-turn"),
    ):
        assert home.hook(payload).returncode == 0
    home.wait_settled()
    assert not any(b"treasure" in content for content in home.files().values())
    summaries = home.rows("SELECT prompt_number, request FROM session_summaries ORDER BY id")
    assert summaries == [
        {"prompt_number": 1, "request": "Look at the harbour"},
        {"prompt_number": 3, "request": "And now the weather"},
    ]


def test_what_the_product_gave_is_not_taken_for_what_the_user_said(home: Home) -> None:
    home.start_worker()
    for payload in (prompt("First"), write(), stop("Done first.")):
        home.hook(payload)
    home.wait_settled()
    given = home.context(session_start(session_id="second"))
    assert "notes.md" in given
    echo = prompt(f"{given}\nSecond request", session_id="second", prompt_id="p2")
    home.hook(echo)
    home.wait_settled()
    (row,) = home.rows("SELECT prompt_text FROM user_prompts WHERE prompt_id = 'p2'")
    assert row["prompt_text"].strip() == "Second request"


@pytest.mark.parametrize("where", ["prompt", "tool_input", "tool_response", "error", "stop"])
def test_secrets_do_not_outlive_the_spool_file(home: Home, where: str) -> None:
    token = "ghp_" + "Zx9Y" * 10
    text = f"export GITHUB_TOKEN={token}"
    payload = {
        "prompt": prompt(text),
        "tool_input": tool(tool_input={"command": text}),
        "tool_response": tool(tool_response={"stdout": text}),
        "error": failure(error=text),
        "stop": stop(text),
    }[where]
    home.hook(payload)
    home.wait_settled()
    assert home.rows("SELECT * FROM tool_events")
    assert not any(token.encode() in content for content in home.files().values())
    assert any(b"[redacted:github-token]" in content for content in home.files().values())


def test_environment_secrets_of_the_client_are_not_handed_to_the_worker(home: Home) -> None:
    home.starts_cold = True
    home.hook(
        tool(),
        ANTHROPIC_API_KEY="key-of-the-user",
        CLAUDE_CODE_MESSAGING_TOKEN="token-of-the-client",
        CLAUDE_MEM_LOG_LEVEL="DEBUG",
    )
    home.wait_settled()
    environment = Path(f"/proc/{home.worker_pid()}/environ").read_bytes()
    assert b"CLAUDE_MEM_LOG_LEVEL=DEBUG" in environment
    assert b"key-of-the-user" not in environment and b"token-of-the-client" not in environment
