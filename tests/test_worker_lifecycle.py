"""One worker per data directory: started by anyone, killed at any time, replaced only by newer."""

import asyncio
import json
import os
import signal
import socket
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from claude_mem.server import client
from claude_mem.worker.worker import sleep_until_set
from tests.conftest import Home, wait_until
from tests.live_files import paths_below
from tests.payloads import prompt, session_start, stop, tool


@pytest.fixture
def home(home: Home) -> Home:
    """A home whose workers start as they do on the machine of a user."""
    home.starts_cold = True
    return home


def workers_of(home: Home) -> list[int]:
    """Processes that run the daemon for this data directory, by what the kernel knows of them."""
    pids = []
    for process in Path("/proc").iterdir():
        if not process.name.isdigit():
            continue
        try:
            command = (process / "cmdline").read_bytes()
            environment = (process / "environ").read_bytes()
        except OSError:
            continue
        if b"claude_mem.daemon" in command and str(home.layout.root).encode() in environment:
            pids.append(int(process.name))
    return pids


def children_of(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def report(home: Home, *arguments: str) -> dict[str, object]:
    done = home.command("worker", *arguments, "--json")
    answer: dict[str, object] = json.loads(done.stdout)
    return answer


def test_twenty_simultaneous_starts_leave_exactly_one(home: Home) -> None:
    with ThreadPoolExecutor(20) as pool:
        started = list(pool.map(lambda _: home.command("worker", "start", "--json"), range(20)))
    assert {done.returncode for done in started} == {0}, [done.stderr for done in started]
    pids = {json.loads(done.stdout)["pid"] for done in started}
    assert len(pids) == 1
    wait_until(lambda: workers_of(home) == list(pids), "one worker alone")


def test_twenty_simultaneous_hooks_start_exactly_one(home: Home) -> None:
    with ThreadPoolExecutor(20) as pool:
        list(pool.map(lambda _: home.hook(tool()), range(20)))
    home.wait_settled()
    assert len(home.rows("SELECT * FROM tool_events")) == 20
    wait_until(lambda: len(workers_of(home)) == 1, "one worker alone")


def test_status_tells_pid_version_port_socket_and_queue(home: Home) -> None:
    assert home.command("worker", "status").returncode == 3
    assert report(home, "status") == {"running": False}
    home.start_worker()
    status = report(home, "status")
    assert status["running"] is True
    assert status["pid"] == home.worker_pid()
    assert status["version"] and status["port"] is None
    assert status["socket"] == str(home.layout.socket)
    assert status["queue"] == {"pending": 0, "processing": 0, "held": 0, "dead": 0}


def test_everything_it_makes_is_the_owners_alone(home: Home) -> None:
    home.hook(prompt())
    home.hook(stop())
    home.wait_settled()
    wait_until(lambda: list(home.layout.contexts.glob("*harbor*")), "the rendered context")
    home.command("worker", "restart")  # it keeps house when it starts: a backup is there, too
    wait_until(lambda: list(home.layout.backups.glob("memory-*.db.gz")), "the backup")
    for path in [home.layout.root, *paths_below(home.layout.root)]:
        try:
            mode = stat.S_IMODE(path.lstat().st_mode)
        except FileNotFoundError:
            continue  # a journal that was just folded into its file
        launchers = (home.layout.launcher, home.layout.mcp_launcher)
        allowed = 0o700 if path.is_dir() or path in launchers else 0o600
        assert mode == allowed, f"{path} has mode {mode:o}"


@pytest.mark.parametrize("signal_number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_and_nothing_is_lost(home: Home, signal_number: int) -> None:
    home.start_worker()
    pid = home.worker_pid()
    assert pid is not None
    payloads = [tool() for _ in range(40)]
    with ThreadPoolExecutor(8) as pool:
        sending = [pool.submit(home.hook, payload) for payload in payloads]
        os.kill(pid, signal_number)
        for future in sending:
            assert future.result().returncode == 0
    wait_until(lambda: pid not in workers_of(home), "the end of the worker")
    home.start_worker()
    home.wait_settled()
    stored = {row["tool_use_id"] for row in home.rows("SELECT tool_use_id FROM tool_events")}
    assert stored == {payload["tool_use_id"] for payload in payloads}


def test_a_worker_that_is_woken_while_it_is_stopped_ends() -> None:
    async def wake_and_stop() -> None:
        wake = asyncio.Event()
        loop = asyncio.create_task(sleep_until_set(wake, 60))
        await asyncio.sleep(0)  # it sleeps now
        wake.set()
        loop.cancel()
        with pytest.raises(asyncio.CancelledError):
            await loop

    asyncio.run(wake_and_stop())


def test_a_worker_sleeps_until_it_is_woken_or_something_is_due() -> None:
    async def sleep() -> None:
        wake = asyncio.Event()
        for seconds in (-1, 0, 0.001):
            await sleep_until_set(wake, seconds)
        wake.set()
        await sleep_until_set(wake, 60)

    asyncio.run(sleep())


def test_it_ends_while_someone_listens_to_the_stream(home: Home) -> None:
    home.start_worker()
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with closing(listener):
        listener.connect(str(home.layout.socket))
        listener.sendall(b"GET /stream HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b"200 OK" in listener.recv(4096)
        assert home.command("worker", "stop").stdout == "stopped\n"
        wait_until(lambda: workers_of(home) == [], "its end")


def test_it_outlives_the_hangup_of_its_terminal(home: Home) -> None:
    home.start_worker()
    pid = home.worker_pid()
    assert pid is not None
    os.kill(pid, signal.SIGHUP)
    home.hook(tool())
    home.wait_settled()
    assert home.worker_pid() == pid
    assert os.getsid(pid) != os.getsid(0)
    assert Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1] == "1"


def test_what_a_killed_worker_left_never_blocks_the_next(home: Home) -> None:
    home.start_worker()
    first = home.worker_pid()
    home.kill_worker()
    assert home.layout.socket.exists() and home.layout.wake.exists()
    assert home.layout.worker_state.exists() and home.layout.lock.exists()
    assert home.hook(tool()).returncode == 0
    home.wait_settled()
    assert home.worker_pid() not in (None, first)


@pytest.mark.parametrize("leftover", ["wake", "socket", "worker_state", "lock"])
def test_odd_leftovers_never_block_the_next_worker(home: Home, leftover: str) -> None:
    path: Path = getattr(home.layout, leftover)
    path.write_text('{"pid": 1, "version": "999"}')
    home.hook(tool())
    home.wait_settled()
    assert len(home.rows("SELECT * FROM tool_events")) == 1
    assert home.command("worker", "stop").returncode == 0


def test_it_has_no_child_and_leaves_none(home: Home) -> None:
    home.hook(prompt())
    home.hook(stop())
    home.wait_settled()
    pid = home.worker_pid()
    assert pid is not None
    assert children_of(pid) == []


def with_version(home: Home, version: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command as another version's installation would run it."""
    code = (
        "import sys, claude_mem; claude_mem.__version__ = sys.argv[1];"
        "sys.argv = ['claude-mem', *sys.argv[2:]];"
        "from claude_mem.cli import main; main()"
    )
    return subprocess.run([sys.executable, "-c", code, version, *arguments], text=True,
                          capture_output=True, env=home.env(), timeout=60)  # fmt: skip


def test_an_older_installation_never_replaces_a_newer_worker(home: Home) -> None:
    home.start_worker()
    pid = home.worker_pid()
    for action in ("start", "restart"):
        done = with_version(home, "0.0.1", "worker", action)
        assert done.returncode == 1
        assert "a newer worker is running" in done.stderr
    assert home.worker_pid() == pid


def test_a_newer_installation_replaces_an_older_worker(home: Home) -> None:
    home.start_worker()
    pid = home.worker_pid()
    done = with_version(home, "99.0.0", "worker", "start")
    assert done.returncode == 0, done.stderr
    assert home.worker_pid() not in (None, pid)
    assert len(workers_of(home)) == 1


def test_restart_gives_a_new_process_and_stop_ends_it(home: Home) -> None:
    home.start_worker()
    pid = home.worker_pid()
    assert home.command("worker", "restart").returncode == 0
    assert home.worker_pid() not in (None, pid)
    assert home.command("worker", "stop").stdout == "stopped\n"
    assert home.command("worker", "stop").stdout == "was not running\n"
    assert not home.layout.worker_state.exists()


def test_run_stays_in_the_foreground_until_interrupted(home: Home) -> None:
    process = subprocess.Popen([sys.executable, "-m", "claude_mem", "worker", "run"],
                               env=home.env())  # fmt: skip
    wait_until(lambda: home.worker_pid() == process.pid, "the worker's start")
    assert home.command("worker", "run").returncode == 0  # another has the lock
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 0


def test_a_worker_whose_directory_was_deleted_ends(home: Home, tmp_path: Path) -> None:
    home.start_worker()
    pid = home.worker_pid()
    assert pid is not None
    home.layout.root.rename(tmp_path / "moved")
    os.kill(pid, signal.SIGTERM)
    wait_until(lambda: not Path(f"/proc/{pid}").exists(), "its end")
    # It did not tidy up in a directory that is no longer its own.
    assert not home.layout.root.exists()


def test_a_damaged_database_is_set_aside_and_the_person_told(home: Home) -> None:
    home.layout.database.write_bytes(b"this is no database at all" * 500)
    home.hook(tool())
    home.wait_settled()
    assert len(home.rows("SELECT * FROM tool_events")) == 1
    assert list(home.layout.root.glob("memory.db.damaged-*"))
    assert "damaged" in json.loads(home.hook(session_start()).stdout)["systemMessage"]


def test_damage_inside_the_file_is_found_after_a_kill_and_a_backup_serves(home: Home) -> None:
    for payload in (prompt("Remember the lighthouse"), stop("I do.")):
        home.hook(payload)
    home.wait_settled()
    wait_until(lambda: list(home.layout.backups.glob("memory-*.db.gz")), "the first backup")
    home.command("worker", "restart")
    home.kill_worker()
    size = home.layout.database.stat().st_size
    with home.layout.database.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xa5" * (size - 8192))
    home.start_worker()
    assert list(home.layout.root.glob("memory.db.damaged-*"))
    assert "backup" in json.loads(home.hook(session_start()).stdout)["systemMessage"]
    home.hook(tool())
    home.wait_settled()
    assert home.rows("SELECT count(*) AS n FROM tool_events WHERE event = 'PostToolUse'")[0]["n"]


def test_a_foreign_database_is_never_written_to_and_the_events_wait(home: Home) -> None:
    import sqlite3

    with closing(sqlite3.connect(home.layout.database)) as connection:
        connection.execute("CREATE TABLE notes (text)")
        connection.commit()
    before = home.layout.database.read_bytes()
    assert home.hook(tool()).returncode == 0
    wait_until(lambda: (home.layout.root / "trouble").exists(), "the report")
    assert home.layout.database.read_bytes() == before
    assert len(list(home.layout.spool.glob("*.event"))) == 1
    assert "was not created by" in json.loads(home.hook(session_start()).stdout)["systemMessage"]


def test_logs_shows_both_logs(home: Home) -> None:
    home.hook("{}".encode("utf-16"), "PostToolUse")
    home.start_worker()
    text = home.command("worker", "logs").stdout
    assert "hooks:" in text and "the payload is not UTF-8" in text
    assert "worker:" in text and "is running, pid" in text


def test_a_wrong_setting_is_told_and_stops_neither_hooks_nor_worker(home: Home) -> None:
    home.layout.settings.write_text('{"CLAUDE_MEM_LOG_LEVEL": "loud"}')
    home.hook(tool())
    home.wait_settled()
    assert len(home.rows("SELECT * FROM tool_events")) == 1
    message = json.loads(home.hook(session_start()).stdout)["systemMessage"]
    assert "CLAUDE_MEM_LOG_LEVEL" in message and "the default is used" in message
    assert "loud" in home.command("doctor").stdout


def test_a_worker_that_cannot_start_says_where_to_look(home: Home) -> None:
    home.environment["CLAUDE_MEM_IDLE_MINUTES"] = "soon"
    done = home.command("worker", "start")
    assert done.returncode == 1
    assert "CLAUDE_MEM_IDLE_MINUTES='soon' (environment) must be a whole number" in done.stderr


def test_a_long_path_is_no_obstacle_to_the_socket(tmp_path: Path) -> None:
    from claude_mem.install.launcher import write_launcher

    home = Home(tmp_path / ("deep" * 30) / ("deeper" * 20))
    home.path.mkdir(parents=True)
    home.layout.create()
    write_launcher(home.layout)
    home.start_worker()
    for payload in (prompt(), stop("A long way down")):
        home.hook(payload)
    home.wait_settled()
    assert "A long way down" in home.context(session_start(session_id="next"))
    client.stop(home.layout)
