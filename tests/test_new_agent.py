"""A client that nobody has heard of: one module makes it an agent in every respect."""

import json
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from claude_mem import agents
from claude_mem.agents.agent import Agent
from claude_mem.agents.table import table
from claude_mem.cli.imports import all_transcripts
from claude_mem.hook import spooling
from claude_mem.install import other_agents
from claude_mem.install.launcher import write_launcher
from claude_mem.install.other_agents import Attachment
from claude_mem.intake.transcripts.import_options import ImportOptions
from claude_mem.intake.transcripts.importer import import_transcripts
from claude_mem.store.clock import now_ms
from claude_mem.worker.lock import WorkerLock
from tests.api import SESSION_START, Api, open_api
from tests.payloads import PROJECT_DIR

MODULE = '''
"""Lantern: one kind of event with everything in it, and transcripts of such events."""

from claude_mem.agents.agent import Agent, ConfigFile, Transcripts
from claude_mem.agents.attaching import command_hooks, events, mcp_server
from claude_mem.agents.reading.conversation import Conversation
from claude_mem.agents.reading.tools import ToolCall, event, tool_events
from claude_mem.hook.other_agents import Output


def normalise(kind, payload):
    common = {"session_id": payload.text("lamp"), "cwd": payload.text("place")}
    if kind == "PostToolUse":
        return tool_events(common, _call(payload))
    words = payload.text("words")
    names = {"UserPromptSubmit": "prompt", "Stop": "last_assistant_message"}
    return event(kind, common, **({names[kind]: words} if kind in names else {}))


def _call(payload):
    return ToolCall("sh", {"command": payload["ran"]}, "", payload["id"], error=payload["error"])


def read_transcript(lines, path):
    chat = Conversation(lines[0].text("lamp"), lines[0].text("place"), path, 1_763_100_000_000)
    for number, line in enumerate(lines):
        if "asked" in line:
            chat.prompt(f"p{number}", line["asked"], None, line)
        elif "said" in line:
            chat.say(line["said"], None, f"s{number}")
    return chat.end()


AGENT = Agent(
    name="lantern",
    title="Lantern",
    programs=("lantern",),
    home=".lantern",
    events=events("lit=SessionStart asked=UserPromptSubmit ran=PostToolUse done=Stop"),
    context=("SessionStart",),
    normalise=normalise,
    output=Output((b'"memory":', b"")),
    hooks=ConfigFile("lantern.json", ".lantern.json"),
    hooks_of=command_hooks(),
    mcp=ConfigFile("lantern.json", ".lantern.json"),
    server_of=mcp_server,
    transcripts=Transcripts("past/*.jsonl", lambda line: "lamp" in line, read_transcript),
    tested="sample payloads",
    shell=("LANTERN",),
)
'''
OPTIONS = ImportOptions(own_root="/nowhere", home="", keep_raw_since=0)


@pytest.fixture
def lantern(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Agent]:
    """An agent whose module counts as one of the folder of the agents."""
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "lantern.py").write_text(MODULE)
    monkeypatch.setattr(agents, "__path__", [*agents.__path__, str(tmp_path / "agents")])
    _forget_agents()
    agent = agents.find_agent("lantern")
    assert agent is not None
    yield agent
    monkeypatch.undo()
    sys.modules.pop("claude_mem.agents.lantern")
    _forget_agents()


def _forget_agents() -> None:
    for function in (agents._modules, agents.find_agent, agents.all_agents):
        function.cache_clear()


@pytest.fixture
def api(tmp_path: Path, lantern: Agent) -> Iterator[Api]:
    with open_api(tmp_path / "data") as opened:
        write_launcher(opened.layout)
        lock = WorkerLock.acquire(opened.layout)  # a hook starts no worker
        assert lock is not None
        yield opened
        lock.release()


@pytest.fixture
def attached(api: Api, lantern: Agent, tmp_path: Path) -> Attachment:
    attachment = Attachment(lantern, "user", api.layout, {"HOME": str(tmp_path)}, tmp_path / "p")
    attachment.install()
    return attachment


