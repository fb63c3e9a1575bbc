"""What all hooks together add to a trivial run of the real client, in interpreter starts.

Pairs of `claude -p`, with the hooks and without, in turns; an API on loopback answers at once.
"""

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from tests.conftest import Home
from tests.fake_api import Reply, running_api, tool_call
from tests.real_client import Client, bundled_client

from bench.home import spawn, temporary_home
from bench.measure import Figure, in_turns, median, run, seconds_of, table

ROUNDS = 30
BASELINE, BARE, WITH_HOOKS = "python -I -S -c pass", "claude -p", "claude -p with all hooks"
TARGET = 2.5
FIRED = ("SessionStart", "UserPromptSubmit", "PostToolUse", "Stop", "SessionEnd")


def measure() -> list[Figure]:
    if bundled_client() is None:
        print("  the real client has no wheel for this platform: not measured")
        return []
    with _cases() as cases:
        taken = in_turns(cases, ROUNDS)
    added = [w - b for w, b in zip(taken[WITH_HOOKS], taken[BARE], strict=True)]
    per_hook = median(added) / len(FIRED) / median(taken[BASELINE])
    table(
        ("command", "median ms"),
        [(name, f"{median(seconds) * 1000:.1f}") for name, seconds in taken.items()],
    )
    print(f"  {ROUNDS} pairs; {len(FIRED)} hooks fire in each run with hooks")
    return [Figure("added per hook by the client's run, in interpreter starts", per_hook,
                   target=TARGET)]  # fmt: skip


@contextmanager
def _cases() -> Iterator[dict[str, Callable[[], float]]]:
    with ExitStack() as stack:
        api = stack.enter_context(running_api())
        clients = {}
        for name in (BARE, WITH_HOOKS):
            made = stack.enter_context(temporary_home())
            clients[name] = Client.in_new_project(Home(made.path), api, "project")
        done = clients[WITH_HOOKS].claude_mem("install", "--yes")
        if done.returncode:
            raise RuntimeError(done.stderr)
        yield {
            BASELINE: lambda: (
                spawn([sys.executable, "-I", "-S", "-c", "pass"], b"", dict(os.environ)).seconds
            ),
            BARE: lambda: _run(clients[BARE]),
            WITH_HOOKS: lambda: _run(clients[WITH_HOOKS]),
        }
        _require_all(clients[WITH_HOOKS])


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
