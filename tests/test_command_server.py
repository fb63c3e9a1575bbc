"""A worker that a test starts as a fork is the daemon that it is on the machine of a user."""

import os
from pathlib import Path

import pytest

from tests.conftest import Home, wait_until
from tests.payloads import prompt


@pytest.mark.parametrize("starts_cold", [False, True], ids=["fork", "interpreter"])
@pytest.mark.parametrize("starter", ["hook", "command"])
def test_a_worker_is_a_daemon(home: Home, starter: str, starts_cold: bool) -> None:
    home.starts_cold = starts_cold
    if starter == "hook":
        home.hook(prompt())
    else:
        assert home.command("worker", "start").returncode == 0
    pid = wait_until(home.worker_pid, "the worker's start")
    process = Path(f"/proc/{pid}")

    def parent_group_session() -> list[str]:
        return (process / "stat").read_text().rpartition(")")[2].split()[1:4]

    wait_until(lambda: parent_group_session()[0] == "1", "the end of its starter")
    _, group, session = parent_group_session()
    assert group == session and int(session) not in (pid, os.getsid(0))
    assert (process / "cwd").readlink() == home.layout.root
    files = [(process / "fd" / str(descriptor)).readlink() for descriptor in range(4)]
    assert files == [Path(os.devnull)] * 3 + [home.layout.lock]
    is_fork = b"claude_mem.daemon" not in (process / "cmdline").read_bytes()
    assert is_fork is not starts_cold