def run_hooks(attached: Attachment, *payloads: tuple[str, dict[str, Any]]) -> None:
    """Runs the command lines that the installation wrote, as the client does."""
    entries = json.loads(attached.files[0].path.read_text())["hooks"]
    for name, payload in payloads:
        (command,) = entries[name][0]["hooks"]
        done = subprocess.run(
            shlex.split(command["command"]),
            input=json.dumps({"lamp": "night", "place": PROJECT_DIR, **payload}).encode(),
            env={"PATH": "/usr/bin:/bin", **attached.environ},
            capture_output=True,
            timeout=60,
        )
        assert (done.returncode, done.stdout) == (0, b"{}\n")


SESSION: list[tuple[str, dict[str, Any]]] = [
    ("lit", {}),
    ("asked", {"words": "Make the lamp blink"}),
    ("ran", {"ran": "make lamp", "id": "1", "error": "no rule to make lamp"}),
    ("done", {"words": "The lamp needed a new fuse."}),
]


def test_what_its_hooks_report_is_remembered(api: Api, attached: Attachment) -> None:
    run_hooks(attached, *SESSION)
    api.clock.ms = now_ms() + 60_000  # after the times of the hooks
    api.catch_up()
    assert [tuple(row.values()) for row in api.rows("SELECT dialect FROM sdk_sessions")] == [
        ("lantern",)
    ]
    events = api.rows("SELECT event, tool_name FROM tool_events ORDER BY id")
    assert [(row["event"], row["tool_name"]) for row in events] == [
        ("SessionStart", None),
        ("UserPromptSubmit", None),
        ("PostToolUseFailure", "sh"),
        ("Stop", None),
    ]
    (turn,) = api.rows("SELECT prompt_text FROM user_prompts")
    assert turn["prompt_text"] == "Make the lamp blink"
    (summary,) = api.rows("SELECT * FROM session_summaries")
    assert "The lamp needed a new fuse" in json.dumps(dict(summary))


def test_its_next_session_gets_the_memories_in_its_own_format(api: Api) -> None:
    api.add_turn("other", "Make the lamp blink", "The lamp needed a new fuse.")
    header = spooling.header(b"lantern", b"SessionStart", 1, PROJECT_DIR.encode())
    payload = json.dumps({"lamp": "dawn", "place": PROJECT_DIR}).encode()
    answer = api.send(SESSION_START, header + payload).json()
    assert set(answer) == {"memory"} and "The lamp needed a new fuse" in answer["memory"]


def test_its_past_sessions_are_found_and_imported(
    api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / ".lantern" / "past" / "night.jsonl"
    path.parent.mkdir(parents=True)
    lines = [
        {"lamp": "night", "place": PROJECT_DIR},
        {"asked": "Make the lamp blink"},
        {"said": "The lamp needed a new fuse."},
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    monkeypatch.setenv("HOME", str(tmp_path))
    files = all_transcripts(("lantern",))
    assert files == [path]
    report = import_transcripts(api.worker.store, files, OPTIONS)
    assert (report.all.turns, report.troubles) == (1, [])
    (session,) = api.rows("SELECT dialect FROM sdk_sessions")
    assert session["dialect"] == "lantern"


def test_it_is_attached_and_detached(attached: Attachment, lantern: Agent) -> None:
    path = attached.files[0].path
    content = json.loads(path.read_text())
    assert set(content["hooks"]) == {event.name for event in lantern.events}
    assert set(content["mcpServers"]) == {"claude-mem"}
    assert attached.missing() == [] and attached.changes() == []
    path.write_text(json.dumps({**content, "theme": "dark"}))
    other_agents.detach_agent(lantern, attached.layout, attached.environ)
    assert json.loads(path.read_text()) == {"theme": "dark"}
    assert lantern not in other_agents.present_agents({"HOME": "/nowhere"})
    assert lantern in other_agents.present_agents(attached.environ)


def test_it_is_listed_and_its_shell_is_that_of_an_agent(lantern: Agent) -> None:
    assert "| Lantern | `lantern` | 4 events, `~/.lantern/lantern.json` |" in table()
    assert agents.is_agent({"LANTERN": "1"})


def test_a_name_that_is_no_agent_is_none(lantern: Agent) -> None:
    for name in ("", "agent", "attaching", "reading", "reading.tools", "../agents", "unknown"):
        assert agents.find_agent(name) is None
