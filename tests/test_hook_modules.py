"""What a hook loads: a list is the same on every machine, milliseconds are not."""

import subprocess
import sys
from pathlib import Path

import pytest

import claude_mem.hook
from tests.conftest import Home, wait_until
from tests.payloads import Payload, as_bytes, prompt, session_start, tool

CAPTURING = {
    "claude_mem",
    "claude_mem.paths",
    "claude_mem.hook",
    "claude_mem.hook.fault_injection",  # not in a wheel
    "claude_mem.hook.capture",
    "claude_mem.hook.kill_points",
    "claude_mem.hook.private_text",
    "claude_mem.hook.spooling",
}
STARTING = {"claude_mem.hook.worker_start", "fcntl"}
ASKING = {"claude_mem.hook.response", "_socket"}
REPORTING = {"claude_mem.hook.trouble"}  # what the worker would have told
HINTING = ASKING
FORBIDDEN = {"json", "re", "socket", "subprocess", "os", "pathlib", "logging", "asyncio"}

_PRINTING = """
import sys
bare = set(sys.modules)
posix = sys.modules["posix"]
leave = posix._exit
def _exit(status):
    posix.write(2, "".join(f"{name}\\n" for name in sorted(set(sys.modules) - bare)).encode())
    leave(status)
posix._exit = _exit
sys.argv = sys.argv[1:]
__file__ = sys.argv[0]
exec(compile(open(__file__).read(), __file__, "exec"))
"""


def loaded(home: Home, payload: Payload, dialect: str = "claude") -> set[str]:
    """The modules of a hook process beyond those of a bare `-I -S` interpreter, at its end."""
    script = str(Path(str(claude_mem.hook.__file__)).with_name("__main__.py"))
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", _PRINTING, script, dialect, payload["hook_event_name"]],
        input=as_bytes(payload),
        capture_output=True,
        env=home.env(CLAUDE_MEM_DATA_DIR=str(home.layout.root)),
    )
    assert done.stdout
    return set(done.stderr.decode().split())


@pytest.fixture
def running(home: Home) -> Home:
    home.start_worker()
    return home


def test_a_capturing_hook_loads_these_and_no_more(running: Home) -> None:
    assert loaded(running, tool()) == CAPTURING
    assert len(CAPTURING) <= 12


def test_a_capturing_hook_that_starts_the_worker_stays_within_the_list(home: Home) -> None:
    assert loaded(home, tool()) == CAPTURING | STARTING
    assert len(CAPTURING | STARTING) <= 12
    wait_until(home.worker_pid, "the worker's start")


def test_an_asking_hook_loads_these_and_no_more(running: Home) -> None:
    assert loaded(running, session_start()) == CAPTURING | ASKING
    assert len(CAPTURING | ASKING) <= 16


def test_an_asking_hook_without_a_worker_stays_within_the_list(home: Home) -> None:
    assert loaded(home, session_start()) == CAPTURING | ASKING | REPORTING | STARTING
    assert len(CAPTURING | ASKING | REPORTING | STARTING) <= 16
    wait_until(home.worker_pid, "the worker's start")


def test_a_hook_that_asks_for_a_hint_loads_these_and_no_more(running: Home) -> None:
    wait_until(running.layout.hints_flag.exists, "the worker's mark")
    assert loaded(running, prompt()) == CAPTURING | HINTING
    assert len(CAPTURING | HINTING) <= 12


def test_a_prompt_without_a_worker_loads_no_more_than_a_tool(home: Home) -> None:
    home.layout.create()
    home.layout.mark_hints(True)
    assert loaded(home, prompt()) == CAPTURING | STARTING
    wait_until(home.worker_pid, "the worker's start")


def test_a_prompt_without_hints_loads_no_more_than_a_tool(running: Home) -> None:
    wait_until(running.layout.hints_flag.exists, "the worker's mark")
    running.layout.mark_hints(False)
    assert loaded(running, prompt()) == CAPTURING


def test_no_list_holds_what_the_hook_must_never_load() -> None:
    assert not (CAPTURING | STARTING | ASKING | REPORTING | HINTING) & FORBIDDEN
