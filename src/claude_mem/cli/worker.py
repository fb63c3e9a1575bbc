"""claude-mem worker start | stop | restart | status | run | restore | logs"""

import os
import sys
from collections import deque
from pathlib import Path

import click

from claude_mem.cli.groups import Group
from claude_mem.cli.open_store import open_reader
from claude_mem.cli.output import json_option, print_json
from claude_mem.cli.user_only import refuse_agents
from claude_mem.config import Settings, record_environment
from claude_mem.errors import NotFound, WorkerError
from claude_mem.server import client
from claude_mem.store.backups import newest_first
from claude_mem.store.recovery import put_in_place
from claude_mem.text import format_counts, without_controls
from claude_mem.types import Json
from claude_mem.worker.lock import WorkerLock, is_held
from claude_mem.worker.session_logging import session_mark


@click.group(cls=Group, short_help="Manage the background process.")
def worker() -> None:
    """Manage the background process. Hooks start it automatically."""


@worker.command()
@json_option
@click.pass_obj
def start(settings: Settings, as_json: bool) -> None:
    """Start the worker unless it is running.

    Replaces a running older version, but not a newer one.
    """
    _record(settings)
    stats, started = client.start(settings.layout, os.environ)
    _print_state(stats, as_json, "started" if started else "already running")


@worker.command()
@click.pass_obj
def stop(settings: Settings) -> None:
    """Stop the worker. Unprocessed events stay in the spool.

    The next hook starts the worker again.
    """
    click.echo("stopped" if client.stop(settings.layout) else "was not running")


@worker.command()
@json_option
@click.pass_obj
def restart(settings: Settings, as_json: bool) -> None:
    """Stop the worker and start this version."""
    current = client.running_worker(settings.layout)
    if current is not None:
        client.refuse_newer(current)
        client.stop(settings.layout)
    _record(settings)
    stats, _ = client.start(settings.layout, os.environ)
    _print_state(stats, as_json, "restarted")


@worker.command()
@json_option
@click.pass_obj
def status(settings: Settings, as_json: bool) -> None:
    """Show pid, version, port and queue. Exits with 3 if the worker is not running."""
    stats = client.running_worker(settings.layout)
    if stats is None:
        if as_json:
            print_json({"running": False})
        else:
            click.echo("not running (the next hook starts it)")
        raise SystemExit(3)
    _print_state(stats, as_json, "running")


@worker.command()
@click.pass_obj
def run(settings: Settings) -> None:
    """Run the worker in the foreground until Ctrl-C."""
    from claude_mem.daemon import main

    if is_held(settings.layout):
        click.echo("already running: claude-mem worker status")
        return
    _record(settings)
    click.echo(f"running until Ctrl-C; log: {settings.layout.worker_log}")
    status = main([])
    if status:
        click.echo(f"the worker stopped; see {settings.layout.worker_log}", err=True)
    raise SystemExit(status)


@worker.command()
@click.argument("backup", required=False)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.pass_obj
def restore(settings: Settings, backup: str | None, yes: bool) -> None:
    """Go back to a BACKUP of the database, such as that from before an upgrade.

    Without BACKUP, the backups are listed, the newest first. The present database is kept in the
    data directory, under another name. Events that wait in the spool are then stored in the backup.
    """
    layout = settings.layout
    paths = {path.name: path for path in newest_first(layout.backups)}
    if backup is None:
        for path in paths.values():
            click.echo(f"{path.name}  {path.stat().st_size / 1e6:.1f} MB")
        click.echo(f"claude-mem worker restore NAME: go back to one of these {len(paths)} backups")
        return
    refuse_agents()
    if backup not in paths:
        raise NotFound(f"there is no backup {backup}: claude-mem worker restore lists them")
    current = client.running_worker(layout)
    if current is not None:
        client.refuse_newer(current)
    if not yes:
        click.confirm(f"Replace {layout.database} by {backup}?", abort=True)
    client.stop(layout)
    lock = WorkerLock.acquire(layout)  # no hook may start a worker meanwhile
    if lock is None:
        raise WorkerError("a hook has just started a worker: run the command again")
    try:
        replaced = put_in_place(layout.database, paths[backup])
    finally:
        lock.release()
    click.echo(f"Restored {backup}." + (f" What it replaced: {replaced}" if replaced else ""))
    _record(settings)
    client.start(layout, os.environ)


@worker.command()
@click.option(
    "--lines", default=40, type=click.IntRange(1, 100_000), help="Lines of each log (default 40)."
)
@click.option(
    "--session", help="Only lines about this session (its number, or the agent's session id)."
)
@click.pass_obj
def logs(settings: Settings, lines: int, session: str | None) -> None:
    """Show the end of the logs of the hooks and the worker."""
    layout = settings.layout
    if session is not None:
        _show_session_log(settings, session, lines)
        return
    logs = (("hooks", layout.hook_log), ("worker", layout.worker_log))
    tail = [f"{name}: {line}" for name, path in logs for line in _tail(path, lines)]
    click.echo("\n".join(tail) or "the logs are empty")


def _record(settings: Settings) -> None:
    """Records the environment for the next worker, which a hook may start."""
    settings.layout.create()
    record_environment(settings.layout, os.environ)


def _show_session_log(settings: Settings, session: str, lines: int) -> None:
    with open_reader(settings) as store:
        record = store.session(store.find_session(session)) if store is not None else None
    mark = session_mark(str(record["content_session_id"]) if record else session)
    log = settings.layout.worker_log
    older = [log.with_name(f"{log.name}.{number}") for number in (2, 1)]
    matches = [line for path in (*older, log) for line in _tail(path, sys.maxsize) if mark in line]
    click.echo(
        "\n".join(matches[-lines:])
        or "the log has no lines about this session; to log each step of each event: "
        "claude-mem settings CLAUDE_MEM_LOG_LEVEL DEBUG, then claude-mem worker restart"
    )


def _tail(path: Path, lines: int) -> list[str]:
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return [without_controls(line.rstrip("\n")) for line in deque(file, lines)]
    except FileNotFoundError:
        return []


def _print_state(stats: dict[str, Json], as_json: bool, state: str) -> None:
    worker = stats.get("worker")
    assert isinstance(worker, dict)
    if as_json:
        rest = {name: value for name, value in stats.items() if name in ("queue", "spool")}
        print_json({"running": True, "state": state, **worker, **rest})
        return
    queue = stats.get("queue")
    waiting = format_counts(queue) if isinstance(queue, dict) else "not answering yet"
    port = worker["port"] or "none"
    click.echo(f"{state}: pid {worker['pid']}, version {worker['version']}, port {port}")
    click.echo(f"socket {worker['socket']}")
    click.echo(f"queue {waiting}")


commands = [worker]
