"""The worker process: `python -P -m claude_mem.daemon`, or `claude-mem worker run`.

Startup, the servers and shutdown; the main loop is `Worker.run` in `worker/worker.py`.
"""

import gc

# Imports create many objects and little garbage: looking for it takes a tenth of the start, for
# which a session may be waiting.
gc.disable()

import asyncio
import json
import logging
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from logging.handlers import RotatingFileHandler

import uvicorn

from claude_mem import __version__
from claude_mem.config import (
    Layout,
    Settings,
    environment_for_worker,
    find_layout,
    load_usable_settings,
    refusal_message,
    repository_of,
    retired_settings,
    write_private,
)
from claude_mem.config.environment import CONNECTION
from claude_mem.distribution import is_complete
from claude_mem.errors import ClaudeMemError, OtherVersion, SettingsError
from claude_mem.hook import trouble
from claude_mem.hook.worker_start import OWN_ENVIRONMENT, set_aside_state
from claude_mem.install import other_agents
from claude_mem.install.claude import transcripts_dir
from claude_mem.install.launcher import runs_newer, write_launcher
from claude_mem.intake import spool
from claude_mem.recall.team_interface import JoinedTeam
from claude_mem.redaction import load_finders
from claude_mem.server.app import create_app
from claude_mem.server.guard import Guard, ensure_token
from claude_mem.server.port_limits import bounded_protocol, limits_for, raise_descriptor_limit
from claude_mem.store import stored_json
from claude_mem.store.clock import now_ms
from claude_mem.store.database import check_integrity, is_damage
from claude_mem.store.store import open_or_restore
from claude_mem.text import pluralize
from claude_mem.types import Json
from claude_mem.worker.last_error import ToldErrors
from claude_mem.worker.lock import WorkerLock
from claude_mem.worker.worker import Worker, report_problems

gc.freeze()  # what was imported stays: no collection during a search or a hook visits it again
gc.enable()

log = logging.getLogger("claude_mem.daemon")

PORTS_TRIED = 20
MOST_RECOVERIES = 3  # of the database, by one process
FILES_CHECK_SECONDS = 30.0
SHUTDOWN_SECONDS = 4.0
SWITCH_SECONDS = 0.001  # between threads


def main(arguments: list[str]) -> int:
    ignored = _leave_session(arguments)
    environ = os.environ
    # The writer asks for the interpreter at every statement, and would wait for the event loop.
    sys.setswitchinterval(SWITCH_SECONDS)
    environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy, if loaded, must not take all cores
    settings, problems = load_usable_settings(environ)
    layout = settings.layout
    if repository := repository_of(layout, environ):
        trouble.report(os.fsencode(layout.root), f"worker: {refusal_message(repository)}")
        print(refusal_message(repository), file=sys.stderr)
        return 1
    os.umask(0o077)
    try:
        layout.create()
        _log_to_file(settings)
    except OSError as error:  # such as a file in the place of a directory
        trouble.report(os.fsencode(layout.root), f"worker: it cannot start: {error}")
        return 1
    report_problems(layout, map(str, problems))
    _report_ignored(settings, ignored)
    for name in retired_settings(environ):
        log.info("%s is no longer a setting: it is ignored", name)
    lock = _take_lock(layout, arguments)
    if lock is None:
        return 0  # another worker is running
    set_aside_state(os.fsencode(layout.root))
    try:
        retired = _serve_and_recover(settings, environ, lock)
    except OtherVersion as error:
        log.error("the worker cannot run: %s", error)
        count = pluralize(len(spool.waiting(layout)), "event")
        trouble.report(
            os.fsencode(layout.root), f"{error} ({count} waiting until then, nothing is lost)"
        )
        return 1
    except ClaudeMemError as error:
        log.error("the worker cannot run: %s", error)
        trouble.report(os.fsencode(layout.root), f"worker: {error}")
        return 1
    except Exception as error:
        log.exception("the worker failed")
        trouble.report(os.fsencode(layout.root), f"worker: {type(error).__name__}: {error}")
        return 1
    finally:
        lock.release()
    if retired:
        _start_successor(layout)
    return 0


def _serve_and_recover(settings: Settings, environ: Mapping[str, str], lock: WorkerLock) -> bool:
    """Serves; where anything meets damage in the database, repairs it before it is read again."""
    damage: list[str] = []
    while True:
        try:
            return asyncio.run(_serve(settings, environ, lock, damage))
        except Exception as error:
            if len(damage) == MOST_RECOVERIES or not _is_damage(error, settings.layout):
                raise
            log.exception("the database is damaged")
            damage.append(str(error))
        # Its traceback holds the cursor of the statement that failed, and so a connection: SQLite
        # would use the journal of that one, though another process may have replaced the file.
        gc.collect()


