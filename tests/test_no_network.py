"""No connection beyond this machine by our code: every one that it attempts is written down."""

import json
from pathlib import Path

import pytest

from tests.conftest import Home, wait_until
from tests.payloads import edit, prompt, session_end, session_start, stop, tool
from tests.test_upgrade import Installation

_WATCH = """
import os, sys
def watch(event, arguments, log={log!r}):
    if event in ("socket.connect", "socket.sendto", "socket.getaddrinfo", "socket.gethostbyname"):
        place = arguments[0] if event.startswith("socket.get") else arguments[1]
        with open(log, "a") as file:
            file.write(repr((event, place)) + chr(10))
sys.addaudithook(watch)
"""


@pytest.fixture
def watched(home: Home, tmp_path: Path) -> tuple[Installation, Path]:
    """An installation whose every process (but the hooks, which have no site) tells on itself."""
    log = tmp_path / "connections"
    installation = Installation.make(tmp_path / "installation")
    (installation.site / "watch.py").write_text(_WATCH.format(log=str(log)))
    (installation.site / "watch.pth").write_text("import watch\n")
    home.layout.launcher.unlink()
    return installation, log


def test_a_whole_life_with_the_product_stays_on_this_machine(
    home: Home, watched: tuple[Installation, Path]
) -> None:
    installation, log = watched
    home.environment["CLAUDE_CODE_PATH"] = "/no/such/claude"
    home.environment["CLAUDE_MEM_WORKER_PORT"] = "37990"
    assert installation.command(home, "install", "--scope", "user", "--yes").returncode == 0
    for payload in (session_start(), prompt(), tool(), edit(), stop(), session_end()):
        assert home.hook(payload).returncode == 0
    home.wait_settled()
    for command in ("status", "sessions", "stats", "doctor", "demo", "settings", "uninstall"):
        installation.command(home, command)
    wait_until(lambda: home.worker_pid() is None, "the end of the worker")
    attempts = [line for line in log.read_text().splitlines() if line]
    assert attempts, "the watch saw nothing, not even the socket"
    beyond = [line for line in attempts if "'worker.sock'" not in line]
    assert beyond == []


def test_the_hook_knows_no_address_but_the_workers_socket() -> None:
    import claude_mem.hook

    sources = Path(str(claude_mem.hook.__file__)).parent.glob("*.py")
    text = "\n".join(source.read_text() for source in sources)
    assert "AF_UNIX" in text
    assert "AF_INET" not in text and "getaddrinfo" not in text


def test_the_settings_name_no_host(home: Home) -> None:
    rows = json.loads(home.command("settings", "--json").stdout)
    assert not [row for row in rows if "://" in row["default"]]
