"""A team of real processes: two people, three machines, from hooks to the other's context."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import pytest

from claude_mem.server import client
from tests import payloads
from tests.conftest import Home, temporary_home, wait_until
from tests.postgres import running_postgres
from tests.team import TeamServer, running_team
from tests.team_turns import add_rule, add_turns
from tests.test_guard import free_port
from tests.trust_dialog import accept_trust_dialog

pytestmark = pytest.mark.extra

PATIENT = 120.0  # seconds
ORIGIN = "git.example.com/dev/harbor"


def git_clone(directory: Path) -> Path:
    """What tells that two directories are the same project."""
    (directory / ".git").mkdir(parents=True)
    (directory / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (directory / ".git" / "config").write_text(f'[remote "origin"]\n\turl = https://{ORIGIN}.git\n')
    return directory


@dataclass
class Machine:
    """A home with a clone of the project, and the sessions that a user has in it."""

    home: Home
    clone: Path

    def run(self, *arguments: str) -> str:
        result = self.home.command(*arguments)
        assert result.returncode == 0, result.stderr
        return result.stdout

    def session(self, name: str, prompt: str, answer: str) -> None:
        at: dict[str, Any] = {
            "session_id": name, "cwd": str(self.clone), "prompt_id": f"{name}-1",
            "transcript_path": str(self.home.path / f"{name}.jsonl"),
        }  # fmt: skip
        project = {"CLAUDE_PROJECT_DIR": str(self.clone)}
        edit = payloads.edit(path=str(self.clone / "light.py"), **at)
        stop = payloads.common("Stop", last_assistant_message=answer, stop_hook_active=False, **at)
        for payload in (payloads.session_start(**{**at, "prompt_id": None}),
                        payloads.prompt(prompt, **at), edit, stop):  # fmt: skip
            assert self.home.hook(payload, **project).returncode == 0
        self.home.wait_settled()

    def context(self, name: str) -> str:
        """Returns the context of a new session."""
        at = {"session_id": name, "cwd": str(self.clone)}
        hook = self.home.hook(payloads.session_start(**at), CLAUDE_PROJECT_DIR=str(self.clone))
        answer = json.loads(hook.stdout)
        return str(answer.get("hookSpecificOutput", {}).get("additionalContext", ""))

    def wait_for_context(self, *texts: str) -> None:
        """A hook that is slow to get an answer prints what was rendered before."""
        numbers = count()

        def shown() -> bool:
            context = self.context(f"wait-{texts[0]}-{next(numbers)}")
            return all(text in context for text in texts)

        wait_until(shown, f"a context with {texts}")

    def search(self, query: str) -> list[dict[str, object]]:
        found = client.request(
            self.home.layout, self.home.env(), f"/api/search?query={query}", None
        )
        return list(found["results"])

    def mcp(self, tool: str, **arguments: object) -> str:
        """Through the shim, as an agent calls it."""
        requests = [
            {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
                "protocolVersion": "2025-06-18", "capabilities": {},
                "clientInfo": {"name": "test", "version": "1"}}},
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            {"jsonrpc": "2.0", "id": 2, "method": "tools/call",
             "params": {"name": tool, "arguments": arguments}},
        ]  # fmt: skip
        lines = "".join(json.dumps(request) + "\n" for request in requests)
        with subprocess.Popen(
            [self.home.layout.mcp_launcher],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=self.clone,
            env=self.home.env(CLAUDE_PROJECT_DIR=str(self.clone)),
        ) as shim:  # fmt: skip
            assert shim.stdin is not None and shim.stdout is not None
            shim.stdin.write(lines)
            shim.stdin.flush()
            for line in shim.stdout:
                message = json.loads(line)
                if message.get("id") == 2:
                    shim.stdin.close()
                    return str(message["result"]["content"][0]["text"])
        raise AssertionError("no answer")

    def wait_for(self, text: str, *arguments: str) -> str:
        """What the command prints; a server that is slow to answer is left alone for a while."""

        def shown() -> str:
            output = self.home.command(*arguments).stdout
            return output if text in output else ""

        return str(wait_until(shown, f"{text} in {arguments}", PATIENT))

    def wait_for_row(self, query: str) -> dict[str, object]:
        """The only result, and it comes from the team."""

        def found() -> list[dict[str, object]]:
            rows = self.search(query)
            return rows if any(row["owner"] for row in rows) else []

        (row,) = wait_until(found, f"a result of the team for {query}", PATIENT)
        return dict(row)

    def wait_for_tool(self, text: str, tool: str, **arguments: object) -> str:
        def answered() -> str:
            answer = self.mcp(tool, **arguments)
            return answer if text in answer else ""

        return str(wait_until(answered, f"{text} from {tool}", PATIENT))

    def page(self, path: str) -> str:
        """Returns a page of the viewer."""
        port = self.home.environment["CLAUDE_MEM_WORKER_PORT"]
        headers = {"authorization": f"Bearer {self.home.layout.token.read_text().strip()}"}
        response = httpx.get(f"http://127.0.0.1:{port}{path}", headers=headers, timeout=60)
        return response.text

    def sync(self) -> None:
        self.run("team", "sync")

    def turns(self) -> list[str]:
        return self.home.column("SELECT prompt_text FROM user_prompts ORDER BY id")


@dataclass
class Team:
    server: TeamServer
    alice: Machine
    laptop: Machine  # of Alice, too
    bob: Machine


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    root = tmp_path_factory.mktemp("flow")
    with ExitStack() as stack:
        postgres = stack.enter_context(running_postgres())
        server = stack.enter_context(running_team(postgres, "flow", root))
        machines = []
        for name in ("alice", "laptop", "bob"):
            (root / name).mkdir()
            home = stack.enter_context(temporary_home(root / name))
            clone = git_clone(root / name / "harbor")
            accept_trust_dialog(home.path, clone)  # or the clone gets no memory of the project
            machines.append(Machine(home, clone))
        alice, laptop, bob = machines
        bob.home.environment["CLAUDE_MEM_WORKER_PORT"] = str(free_port())  # for the viewer
        code = server.invite("Alice")
        alice.run("team", "join", server.url, "--invitation", code, "--machine", "desk")
        yield Team(server, alice, laptop, bob)


def test_two_people_with_three_machines(team: Team) -> None:
    alice, laptop, bob = team.alice, team.laptop, team.bob
    alice.session(
        "a-1",
        "Why does the harbour light flicker at dusk?",
        "The harbour light flickers because the dusk sensor shares a ground with the motor.",
    )
    alice.session("a-2", "<private>my diary</private>", "Nothing was done about the diary.")
    assert "harbor is shared" in alice.run("team", "share", "harbor")
    alice.sync()

    # A second person
    invitation = alice.run("team", "invite", "Bob", "--project", "harbor").split()[-1]
    bob.run("team", "join", team.server.url, "--invitation", invitation, "--machine", "pc")
    bob.home.start_worker()
    bob.sync()
    row = bob.wait_for_row("dusk%20sensor%20ground")
    assert row["owner"] == "Alice" and "dusk sensor" in str(row["snippet"])
    bob.wait_for_context("From the team", "Alice: ")
    found = bob.wait_for_tool("by Alice", "search", query="why does the light flicker")
    assert str(row["id"]) in found
    full = bob.wait_for_tool("by Alice", "get_observations", ids=[row["id"]])
    assert "dusk sensor shares a ground" in full, full
    bob.wait_for_tool("Alice", "timeline", anchor=row["id"])
    identity = str(row["id"])
    bob.wait_for("by Alice", "timeline", identity)
    bob.wait_for("by Alice", "timeline", "dusk", "sensor")
    bob.wait_for('"owner": "Alice"', "timeline", identity, "--json")
    bob.wait_for("owner: Alice", "show", identity)
    bob.wait_for("dusk sensor shares a ground", "show", identity)
    for path in ("/search?q=dusk+sensor", f"/timeline/{identity}", f"/memory/{identity}"):
        wait_until(lambda p=path: "by Alice" in bob.page(p), path, PATIENT)  # type: ignore[misc]
    assert "diary" not in team.server.content()

    # The second machine of the first one
    token = alice.run("team", "token", "--name", "laptop").split()[-1]
    laptop.run("team", "join", team.server.url, "--token", token, "--machine", "laptop")
    laptop.session(
        "l-1", "Replace the dusk sensor", "Replaced the dusk sensor by the isolated model DS-77."
    )
    laptop.run("team", "share", "harbor")
    laptop.sync()
    alice.sync()
    row = alice.wait_for_row("DS-77")
    assert row["owner"] == "Alice" and str(row["id"]).startswith("T")
    alice.wait_for_context("DS-77")
    bob.sync()
    rows = wait_until(lambda: bob.search("dusk%20sensor"), "results of the team", PATIENT)
    assert {row["owner"] for row in rows} == {"Alice"}

    # A timeline around a memory of the team has those of this machine, too
    around = alice.wait_for("by Alice", "timeline", str(row["id"]))
    assert "P1 " in around and "light flicker at dusk" in around

    # A turn that both sides have is shown once
    assert len(alice.search("flicker")) == 1

    # Forgetting travels
    alice.run("forget", "--query", "flicker", "--yes")
    alice.sync()
    assert [r for r in bob.search("flicker") if "flicker" in str(r["title"])] == []
    assert "flickers because" not in team.server.content()


def test_a_rule_of_one_person_is_shown_to_the_other_as_theirs(team: Team) -> None:
    alice, laptop, bob = team.alice, team.laptop, team.bob
    rule = "Never commit generated charts to this repository."
    alice.session("a-30", f"{rule} Now list the charts.", "Listed the charts of the harbour.")
    (fact,) = alice.home.column("SELECT id FROM facts WHERE kind = 'rule' AND status = 'holds'")
    alice.sync()
    bob.sync()
    bob.wait_for_context("Rule of Alice", "Never commit generated charts")
    assert bob.home.column("SELECT value FROM facts WHERE kind = 'rule'") == []
    output = bob.home.command("facts", "--project", "harbor", "--kind", "rule").stdout
    assert "No facts." in output and "rule of Alice" in output and "The user" not in output
    bob.wait_for_tool("rule of Alice", "facts", kind="rule")
    laptop.sync()
    laptop.wait_for_context("Rule of the user, on another machine")

    # It ends for all when it is marked as wrong, and holds again after that is undone
    alice.run("wrong", f"F{fact}")
    alice.sync()
    bob.sync()
    assert "rule of Alice" not in bob.home.command("facts", "--project", "harbor").stdout
    assert "generated charts" not in str(team.server.sql("SELECT value FROM claude_mem.facts"))
    alice.run("wrong", f"F{fact}", "--undo")
    alice.sync()
    bob.sync()
    assert "rule of Alice" in bob.home.command("facts", "--project", "harbor").stdout


def test_another_project_of_a_member_is_not_visible_through_mcp(team: Team) -> None:
    alice, bob = team.alice, team.bob
    add_turns(alice.home.layout.database, "git.example.com/dev/lagoon", "lagoon-1", 3, "zephyr")
    alice.run("team", "share", "lagoon")
    alice.sync()
    alice.wait_for_tool("zephyr", "search", query="zephyr bearing", project="lagoon")
    (turn, *_) = team.server.sql(
        "SELECT t.id FROM claude_mem.turns t JOIN claude_mem.projects p ON p.id = t.project_id"
        " WHERE p.name = 'lagoon'"
    )
    crafted = f"T{turn[0]}"
    bob.sync()
    answers = [
        bob.mcp("search", query="zephyr bearing", project="*"),
        bob.mcp("search", query="zephyr"),
        bob.mcp("get_observations", ids=[crafted]),
        bob.mcp("get_observations", ids=[crafted], words="zephyr"),
        bob.mcp("timeline", anchor=crafted),
        bob.mcp("timeline", query="zephyr"),
        bob.context("b-20"),
        str(bob.search("zephyr")),
    ]
    refused = bob.home.command("show", crafted)
    assert refused.returncode == 1 and f"no memory with id {crafted}" in refused.stderr
    unknown = bob.home.command("timeline", crafted)
    assert unknown.returncode == 1
    answers += [unknown.stdout + unknown.stderr, bob.page("/search?q=zephyr")]
    for answer in answers:
        assert "lagoon" not in answer and "bearing" not in answer


def test_a_member_joins_another_project_and_is_removed_from_it(team: Team) -> None:
    alice, bob = team.alice, team.bob
    invitation = alice.run("team", "invite", "Bob", "--project", "lagoon").split()[-1]
    joined = bob.run("team", "join", team.server.url, "--invitation", invitation)
    assert "You are Bob" in joined and "lagoon" in joined and "harbor" in joined
    assert "Bob  writer" in alice.run("team", "members", "lagoon")
    assert "Removed Bob" in alice.run("team", "members", "lagoon", "--remove", "Bob")
    assert "lagoon" not in bob.run("team", "status")


def test_a_push_of_everything_that_was_killed_is_completed_by_the_next(team: Team) -> None:
    alice, turns = team.alice, 400
    alice.home.start_worker()
    add_turns(alice.home.layout.database, "git.example.com/dev/dock", "dock-1", turns, "sluice")
    alice.run("team", "share", "dock", "--from-now")  # so that only the command sends them

    def stored() -> int:
        query = "SELECT count(*) FROM claude_mem.turns WHERE content LIKE '%of dock-1:%'"
        return int(team.server.sql(query)[0][0])

    assert stored() == 0
    process = subprocess.Popen(
        [sys.executable, "-m", "claude_mem", "team", "push", "--all"],
        env=alice.home.env(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    wait_until(lambda: stored() or process.poll() is not None, "the first turns", PATIENT)
    process.kill()
    process.wait()
    assert "verified" in alice.run("team", "push", "--all")
    assert stored() == turns


def test_an_export_from_the_server_gives_everything_back(team: Team, tmp_path: Path) -> None:
    alice = team.alice
    add_turns(alice.home.layout.database, "git.example.com/dev/pier", "pier-1", 4, "crane")
    rule = "Grease the crane before each shift"
    add_rule(alice.home.layout.database, "git.example.com/dev/pier", "pier-1", rule)
    alice.run("team", "share", "pier")
    assert "verified" in alice.run("team", "push", "--all")
    file = tmp_path / "team.jsonl"
    assert "Wrote" in alice.run("export", "--team", str(file))
    with temporary_home(tmp_path) as home:
        restored = home.command("import", "--own", str(file))
        assert restored.returncode == 0, restored.stderr
        assert "rejected" not in restored.stdout
        for query in (
            "SELECT prompt_text FROM user_prompts WHERE prompt_id GLOB 'pier-1-*' ORDER BY 1",
            "SELECT title FROM observations WHERE title GLOB '*crane*' ORDER BY 1",
            "SELECT completed FROM session_summaries WHERE completed GLOB '*crane*' ORDER BY 1",
        ):
            assert len(home.column(query)) == 4
            assert home.column(query) == alice.home.column(query)
        query = (
            "SELECT f.value || f.status || f.count || group_concat(t.prompt_id) FROM facts f"
            " JOIN fact_sources s ON s.fact_id = f.id JOIN user_prompts t ON t.id = s.turn_id"
            " WHERE f.value GLOB '*crane*'"
        )
        assert home.column(query) == alice.home.column(query) != []
        own = sorted(team.server.sql("SELECT count(*) FROM claude_mem.turns"))
        assert home.count("user_prompts") == int(own[0][0])


def test_nothing_local_waits_for_a_server_that_is_gone(team: Team) -> None:
    bob = team.bob
    bob.sync()
    team.server.kill()
    try:
        bob.session("b-9", "Paint the buoy red", "Painted the buoy red with two coats.")
        (row,) = bob.search("buoy")
        assert row["owner"] is None
        text = bob.mcp("search", query="buoy")
        assert "Searched this machine only" in text
        bob.wait_for_context("buoy")
    finally:
        team.server.start()


def test_a_machine_that_leaves_keeps_its_own_memory(team: Team) -> None:
    bob = team.bob
    assert "Left" in bob.run("team", "leave")
    assert bob.home.count("team_outbox") == 0
    (row,) = bob.search("buoy")
    assert row["owner"] is None
    assert bob.search("DS-77") == []
    assert "From the team" not in bob.context("b-11")
