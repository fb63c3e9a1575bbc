"""Runs of the real client with each product as its plugin: what is stored, what a model is asked.

Each run has a prompt and three tool uses. `claude -p` ends right after the last answer; hooks that
the client does not wait for may not have finished by then.
"""

import itertools
import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path

from tests.fake_api import Body, FakeApi, Reply, running_api, tool_call
from tests.real_client import bundled_client

from bench.home import wait_for
from bench.peers.install import Installation
from bench.peers.ours import Ours, ours
from bench.peers.peer import Peer, peer
from bench.peers.samples import OURS, PEER, Sample
from claude_mem.recall.tokens import estimate_tokens

TOOLS = 3
SETTLE_SECONDS = 20
OBSERVATION = (
    "<observation><type>discovery</type><title>{title}</title><subtitle>The lamp</subtitle>"
    "<facts><fact>It blinks</fact></facts><narrative>The lamp blinks.</narrative>"
    "<concepts><concept>how-it-works</concept></concepts><files_read></files_read>"
    "<files_modified></files_modified></observation>"
)
_numbers = itertools.count(1)


def answer_as_observer(_: Body) -> Reply:
    """What the npm package's observer asks a model for."""
    return Reply(OBSERVATION.format(title=f"Lamp {next(_numbers)}"))


def measure(installation: Installation, runs: int) -> list[Sample]:
    if bundled_client() is None:
        print("  the real client has no wheel for this platform: not measured")
        return []
    samples: list[Sample] = []
    with ExitStack() as stack:
        client_api, observer_api = (stack.enter_context(running_api()) for _ in range(2))
        observer_api.otherwise = answer_as_observer
        us = stack.enter_context(ours())
        them = stack.enter_context(peer(installation, observer_api.url))
        _install(us)
        stored: dict[str, list[tuple[int, int]]] = {OURS: [], PEER: []}
        for _ in range(runs):
            stored[OURS].append(_run_ours(us, client_api))
            stored[PEER].append(_run_peer(them, client_api))
    for name, counts in stored.items():
        tools, turns = ([float(count[part]) for count in counts] for part in (0, 1))
        samples.append(Sample(f"tool uses stored, of {TOOLS}", name, "per run", _mean(tools)))
        samples.append(Sample("ends of turns stored, of 1", name, "per run", _mean(turns)))
    requests = observer_api.requests
    tokens = sum(estimate_tokens(json.dumps(body["messages"])) for body in requests)
    for name, count, size in ((OURS, 0, 0), (PEER, len(requests), tokens)):
        samples.append(Sample("requests to a model", name, "per run", (count / runs,)))
        samples.append(Sample("tokens sent to a model", name, "per run", (size / runs,)))
    samples.append(Sample("runs", OURS, "per run", (float(runs),)))
    return samples


def _mean(values: list[float]) -> tuple[float, ...]:
    """The mean is the figure: a median hides what is lost in less than half of the runs."""
    return (sum(values) / len(values),)


def _install(us: Ours) -> None:
    command = [str(Path(sys.executable).with_name("claude-mem")), "install", "--yes"]
    subprocess.run(command, env=_environment(us.environment, us.path), check=True,
                   stdout=subprocess.DEVNULL)  # fmt: skip


def _environment(environment: dict[str, str], home: Path, api: str = "") -> dict[str, str]:
    return {
        **environment,
        "HOME": str(home),
        "ANTHROPIC_API_KEY": "none",
        "ANTHROPIC_BASE_URL": api,
        "CLAUDE_CODE_PATH": str(bundled_client()),
        "IS_SANDBOX": "1",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_ERROR_REPORTING": "1",
        "DISABLE_AUTOUPDATER": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_MAX_RETRIES": "0",
    }


def _ask(product: Ours | Peer, api: FakeApi, *arguments: str) -> None:
    number = next(_numbers)
    uses = [tool_call("Bash", command=f"echo {number} {step}") for step in range(TOOLS)]
    api.forget()
    api.say(*uses, Reply("Done."))
    environment = _environment(product.environment, product.path, api.url)
    environment.pop("CLAUDE_PLUGIN_ROOT", None)
    done = subprocess.run(
        [str(bundled_client()), "-p", f"Light lamp {number}", "--output-format", "json",
         "--permission-mode", "bypassPermissions", *arguments],
        cwd=product.project_dir, env=environment, capture_output=True, text=True,
        stdin=subprocess.DEVNULL, timeout=180, check=False,
    )  # fmt: skip
    if '"Done."' not in done.stdout:
        raise RuntimeError(done.stdout + done.stderr)


def _run_ours(us: Ours, api: FakeApi) -> tuple[int, int]:
    def count() -> tuple[int, int]:
        query = "SELECT count(*) FROM tool_events WHERE event = ?"
        return _count(us.database, query, "PostToolUse"), _count(us.database, query, "Stop")

    before = count() if us.database.exists() else (0, 0)
    _ask(us, api)
    return _settled(count, before, us.is_settled)


def _run_peer(them: Peer, api: FakeApi) -> tuple[int, int]:
    def count() -> tuple[int, int]:
        return (_count(them.database, "SELECT count(*) FROM tool_uses"),
                _count(them.database, "SELECT count(*) FROM session_summaries"))  # fmt: skip

    before = count() if them.database.exists() else (0, 0)
    _ask(them, api, "--plugin-dir", str(them.installation.plugin))
    return _settled(count, before, them.is_settled)


def _settled(
    count: Callable[[], tuple[int, int]], before: tuple[int, int], is_settled: Callable[[], bool]
) -> tuple[int, int]:
    """What has been added when everything is there, or nothing is being worked on any more."""

    def added() -> tuple[int, int]:
        now = count()
        return now[0] - before[0], now[1] - before[1]

    try:
        wait_for(lambda: added() == (TOOLS, 1) or None, "all events", SETTLE_SECONDS)
    except TimeoutError:
        wait_for(is_settled, "the end of its work")
    return added()


def _count(database: Path, query: str, *values: str) -> int:
    with closing(sqlite3.connect(database)) as connection:
        return int(connection.execute(query, values).fetchone()[0])