def _is_damage(error: Exception, layout: Layout) -> bool:
    """Whether the error shows damage, as a statement does that fails because a table is missing."""
    if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_ERROR:
        return check_integrity(layout.database) is not None
    return is_damage(error)


def _leave_session(arguments: list[str]) -> tuple[str, ...]:
    """Take the environment that the user recorded if a hook started this process; returns the
    names of what it does not use of the session's."""
    if "--lock-fd" not in arguments or OWN_ENVIRONMENT in arguments:
        return ()
    environment = environment_for_worker(os.environ, find_layout(os.environ))
    os.environ.clear()  # also what libraries read, such as the proxies
    os.environ.update(environment.variables)
    time.tzset()
    return environment.ignored


def _report_ignored(settings: Settings, names: tuple[str, ...]) -> None:
    """Tells the user what was ignored, where it makes a difference: a project may have set it, or
    the user."""
    if not names:
        return
    advice = "if they are yours, run claude-mem worker restart in your own shell"
    message = f"ignored from the environment of a session: {', '.join(names)}; {advice}"
    log.warning(message)
    sends = settings.observer.kind != "local" or settings.embedder.kind == "endpoint"
    if sends or settings.layout.team.exists() or not set(names) <= set(CONNECTION):
        trouble.report(os.fsencode(settings.layout.root), f"worker: {message}")


def _start_successor(layout: Layout) -> None:
    """Start the newer version through the launcher, which belongs to its installation."""
    with suppress(OSError, subprocess.TimeoutExpired):
        subprocess.run([layout.launcher, "claude", "Wake"], stdin=subprocess.DEVNULL, timeout=30)


def _take_lock(layout: Layout, arguments: list[str]) -> WorkerLock | None:
    if arguments[:1] == ["--lock-fd"] and (lock := WorkerLock.adopt(layout, int(arguments[1]))):
        return lock
    return WorkerLock.acquire(layout)


async def _serve(
    settings: Settings,
    environ: Mapping[str, str],
    lock: WorkerLock,
    damage: Sequence[str] = (),
) -> bool:
    """Returns whether it ended for a newer version."""
    layout = settings.layout
    os.chdir(layout.root)  # the socket is bound by a relative path, which always fits
    store, restored = open_or_restore(
        layout.database,
        layout.backups,
        settings.retention.backups,
        suspicious=layout.last_worker_state.exists(),
        damage=damage,
    )
    layout.last_worker_state.unlink(missing_ok=True)
    if restored:
        log.error(restored)
        trouble.report(os.fsencode(layout.root), restored)
    load_finders()
    try:
        worker = Worker(settings, store, environ=environ, transcripts_dir=transcripts_dir(environ))
    except BaseException:
        store.close()
        raise
    worker.open_team = _open_team
    logging.getLogger().addHandler(worker.last_error)
    damaged_values = ToldErrors(layout)
    stored_json.log.addHandler(damaged_values)
    stopping = _stop_signals()
    crash_log = layout.worker_log.open("a")
    worker.watchdog.start(crash_log)
    try:
        async with _listening(settings, worker), worker.wake_fifo():
            write_launcher(layout)
            _refresh_agents(layout, environ)
            log.info("claude-mem %s is running, pid %d", __version__, os.getpid())
            main_loop = asyncio.create_task(worker.run(outdated=lambda: runs_newer(layout)))
            watch = asyncio.create_task(watch_files(layout, lock, stopping))
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
            for path in (layout.socket, layout.wake, layout.worker_state):
                path.unlink(missing_ok=True)
        return retired
    finally:
        await worker.refiner.close()  # also if the loop failed: no client outlives the worker
        await asyncio.to_thread(store.close)
        crash_log.close()
        logging.getLogger().removeHandler(worker.last_error)
        stored_json.log.removeHandler(damaged_values)
        log.info("stopped")


def _refresh_agents(layout: Layout, environ: Mapping[str, str]) -> None:
    """Updates the entries that install made in the settings of agents, after an upgrade."""
    if runs_newer(layout):
        return
    try:
        for path in other_agents.refresh(layout, environ):
            log.info("updated our entries in %s", path)
    except SettingsError as error:
        log.warning("our entries could not be updated: %s", error)


