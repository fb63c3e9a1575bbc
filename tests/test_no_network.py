"""No connection beyond this machine by our code, in any test: and proof that one would be seen.

`network_run` watches every process of the run. These tests provoke what must not happen, each in
another kind of process, at addresses that are kept for documentation and lead nowhere.
"""

import json
import os
import shlex
import shutil
import socket
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Home, wait_until
from tests.network_run import WatchedRun, current_run
from tests.network_watch import attempts, beyond, is_within
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
    beyond = [line for line in attempts if "worker.sock')" not in line]
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


# The watch over the whole run


_ATTEMPT = """
import _socket
outside = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
outside.connect_ex(({host!r}, 9))
outside.close()
"""


@pytest.fixture
def run() -> WatchedRun:
    found = current_run()
    if isinstance(found, str):
        pytest.skip(f"the network is not watched on this machine: {found}")
    return found


def expect(run: WatchedRun, host: str) -> str:
    run.provoke(f"connect {host}:9")
    return _ATTEMPT.format(host=host)


def culprit(run: WatchedRun, host: str) -> str:
    """The command line of the process that was seen at it."""
    seen = [a for a in attempts(run.record) if a.place == f"connect {host}:9"]
    assert seen, f"nobody was seen to connect to {host}"
    return seen[-1].process


def spoil(installation: Installation, module: str, attempt: str) -> None:
    path = installation.package / module
    path.write_text(attempt + path.read_text())


def test_the_watch_sees_the_tests_own_process(run: WatchedRun) -> None:
    exec(expect(run, "192.0.2.1"), {})
    assert f"pid {os.getpid()}:" in culprit(run, "192.0.2.1")


def test_the_watch_sees_a_hook_in_its_bare_interpreter(
    home: Home, tmp_path: Path, run: WatchedRun
) -> None:
    installation = Installation.make(tmp_path / "installation")
    home.layout.launcher.unlink()
    assert installation.command(home, "worker", "start").returncode == 0
    spoil(installation, "hook/capture.py", expect(run, "192.0.2.2"))
    assert home.hook(tool()).returncode == 0
    command = culprit(run, "192.0.2.2")
    assert " -I -S " in command and command.endswith("hook/__main__.py claude PostToolUse")


def test_the_watch_sees_a_worker_that_forked_away(
    home: Home, tmp_path: Path, run: WatchedRun
) -> None:
    installation = Installation.make(tmp_path / "installation")
    home.layout.launcher.unlink()
    spoil(installation, "daemon.py", expect(run, "192.0.2.3"))
    assert installation.command(home, "worker", "start").returncode == 0
    assert "-m claude_mem.daemon" in culprit(run, "192.0.2.3")
    assert f"pid {home.worker_pid()}:" in culprit(run, "192.0.2.3")


def test_the_watch_sees_a_command(home: Home, tmp_path: Path, run: WatchedRun) -> None:
    installation = Installation.make(tmp_path / "installation")
    spoil(installation, "cli/__init__.py", expect(run, "192.0.2.4"))
    assert installation.command(home, "status").returncode == 0
    assert culprit(run, "192.0.2.4").endswith("-m claude_mem status")


def test_the_watch_sees_a_question_for_a_name(run: WatchedRun) -> None:
    run.provoke("connect 127.0.0.1:53")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as resolver:
        assert resolver.connect_ex(("127.0.0.1", 53)) != 0
    assert [a for a in attempts(run.record) if a.place == "connect 127.0.0.1:53"]


@pytest.mark.extra
@pytest.mark.parametrize("workers", ["0", "1"])
def test_a_run_whose_tests_all_pass_fails_for_one_attempt(
    tmp_path: Path, run: WatchedRun, workers: str
) -> None:
    host = f"192.0.2.{100 + int(workers)}"
    attempt = expect(run, host)
    (tmp_path / "test_quiet.py").write_text(f"def test_quiet():\n    exec({attempt!r}, {{}})\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "tests.network_run", "-p", "no:cacheprovider",
         "-n", workers, "-c", os.devnull, f"--rootdir={tmp_path}", str(tmp_path)],
        cwd=Path(__file__).parent.parent, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert "1 passed" in done.stdout, done.stdout + done.stderr
    assert (done.returncode, f"connect {host}:9, by pid " in done.stdout) == (1, True)


def test_a_process_that_ended_is_within_no_program() -> None:
    with subprocess.Popen([sys.executable, "-c", "pass"]) as ended:
        pass
    assert not is_within(ended.pid, Path(sys.executable))


@pytest.mark.parametrize(
    ("started", "is_theirs"),
    [(["cat"], True), (["sh", "-c", "cat; :"], True),
     ([sys.executable, "-I", "-S", "-c", "input()"], False)],
    ids=["a program", "a shell", "a Python"],
)  # fmt: skip
def test_what_another_program_starts_is_its_own_but_a_python_is_ours(
    tmp_path: Path, run: WatchedRun, started: list[str], is_theirs: bool
) -> None:
    program = tmp_path / "client"
    shutil.copy(str(shutil.which("sh")), program)
    script = f"exec 3<&0; {shlex.join(started)} <&3 & echo $!; wait"
    with subprocess.Popen([program, "-c", script], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as theirs:  # fmt: skip
        assert theirs.stdout is not None
        below = int(theirs.stdout.readline())
        executable = Path(f"/proc/{below}/exe")
        wait_until(lambda: not executable.samefile(program), "the start of what is below")
        assert is_within(theirs.pid, program)
        assert is_within(below, program) is is_theirs
    assert not is_within(os.getpid(), program)


def address(host: str, port: int = 9) -> bytes:
    if ":" in host:
        packed = socket.inet_pton(socket.AF_INET6, host)
        return struct.pack("=H", socket.AF_INET6) + struct.pack("!HI16sI", port, 0, packed, 0)
    return struct.pack("=H", socket.AF_INET) + struct.pack("!H4s", port, socket.inet_aton(host))


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"])
@pytest.mark.parametrize("call", ["connect", "bind", "sendto"])
def test_loopback_is_this_machine(call: str, host: str) -> None:
    assert beyond(call, address(host)) is None


@pytest.mark.parametrize(
    "host", ["192.0.2.1", "10.0.0.1", "0.0.0.0", "2001:db8::1", "::", "::ffff:192.0.2.1"]
)
@pytest.mark.parametrize("call", ["connect", "bind", "sendto"])
def test_every_other_address_is_beyond_it(call: str, host: str) -> None:
    assert str(beyond(call, address(host))).startswith(f"{call} ")


def test_a_unix_socket_is_this_machine_and_an_unknown_family_is_not() -> None:
    assert beyond("connect", struct.pack("=H", socket.AF_UNIX) + b"worker.sock\0") is None
    assert beyond("connect", struct.pack("=H", 40) + bytes(14)) == (
        "connect to an address of family 40"
    )
