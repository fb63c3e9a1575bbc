"""The time that all hooks add to a trivial run of the real client, in interpreter starts.

Runs `claude -p` in turns; an API on loopback answers at once. Hooks are compared with the same
installation without them: loading a plugin and starting an MCP server costs the client something
whatever they contain, and that is measured separately.
"""

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

from tests.conftest import Home
from tests.fake_api import FakeApi, Reply, running_api, tool_call
from tests.real_client import Client, bundled_client

from bench.home import spawn, temporary_home
from bench.measure import Figure, in_turns, median, run, seconds_of, table

ROUNDS = 20
BASELINE, BARE = "python -I -S -c pass", "claude -p"
EMPTY_PLUGIN = "claude -p, the plugin without hooks and server"
SERVER = "claude -p, the plugin without hooks"
HOOKS = "claude -p, the plugin without server"
PLUGIN = "claude -p, the plugin"
SERVER_IN_SETTINGS = "claude -p, --scope user without hooks"
SETTINGS = "claude -p, --scope user"
WITH_HOOKS = (HOOKS, PLUGIN, SETTINGS)
TARGET = 2.5
FIRED = ("SessionStart", "UserPromptSubmit", "PostToolUse", "Stop", "SessionEnd")


def measure() -> list[Figure]:
    if bundled_client() is None:
        print("  the real client has no wheel for this platform: not measured")
        return []
    with _cases() as cases:
        timings = in_turns(cases, ROUNDS)
    table(
        ("command", "median ms"),
        [(name, f"{median(seconds) * 1000:.1f}") for name, seconds in timings.items()],
    )
    print(f"  {ROUNDS} rounds; {len(FIRED)} hooks fire in each run with hooks")
    hooks, once = "added per hook, in interpreter starts:", "added to a run, in interpreter starts:"
    return [
        Figure(f"{hooks} the plugin", _added(timings, PLUGIN, SERVER) / len(FIRED), target=TARGET),
        Figure(
            f"{hooks} the plugin without server",
            _added(timings, HOOKS, EMPTY_PLUGIN) / len(FIRED),
            target=TARGET,
        ),
        Figure(
            f"{hooks} settings.json",
            _added(timings, SETTINGS, SERVER_IN_SETTINGS) / len(FIRED),
            target=TARGET,
        ),
        Figure(f"{once} its MCP server", _added(timings, SERVER, EMPTY_PLUGIN)),
        Figure(f"{once} a plugin as such", _added(timings, EMPTY_PLUGIN, BARE)),
    ]


def _added(timings: dict[str, list[float]], name: str, to: str) -> float:
    added = [w - b for w, b in zip(timings[name], timings[to], strict=True)]
    return median(added) / median(timings[BASELINE])


@contextmanager
def _cases() -> Iterator[dict[str, Callable[[], float]]]:
    with ExitStack() as stack:
        api = stack.enter_context(running_api())
        clients = {
            BARE: _client(stack, api),
            EMPTY_PLUGIN: _client(stack, api, "install", "--yes"),
            SERVER: _client(stack, api, "install", "--yes"),
            HOOKS: _client(stack, api, "install", "--yes"),
            PLUGIN: _client(stack, api, "install", "--yes"),
            SERVER_IN_SETTINGS: _client(stack, api, "install", "--yes", "--scope", "user"),
            SETTINGS: _client(stack, api, "install", "--yes", "--scope", "user"),
        }
        _empty(clients[EMPTY_PLUGIN], "hooks.json", "hooks")
        _empty(clients[EMPTY_PLUGIN], ".mcp.json", "mcpServers")
        _empty(clients[SERVER], "hooks.json", "hooks")
        _empty(clients[HOOKS], ".mcp.json", "mcpServers")
        _empty(clients[SERVER_IN_SETTINGS], "settings.json", "hooks")
        yield {
            BASELINE: lambda: (
                spawn([sys.executable, "-I", "-S", "-c", "pass"], b"", dict(os.environ)).seconds
            ),
            **{name: partial(_run, client) for name, client in clients.items()},
        }
        for name in WITH_HOOKS:
            _require_all(clients[name])


def _client(stack: ExitStack, api: FakeApi, *installing: str) -> Client:
    temporary = stack.enter_context(temporary_home())
    client = Client.in_new_project(Home(temporary.path), api, "project")
    if installing:
        done = client.claude_mem(*installing)
        if done.returncode:
            raise RuntimeError(done.stderr)
    return client


def _empty(client: Client, name: str, key: str) -> None:
    """Empties this key in every file of that name."""
    paths = list(client.home.path.rglob(name))
    assert paths, name
    for path in paths:
        path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | {key: {}}))


def _run(client: Client) -> float:
    client.api.say(tool_call("Bash", command="true"), Reply("Done."))

    def ask() -> None:
        done = client.ask("go", "--output-format", "json")
        assert json.loads(done.stdout)["result"] == "Done.", done.stdout

    return seconds_of(ask)


def _require_all(client: Client) -> None:
    """The figure is valid only if every hook fired and was stored."""
    client.home.wait_settled()
    rows = client.home.rows("SELECT event, count(*) AS n FROM tool_events GROUP BY event")
    counted = {row["event"]: row["n"] for row in rows if row["event"] in FIRED}
    if set(counted.values()) != {ROUNDS + 2} or set(counted) != set(FIRED):
        raise RuntimeError(f"not every hook fired: {counted}")


if __name__ == "__main__":
    sys.exit(run({"client": measure}))
