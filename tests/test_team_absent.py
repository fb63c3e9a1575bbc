"""What a team costs those who joined none: no module, no connection."""

import os
import signal
import subprocess
import sys

from claude_mem.server import client
from tests.conftest import Home, wait_until
from tests.payloads import session_start

_WORKER = """
import atexit, pathlib, sys
atexit.register(lambda: pathlib.Path(sys.argv[1]).write_text("\\n".join(sys.modules)))
from claude_mem.daemon import main
sys.exit(main([]))
"""


def test_a_worker_without_a_team_imports_nothing_of_it(home: Home) -> None:
    listing = home.path / "modules"
    with subprocess.Popen([sys.executable, "-c", _WORKER, str(listing)], env=home.env()) as worker:
        wait_until(lambda: client.running_worker(home.layout), "the worker's start")
        assert home.hook(session_start()).returncode == 0
        client.ask_worker(home.layout, "/api/search?query=light")
        os.kill(worker.pid, signal.SIGTERM)
        assert worker.wait(30) == 0
    modules = listing.read_text().split("\n")
    assert {"claude_mem.worker.worker", "claude_mem.recall.search"}.issubset(modules)
    packages = ("claude_mem.team", "claude_mem.worker.recall_with_team", "psycopg", "psycopg_pool",
                "pgvector", "httpx")  # fmt: skip
    assert [name for name in modules if name.startswith(packages)] == []
