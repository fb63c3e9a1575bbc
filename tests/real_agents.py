"""What every real client must do; a module for each runs these tests."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest

from claude_mem.agents import all_agents
from tests import payloads
from tests.agent_clients import AgentClient, client
from tests.conftest import Home
from tests.fake_models import FakeModels, running_models
from tests.test_prompt_hook import ASKED, QUESTION, REPLY

REQUEST = "Make the light blink twice"
ANSWER = "The light blinks twice now; the lamp needed a new fuse."
MEMORY = f"- {ANSWER} #"  # a line of the context
RUNS = 10
BY_NAME = {agent.name: agent for agent in all_agents()}
INTRODUCTION = "Perhaps related, from earlier sessions here"


def past_session(home: Home, project: Path, name: str, request: str, answer: str) -> None:
    """Writes a past session of Claude Code."""
    about = {"session_id": name, "prompt_id": f"{name}-1", "cwd": str(project)}
    for payload in (
        payloads.prompt(request, **about),
        payloads.stop(answer, **about),
        payloads.session_end(**about),
    ):
        home.hook(payload, CLAUDE_PROJECT_DIR=str(project))


@pytest.fixture
def models() -> Iterator[FakeModels]:
    with running_models() as models:
        yield models


@pytest.fixture
def project(home: Home) -> Path:
    project = home.path / "lighthouse"
    project.mkdir()
    subprocess.run(["git", "init", "-q", project], check=True)
    (project / "light.py").write_text("blink(1)\nwait()\n")
    return project


class RealAgentTests:
    name: ClassVar[str]
    other: ClassVar[str]  # an agent that gets the memory of this one
    reports_end: ClassVar[bool] = True

    def attached(self, name: str, home: Home, models: FakeModels, project: Path) -> AgentClient:
        agent = client(name, home, models, project)
        agent.attach()
        return agent

    def test_what_one_session_did_the_next_one_of_any_agent_is_told(
        self, home: Home, models: FakeModels, project: Path
    ) -> None:
        agent = self.attached(self.name, home, models, project)
        models.script(*agent.working_session(), text=ANSWER)
        assert "needed a new fuse" in agent.ask(REQUEST)
        assert (project / "light.py").read_text() == "blink(2)\nwait()\n"
        home.wait_settled()
        self._check_events(home)
        self._check_words(home)

        home.kill_worker()
        for name in (self.name, self.other):
            reader = agent if name == self.name else self.attached(name, home, models, project)
            models.script(text="We made the light blink.")
            reader.ask("What did we do?")
            assert REQUEST in models.sent(), name
            assert MEMORY in models.sent(), name
            assert "get_observations" in models.sent(), name  # and the tools of our server
            home.wait_settled()
        dialects = home.rows("SELECT dialect FROM sdk_sessions ORDER BY id")
        assert [row["dialect"] for row in dialects] == [self.name, self.name, self.other]

    def _check_events(self, home: Home) -> None:
        rows = home.rows(  # by time: Copilot runs its first two hooks at once
            "SELECT event, tool_name FROM tool_events WHERE event <> 'Statement'"
            " ORDER BY created_at_epoch, id"
        )
        end = ["SessionEnd"] if self.reports_end else []
        events = [row["event"] for row in rows if row["tool_name"] != "Read"]
        assert events == [
            "SessionStart", "UserPromptSubmit", "PostToolUse", "PostToolUse", "PostToolUseFailure",
            "Stop", *end,
        ]  # fmt: skip
        tools = [row["tool_name"] for row in rows if row["tool_name"]]
        assert [tool for tool in tools if tool != "Read"] == ["Bash", "Edit", "Bash"]

    def _check_words(self, home: Home) -> None:
        """The record of the turn has the request and the answer."""
        (row,) = home.rows("SELECT parts FROM turn_records")
        texts = [part[-1] for part in json.loads(row["parts"])]
        assert texts[0] == REQUEST and ANSWER in texts

    def test_a_prompt_gets_a_hint_of_a_session_that_is_too_old_for_the_context(
        self, home: Home, models: FakeModels, project: Path
    ) -> None:
        agent = self.attached(self.name, home, models, project)
        home.start_worker()
        past_session(home, project, "foghorn", ASKED, REPLY)
        for thing in ("crane", "ferry", "slipway", "dredger", "buoy", "winch", "quay", "mast"):
            past_session(home, project, thing, f"Paint the {thing}", f"The {thing} is painted.")
        home.wait_settled()
        home.command("search", "foghorn")  # loads the model: a hook does not wait for it

        def is_hinted() -> bool:
            """A hook waits 150 ms for a hint, which may be too little on a loaded machine."""
            models.script(text="It was the valve.")
            agent.ask(QUESTION)
            return INTRODUCTION in models.sent()

        assert any(is_hinted() for _ in range(RUNS))
        hint = models.sent().partition(INTRODUCTION)[2]
        assert "replaced valve-7" in hint.lower()

    def test_a_command_that_it_runs_is_recognised(
        self, home: Home, models: FakeModels, project: Path
    ) -> None:
        agent = self.attached(self.name, home, models, project)
        models.script(agent.shell("env -0 >variables"), text="Done.")
        agent.ask("Write the variables to a file")
        lines = (project / "variables").read_text().split("\0")
        environ = dict(line.partition("=")[::2] for line in lines)
        assert any(environ.get(variable) for variable in BY_NAME[self.name].shell)

    def test_runs_in_a_row_are_all_stored(
        self, home: Home, models: FakeModels, project: Path
    ) -> None:
        agent = self.attached(self.name, home, models, project)
        for number in range(RUNS):
            models.script(agent.shell(f"echo run {number}"), text=f"Run {number} is done.")
            agent.ask(f"Do run {number}")
        home.wait_settled()
        commands = home.rows(
            "SELECT tool_input FROM tool_events WHERE tool_name = 'Bash' ORDER BY id"
        )
        assert [json.loads(row["tool_input"])["command"] for row in commands] == [
            f"echo run {number}" for number in range(RUNS)
        ]
        summaries = home.rows(
            "SELECT t.prompt_text FROM session_summaries s JOIN user_prompts t ON t.id = s.turn_id"
            " ORDER BY t.id"
        )
        expected = [f"Do run {number}" for number in range(RUNS)]
        assert [row["prompt_text"] for row in summaries] == expected
