"""The worker process: `python -P -m claude_mem.daemon`, or `claude-mem worker run`.

Startup, main loop, shutdown, in this order and nowhere else.
"""

import asyncio
import json
import logging
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from logging.handlers import RotatingFileHandler

import uvicorn

from claude_mem import __version__
from claude_mem.config import (
    Layout,
    Settings,
    load_usable_settings,
    retired_settings,
    write_private,
)
from claude_mem.errors import ClaudeMemError
from claude_mem.hook import trouble
from claude_mem.hook.launch import set_aside_state
from claude_mem.install.claude import transcripts_dir
from claude_mem.install.launcher import runs_newer, write_launcher
from claude_mem.server.app import create_app
from claude_mem.server.guard import Guard, ensure_token
from claude_mem.store.clock import now_ms
from claude_mem.store.store import open_or_restore
from claude_mem.types import Json
from claude_mem.worker.lock import WorkerLock
from claude_mem.worker.loop import Worker, report_problems

log = logging.getLogger("claude_mem.daemon")

PORTS_TRIED = 20
LOCK_CHECK_SECONDS = 30.0
SHUTDOWN_SECONDS = 4.0


def main(arguments: list[str]) -> int:
    environ = os.environ
    environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy, if loaded, must not take all cores
    settings, problems = load_usable_settings(environ)
    layout = settings.layout
    os.umask(0o077)
    layout.create()
    _log_to_file(settings)
    report_problems(layout, problems)
    for name in retired_settings(environ):
        log.info("%s is no longer a setting: it is ignored", name)
    lock = _take_lock(layout, arguments)
    if lock is None:
        return 0  # another worker has it: that is all that was wanted
    set_aside_state(os.fsencode(layout.root))
    try:
        retired = asyncio.run(_serve(settings, environ, lock))
    except ClaudeMemError as error:
        log.error("cannot run: %s", error)
        trouble.report(os.fsencode(layout.root), f"worker: {error}")
        return 1
    except Exception as error:
        log.exception("died")
        trouble.report(os.fsencode(layout.root), f"worker: {type(error).__name__}: {error}")
        return 1
    finally:
        lock.release()
    if retired:
        _start_successor(layout)
    return 0


def _start_successor(layout: Layout) -> None:
    """Through the launcher, which belongs to the newer installation."""
    with suppress(OSError, subprocess.TimeoutExpired):
        subprocess.run([layout.launcher, "claude", "Wake"], stdin=subprocess.DEVNULL, timeout=30)


def _take_lock(layout: Layout, arguments: list[str]) -> WorkerLock | None:
    if arguments[:1] == ["--lock-fd"] and (lock := WorkerLock.adopt(layout, int(arguments[1]))):
        return lock
    return WorkerLock.acquire(layout)


async def _serve(settings: Settings, environ: Mapping[str, str], lock: WorkerLock) -> bool:
    """Whether it ended to make room for a newer version."""
    layout = settings.layout
    os.chdir(layout.root)  # the socket is bound by a relative name, which always fits
    store, told = open_or_restore(
        layout.database,
        layout.backups,
        settings.retention.backups,
        suspicious=layout.last_worker_state.exists(),
    )
    layout.last_worker_state.unlink(missing_ok=True)
    if told:
        log.error(told)
        trouble.report(os.fsencode(layout.root), told)
    worker = Worker(settings, store, environ=environ, transcripts=transcripts_dir(environ))
    stopping = _stop_signals()
    try:
        async with _listening(settings, worker) as state, _wake_fifo(layout, worker):
            write_launcher(layout)
            write_private(layout.worker_state, json.dumps(state).encode())
            log.info("claude-mem %s runs, pid %d", __version__, os.getpid())
            main_loop = asyncio.create_task(worker.run(outdated=lambda: runs_newer(layout)))
            watch = asyncio.create_task(_watch_lock(layout, lock, stopping))
            await asyncio.wait(
                [main_loop, asyncio.create_task(stopping.wait())],
                return_when=asyncio.FIRST_COMPLETED,
            )
            watch.cancel()
            worker.intake.stop()
            retired = main_loop.done() and not stopping.is_set()
            main_loop.cancel()
            with suppress(asyncio.CancelledError):
                await main_loop
            await worker.refiner.close()
        if lock.still_ours(layout):
            for leftover in (layout.socket, layout.wake, layout.worker_state):
                leftover.unlink(missing_ok=True)
        return retired
    finally:
        await worker.refiner.close()  # also where the loop died: no client outlives it
        await asyncio.to_thread(store.close)
        log.info("stopped")


