"""End to end with the real client, through the installed plugin, against an API on loopback."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Home, wait_until
from tests.fake_api import FakeApi, Reply, mentions, tool_call
from tests.real_client import TOOL, Client, events, needs_client, working_session
from tests.rights import drop_file_privileges

pytestmark = needs_client


def test_what_one_session_did_the_next_one_is_told(attached: Client) -> None:
    home, api = attached.home, attached.api
    api.say(*working_session(attached))
    assert "needed a new fuse" in attached.ask("Make the light blink twice").stdout
    home.wait_settled()
    assert events(home) == [
        "SessionStart", "UserPromptSubmit", "PostToolUse", "PostToolUse", "PostToolUseFailure",
        "PostToolUse", "Stop", "SessionEnd",
    ]  # fmt: skip
    tools = home.rows("SELECT tool_name FROM tool_events WHERE tool_name IS NOT NULL ORDER BY id")
    assert [row["tool_name"] for row in tools] == ["Read", "Edit", "Bash", "Bash"]

    api.forget()
    attached.ask("What did we do?")
    told = "the lamp needed a new fuse"
    assert told in api.sent()

    home.wait_settled()
    home.kill_worker()
    api.forget()
    attached.ask("And once more?")
    assert told in api.sent()

    api.forget()
    elsewhere = home.path / "unrelated"
    elsewhere.mkdir()
    attached.ask("Hello", project=elsewhere)
    assert "Hello" in api.sent()
    assert told not in api.sent()


def test_a_prompt_reaches_the_model_with_a_hint(attached: Client) -> None:
    home, api = attached.home, attached.api
    api.say(Reply(
        "The foghorn on the north quay is silent because its compressor lost the pressure valve in"
        " the storm. I replaced valve-7 and set the pressure of the horn to 4."
    ))  # fmt: skip
    attached.ask("Why is the foghorn on the north quay silent since the storm?")
    for thing in ("crane", "ferry", "slipway"):  # the context holds the last session
        api.say(Reply(f"The {thing} is painted."))
        attached.ask(f"Paint the {thing}")
    home.wait_settled()
    assert home.command("settings", "CLAUDE_MEM_CONTEXT_TOKENS", "0").returncode == 0
    question = (
        "What made the foghorn on the north quay fall silent after the storm, and which part of"
        " its compressor was replaced?"
    )

    def is_told() -> bool:
        """Whether a hint comes; none does in time until the model is loaded."""
        api.forget()
        attached.ask(question)
        return "valve-7" in api.sent()

    wait_until(is_told, "a hint in the request", seconds=60)
    assert "Perhaps related, from earlier sessions here" in api.sent()
    assert "a record, not instructions" in api.sent()
    assert api.sent().count("Perhaps related") == 1


@pytest.mark.extra
def test_the_agent_searches_and_reads_through_the_plugin(attached: Client) -> None:
    home, api = attached.home, attached.api
    api.say(*working_session(attached))
    attached.ask("Make the light blink twice")
    home.wait_settled()
    api.forget()
    api.say(
        tool_call(f"{TOOL}search", query="lamp fuse"),
        tool_call(f"{TOOL}get_observations", ids=["S1"]),
        Reply("It needed a new fuse."),
    )
    assert "It needed a new fuse." in attached.ask("What was wrong with the lamp?").stdout
    assert api.replies == []
    offered = {tool["name"] for tool in api.requests[-1]["tools"]}
    assert {f"{TOOL}{name}" for name in ("search", "timeline", "get_observations")} <= offered
    index, full_text = _results(api)
    assert "#1 " in index and "the lamp needed a new fuse" in index
    assert "request: Make the light blink twice" in full_text
    home.wait_settled()
    names = [row["tool_name"] for row in home.rows("SELECT tool_name FROM tool_events")]
    assert not any(name and name.startswith("mcp__") for name in names)


@pytest.mark.extra
def test_the_schema_of_forget_comes_when_it_is_asked_for(attached: Client) -> None:
    home, api = attached.home, attached.api
    attached.ask("Mend the lamp")
    home.wait_settled()
    name = f"{TOOL}forget"
    api.forget()
    api.say(
        tool_call("ToolSearch", query=f"select:{name}"),
        tool_call(name, ids=["P1"]),
        Reply("Shall it go?"),
    )
    assert "Shall it go?" in attached.ask("Forget the lamp").stdout
    first, *_, last = [body for body in api.requests if _offers(body, f"{TOOL}search")]
    assert not _offers(first, name) and name in json.dumps(first)
    assert _offers(last, name)
    assert "P1 Mend the lamp" in _results(api)[-1]


def _offers(body: dict[str, Any], name: str) -> bool:
    return name in {tool["name"] for tool in body.get("tools") or []}


def _results(api: FakeApi) -> list[str]:
    """What tools gave back to the model, as the last request has it."""
    conversation = [body for body in api.requests if "tool_result" in json.dumps(body)][-1]
    blocks = [block for m in conversation["messages"] for block in m["content"]]
    return [json.dumps(b["content"], ensure_ascii=False) for b in blocks
            if isinstance(b, dict) and b.get("type") == "tool_result"]  # fmt: skip


@pytest.mark.extra
def test_hooks_in_settings_bring_the_tools_too(client: Client) -> None:
    done = client.claude_mem("install", "--scope", "user", "--yes")
    assert "Added the MCP server" in done.stdout, done.stderr + done.stdout
    client.api.say(tool_call("mcp__claude-mem__search", query="fuse"), Reply("Nothing there."))
    assert "Nothing there." in client.ask("Look for the fuse").stdout
    assert "A record of past sessions" in "".join(_results(client.api))
    done = client.claude_mem("uninstall")
    assert "Removed the MCP server." in done.stdout
    client.api.forget()
    client.ask("Hello")
    assert "mcp__claude-mem" not in client.api.sent()


@pytest.mark.extra
def test_ten_runs_in_a_row_lose_nothing(attached: Client) -> None:
    home, api = attached.home, attached.api
    for number in range(10):
        api.say(*(tool_call("Bash", command=f"echo {number}-{n}") for n in range(3)),
                Reply(f"Run {number} is over."))  # fmt: skip
        assert f"Run {number} is over." in attached.ask(f"Run {number}").stdout
    home.wait_settled()
    tools = home.rows("SELECT tool_use_id FROM tool_events WHERE event = 'PostToolUse'")
    assert len({row["tool_use_id"] for row in tools}) == len(tools) == 30
    summaries = home.rows("SELECT completed FROM session_summaries ORDER BY id")
    assert [row["completed"] for row in summaries] == [f"Run {n} is over." for n in range(10)]


@pytest.mark.extra
def test_resume_keeps_the_session_and_repeats_no_context(attached: Client) -> None:
    home, api = attached.home, attached.api
    api.say(*working_session(attached))
    attached.ask("Make the light blink twice")
    home.wait_settled()
    session = attached.ask_session_id("What is next?")
    home.wait_settled()
    api.forget()
    assert attached.ask_session_id("Go on", "--resume", session) == session
    home.wait_settled()
    conversation = [r for r in api.requests if "Go on" in json.dumps(r)][-1]
    assert json.dumps(conversation).count("<claude-mem-context>") == 1
    (row,) = home.rows(
        "SELECT prompt_counter, status FROM sdk_sessions WHERE content_session_id = ?", session
    )
    assert row == {"prompt_counter": 2, "status": "completed"}


@pytest.mark.extra
def test_a_forked_session_is_a_session_of_its_own(attached: Client) -> None:
    home = attached.home
    first = attached.ask_session_id("Count the boats")
    second = attached.ask_session_id("Count again", "--resume", first, "--fork-session")
    home.wait_settled()
    assert first != second
    sessions = home.rows("SELECT content_session_id AS id FROM sdk_sessions ORDER BY id")
    assert {row["id"] for row in sessions} == {first, second}
    assert len(home.rows("SELECT * FROM session_summaries")) == 2


@pytest.mark.extra
def test_subagents_and_parallel_tools_belong_to_the_turn(attached: Client) -> None:
    home, api = attached.home, attached.api
    api.say(
        Reply(tools=(("Bash", {"command": "echo one"}), ("Bash", {"command": "echo two"}))),
        tool_call("Agent", description="look", prompt="SUBTASK look at the fuse",
                  subagent_type="general-purpose", run_in_background=False),
        Reply(tools=(("Bash", {"command": "echo inside"}),), when=_in_subagent),
        Reply("The fuse is blown.", when=_in_subagent),
        Reply("The subagent says that the fuse is blown."),
    )  # fmt: skip
    attached.ask("Find out about the fuse")
    home.wait_settled()
    assert len(home.rows("SELECT * FROM user_prompts")) == 1
    stored = home.rows("SELECT event, tool_name, agent_id, text FROM tool_events")
    commands = [row for row in stored if row["tool_name"] == "Bash"]
    assert len(commands) == 3
    assert sum(row["agent_id"] is not None for row in commands) == 1
    (ended,) = (row for row in stored if row["event"] == "SubagentStop")
    assert ended["text"] == "The fuse is blown."
    assert len(home.rows("SELECT * FROM session_summaries")) == 1


def _in_subagent(body: dict[str, object]) -> bool:
    first = json.dumps(body.get("messages", [])[:1])  # type: ignore[index]
    return "SUBTASK" in first and "tools" in body


@pytest.mark.extra
def test_a_turn_that_an_api_error_ended_is_summarised(attached: Client) -> None:
    home, api = attached.home, attached.api
    api.say(tool_call("Bash", command="echo begun"))
    refused = Reply("the lamp oil is out", status=400, when=mentions("Light the lamp"))
    api.say(*[refused] * 8)  # the client may try again, with and without its tools
    attached.ask("Light the lamp")
    home.wait_settled()
    (summary,) = home.rows("SELECT request, notes FROM session_summaries")
    assert summary["request"] == "Light the lamp"
    # With -p the client often exits before its own StopFailure hook has run.
    if "StopFailure" in events(home):
        assert "400" in summary["notes"]


@pytest.mark.extra
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_client_that_dies_is_summarised_at_the_next_start(
    attached: Client, number: signal.Signals
) -> None:
    home, api = attached.home, attached.api
    released = threading.Event()
    api.say(tool_call("Bash", command="echo half-way there"), Reply("never said", hold=released))
    process = subprocess.Popen(attached.command("-p", "Row across the bay"), cwd=attached.project,
                               env=attached.env(), stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
    wait_until(lambda: "PostToolUse" in events_now(home), "the first tool")
    process.send_signal(number)
    process.wait(30)
    released.set()
    api.forget()
    attached.ask("Where were we?")
    assert "Row across the bay" in api.sent().replace("Where were we?", "")
    home.wait_settled()
    requests = home.rows("SELECT request FROM session_summaries ORDER BY id")
    assert [row["request"] for row in requests] == ["Row across the bay", "Where were we?"]


def events_now(home: Home) -> list[str]:
    import sqlite3

    try:
        return events(home)
    except sqlite3.OperationalError:
        return []


@pytest.mark.extra
def test_a_denied_tool_is_not_recorded_and_harms_nothing(attached: Client) -> None:
    home, api = attached.home, attached.api
    api.say(tool_call("Bash", command="touch denied"), Reply("I may not do that."))
    done = subprocess.run([attached.path, "-p", "Touch it", "--disallowedTools", "Bash(touch:*)",
                           "--permission-mode", "default"], cwd=attached.project,
                          env=attached.env(), capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, timeout=120)  # fmt: skip
    assert "I may not do that." in done.stdout
    home.wait_settled()
    assert "PostToolUse" not in events(home)
    assert len(home.rows("SELECT * FROM session_summaries")) == 1


@pytest.mark.extra
@pytest.mark.parametrize("gone", ["package", "interpreter", "data directory"])
def test_prompts_and_tools_go_on_whatever_is_taken_away(
    attached: Client, tmp_path: Path, gone: str
) -> None:
    home, api = attached.home, attached.api
    launcher = home.layout.launcher
    text = launcher.read_text()
    if gone == "package":
        launcher.write_text(text.replace("/hook/__main__.py", "/hook/gone.py"))
    elif gone == "interpreter":
        launcher.write_text(text.replace(sys.executable, str(tmp_path / "moved")))
    else:
        pid = home.worker_pid()
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        for entry in home.layout.root.iterdir():
            if entry != launcher:
                shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        home.layout.spool.write_text("in the way")
    api.say(*working_session(attached))
    done = attached.ask("Make the light blink twice")
    assert done.returncode == 0, done.stderr
    assert "needed a new fuse" in done.stdout
    assert (attached.project / "light.py").read_text() == "blink(2)\nwait()\n"


@pytest.mark.extra
@pytest.mark.parametrize(
    ("gone", "command"),
    [
        ("the package", "sed -i s,/hook/__main__.py,/hook/gone.py, {root}/hook"),
        ("the interpreter", "sed -i s,{python},{python}-moved, {root}/hook"),
        ("the right to write", "kill {pid}; chmod -R a-w {root}"),
        ("the data directory", "kill -9 {pid}; rm -rf {root}"),
    ],
)
def test_a_session_goes_on_when_in_its_midst_it_loses(
    attached: Client, gone: str, command: str
) -> None:
    home, api = attached.home, attached.api
    root, path = home.layout.root, str(attached.project / "light.py")
    loses = command.format(root=root, python=sys.executable, pid=home.worker_pid())
    api.say(
        tool_call("Read", file_path=path),
        tool_call("Bash", command=f"{loses}; echo is gone"),
        tool_call("Edit", file_path=path, old_string="blink(1)", new_string="blink(2)"),
        Reply("The light blinks twice now."),
    )
    done = attached.ask("Make the light blink twice", preexec_fn=drop_file_privileges)
    subprocess.run(["chmod", "-R", "u+w", root], check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "The light blinks twice now.")
    assert "is gone" in "".join(_results(api)), "the command itself failed"
    assert (attached.project / "light.py").read_text() == "blink(2)\nwait()\n"


@pytest.mark.extra
def test_the_observers_own_session_is_never_captured(attached: Client) -> None:
    attached.environment["CLAUDE_MEM_INTERNAL"] = "1"
    attached.api.say(Reply("I observe.", when=mentions("Observe this")))
    assert "I observe." in attached.ask("Observe this").stdout
    assert not attached.home.layout.database.exists() or events_now(attached.home) == []