def _open_team(worker: Worker) -> JoinedTeam | None:
    """Opens the team, whose package is imported only if this machine has joined one."""
    if not worker.settings.layout.team.exists():
        return None
    from claude_mem.team.client.team_client import open_team

    return open_team(
        worker.settings.layout,
        worker.store,
        worker.reader.redactor,
        worker.clock,
        on_new_memories=worker.contexts.mark_stale,
        wake=worker.wake,
    )


def _stop_signals() -> asyncio.Event:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # the worker outlives the terminal
    return stopping


class _Server(uvicorn.Server):
    """A server without signal handlers, since the daemon has its own and runs two servers, and
    without ten ticks a second, which would keep an idle machine from sleeping."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._stopping = asyncio.Event()

    @contextmanager
    def capture_signals(self):  # type: ignore[no-untyped-def]
        yield

    async def main_loop(self) -> None:
        await self.on_tick(0)  # sets the headers that every response has
        await self._stopping.wait()

    def stop(self) -> None:
        self.should_exit = True
        self._stopping.set()


@asynccontextmanager
async def _listening(settings: Settings, worker: Worker) -> AsyncIterator[None]:
    """Serves the Unix socket, and a TCP port if one is free."""
    layout = settings.layout
    tcp = bind_port(settings.worker.port)
    state: dict[str, Json] = {
        "pid": os.getpid(),
        "version": __version__,
        "port": tcp.getsockname()[1] if tcp else None,
        "socket": str(layout.socket),
        "started_at_epoch": now_ms(),
        "python": sys.executable,
    }
    app = create_app(worker, lambda: state, for_socket=True)
    servers = [(_server(app), _bind_socket(layout))]
    if tcp is not None:
        token = ensure_token(layout)
        app = create_app(worker, lambda: state, for_socket=False)
        protocol = bounded_protocol(limits_for(raise_descriptor_limit()))
        servers.append((_server(Guard(app, token, worker.viewer_links.signing_key), protocol), tcp))
    # Whoever gets an answer may read at once where the port is.
    write_private(layout.worker_state, json.dumps(state).encode())
    tasks = [asyncio.create_task(server.serve(sockets=[bound])) for server, bound in servers]
    try:
        while not all(server.started for server, _ in servers):
            await asyncio.sleep(0.005)
        yield
    finally:
        for server, _ in servers:
            server.stop()
        await asyncio.wait(tasks, timeout=SHUTDOWN_SECONDS)


def _server(app: object, protocol: type[asyncio.Protocol] | None = None) -> _Server:
    config = uvicorn.Config(
        app,  # type: ignore[arg-type]
        http=protocol or "auto",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        lifespan="off",
        ws="none",
        server_header=False,
        date_header=False,  # a tick would have to renew it
        timeout_graceful_shutdown=1,
        timeout_keep_alive=5,
    )
    return _Server(config)


def _bind_socket(layout: Layout) -> socket.socket:
    layout.socket.unlink(missing_ok=True)  # of a killed worker: this one has the lock
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    bound.bind(layout.socket.name)
    layout.socket.chmod(0o600)
    bound.listen(64)  # whoever reads the worker's state can connect, though nobody answers yet
    return bound


def bind_port(first: int) -> socket.socket | None:
    if first == 0:
        return None
    for port in range(first, min(first + PORTS_TRIED, 65536)):
        # Only with its protocol named does asyncio set TCP_NODELAY on the connections; without it
        # every second request of a connection waits 40 ms for an acknowledgement.
        bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            bound.bind(("127.0.0.1", port))
            bound.listen(64)  # at once: two processes can bind the port, but only one can listen
        except OSError:
            bound.close()
        else:
            return bound
    log.warning("ports %d to %d are taken: serving only the Unix socket", first, port)
    return None


async def watch_files(layout: Layout, lock: WorkerLock, stopping: asyncio.Event) -> None:
    """Stops the worker if its data directory is deleted or replaced, or its package is removed. An
    upgrade removes the package, too, but for less time than between two checks."""
    was_complete = True
    while lock.still_ours(layout):
        complete = is_complete()
        if not (complete or was_complete):
            log.warning("the package was removed: stopping")
            stopping.set()
            return
        was_complete = complete
        await asyncio.sleep(FILES_CHECK_SECONDS)
    log.warning("the data directory was deleted or replaced: stopping")
    stopping.set()


def _log_to_file(settings: Settings) -> None:
    handler = RotatingFileHandler(settings.layout.worker_log, maxBytes=1_000_000, backupCount=2)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(settings.worker.log_level)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