def _stop_signals() -> asyncio.Event:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # it outlives the terminal
    return stopping


@asynccontextmanager
async def _wake_fifo(layout: Layout, worker: Worker) -> AsyncIterator[None]:
    """Hooks write a byte here. Held open for both ends, so that it never reads as closed."""
    layout.wake.unlink(missing_ok=True)
    os.mkfifo(layout.wake, 0o600)
    fifo = os.open(layout.wake, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    loop = asyncio.get_running_loop()

    def heard() -> None:
        with suppress(BlockingIOError):
            os.read(fifo, 65536)
        worker.wake()

    loop.add_reader(fifo, heard)
    try:
        yield
    finally:
        loop.remove_reader(fifo)
        os.close(fifo)


class _Server(uvicorn.Server):
    """Signals are the daemon's own business: it runs two of these."""

    @contextmanager
    def capture_signals(self):  # type: ignore[no-untyped-def]
        yield


@asynccontextmanager
async def _listening(settings: Settings, worker: Worker) -> AsyncIterator[dict[str, Json]]:
    """Serves the Unix socket, and the TCP port where there is a free one."""
    layout = settings.layout
    tcp = _bind_port(settings.worker.port)
    state: dict[str, Json] = {
        "pid": os.getpid(),
        "version": __version__,
        "port": tcp.getsockname()[1] if tcp else None,
        "socket": str(layout.socket),
        "started_at_epoch": now_ms(),
        "python": sys.executable,
    }
    bare = create_app(worker, lambda: state, for_socket=True)
    servers = [(_server(bare), _bind_socket(layout))]
    if tcp is not None:
        app = create_app(worker, lambda: state, for_socket=False)
        servers.append((_server(Guard(app, ensure_token(layout))), tcp))
    tasks = [asyncio.create_task(server.serve(sockets=[bound])) for server, bound in servers]
    try:
        while not all(server.started for server, _ in servers):
            await asyncio.sleep(0.005)
        yield state
    finally:
        for server, _ in servers:
            server.should_exit = True
        await asyncio.wait(tasks, timeout=SHUTDOWN_SECONDS)


def _server(app: object) -> _Server:
    config = uvicorn.Config(
        app,  # type: ignore[arg-type]
        log_config=None,
        access_log=False,
        lifespan="off",
        ws="none",
        server_header=False,
        timeout_graceful_shutdown=1,
        timeout_keep_alive=5,
    )
    return _Server(config)


def _bind_socket(layout: Layout) -> socket.socket:
    layout.socket.unlink(missing_ok=True)  # of a killed worker: the lock says that it is gone
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    bound.bind(layout.socket.name)
    layout.socket.chmod(0o600)
    return bound


def _bind_port(first: int) -> socket.socket | None:
    if first == 0:
        return None
    for port in range(first, min(first + PORTS_TRIED, 65536)):
        bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            bound.bind(("127.0.0.1", port))
            bound.listen(64)  # now, since two processes may both bind but not both listen
        except OSError:
            bound.close()
        else:
            return bound
    log.warning("no free port from %d on: serving the Unix socket alone", first)
    return None


async def _watch_lock(layout: Layout, lock: WorkerLock, stopping: asyncio.Event) -> None:
    """Ends when the data directory was deleted or replaced under it."""
    while lock.still_ours(layout):
        await asyncio.sleep(LOCK_CHECK_SECONDS)
    log.warning("the data directory is gone or another: stopping")
    stopping.set()


def _log_to_file(settings: Settings) -> None:
    handler = RotatingFileHandler(settings.layout.worker_log, maxBytes=1_000_000, backupCount=2)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(settings.worker.log_level)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
