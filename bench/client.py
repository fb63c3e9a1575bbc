"""What all hooks together add to a trivial run of the real client, in interpreter starts.

Runs of `claude -p` in turns; an API on loopback answers at once. Loading a plugin costs the client
something even when the plugin has no hook, so that is measured apart: it is the price of the way
in, not of our hooks.
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

ROUNDS = 30
BASELINE, BARE = "python -I -S -c pass", "claude -p"
EMPTY_PLUGIN = "claude -p, a plugin without hooks"
PLUGIN, SETTINGS = "claude -p, hooks by the plugin", "claude -p, hooks in settings.json"
WITH_HOOKS = (PLUGIN, SETTINGS)
TARGET = 2.5
FIRED = ("SessionStart", "UserPromptSubmit", "PostToolUse", "Stop", "SessionEnd")


def measure() -> list[Figure]:
    if bundled_client() is None:
        print("  the real client has no wheel for this platform: not measured")
        return []
    with _cases() as cases:
        taken = in_turns(cases, ROUNDS)
    table(
        ("command", "median ms"),
        [(name, f"{median(seconds) * 1000:.1f}") for name, seconds in taken.items()],
    )
    print(f"  {ROUNDS} rounds; {len(FIRED)} hooks fire in each run with hooks")
    added = "added per hook, in interpreter starts:"
    return [
        Figure(f"{added} the plugin", _per_hook(taken, PLUGIN), target=TARGET),
        Figure(f"{added} settings.json", _per_hook(taken, SETTINGS), target=TARGET),
        Figure(f"{added} a plugin without hooks", _per_hook(taken, EMPTY_PLUGIN)),
    ]


def _per_hook(taken: dict[str, list[float]], name: str) -> float:
    added = [w - b for w, b in zip(taken[name], taken[BARE], strict=True)]
    return median(added) / len(FIRED) / median(taken[BASELINE])


@contextmanager
def _cases() -> Iterator[dict[str, Callable[[], float]]]:
    with ExitStack() as stack:
        api = stack.enter_context(running_api())
        clients = {
            BARE: _client(stack, api),
            EMPTY_PLUGIN: _client(stack, api, "install", "--yes"),
            PLUGIN: _client(stack, api, "install", "--yes"),
            SETTINGS: _client(stack, api, "install", "--yes", "--scope", "user"),
        }
        for hooks in clients[EMPTY_PLUGIN].home.path.rglob("hooks.json"):
            hooks.write_text('{"hooks": {}}')
        yield {
            BASELINE: lambda: (
                spawn([sys.executable, "-I", "-S", "-c", "pass"], b"", dict(os.environ)).seconds
            ),
            **{name: partial(_run, client) for name, client in clients.items()},
        }
        for name in WITH_HOOKS:
            _require_all(clients[name])


def _client(stack: ExitStack, api: FakeApi, *installing: str) -> Client:
    made = stack.enter_context(temporary_home())
    client = Client.in_new_project(Home(made.path), api, "project")
    if installing:
        done = client.claude_mem(*installing)
        if done.returncode:
            raise RuntimeError(done.stderr)
    return client


def _run(client: Client) -> float:
    client.api.say(tool_call("Bash", command="true"), Reply("Done."))

    def ask() -> None:
        done = client.ask("go", "--output-format", "json")
        assert json.loads(done.stdout)["result"] == "Done.", done.stdout

    return seconds_of(ask)


def _require_all(client: Client) -> None:
    """The figure means nothing unless every hook fired and was stored."""
    client.home.wait_settled()
    rows = client.home.rows("SELECT event, count(*) AS n FROM tool_events GROUP BY event")
    counted = {row["event"]: row["n"] for row in rows}
    if set(counted.values()) != {ROUNDS + 2} or set(counted) != set(FIRED):
        raise RuntimeError(f"not every hook fired: {counted}")


if __name__ == "__main__":
    sys.exit(run({"client": measure}))
