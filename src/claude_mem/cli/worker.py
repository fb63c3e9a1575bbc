"""claude-mem worker start | stop | restart | status | run | logs"""

import os
from collections import deque
from pathlib import Path

import click

from claude_mem.cli.output import as_json_option, in_words, print_json
from claude_mem.config import Settings
from claude_mem.server import client
from claude_mem.types import Json
from claude_mem.worker.lock import is_held


@click.group(short_help="The background process: start, stop, status, logs.")
def worker() -> None:
    """The one background process. Hooks start it when it is needed."""


@worker.command()
@as_json_option
@click.pass_obj
def start(settings: Settings, as_json: bool) -> None:
    """Start it, unless it runs already. Replaces an older version, never a newer one."""
    stats, started = client.start(settings.layout, os.environ)
    _say(stats, as_json, "started" if started else "runs already")


@worker.command()
@click.pass_obj
def stop(settings: Settings) -> None:
    """End it. What is not yet stored stays in the spool; the next hook starts it again."""
    click.echo("stopped" if client.stop(settings.layout) else "was not running")


@worker.command()
@as_json_option
@click.pass_obj
def restart(settings: Settings, as_json: bool) -> None:
    """End it and start this version."""
    current = client.running_worker(settings.layout)
    if current is not None:
        client.refuse_newer(current)
        client.stop(settings.layout)
    stats, _ = client.start(settings.layout, os.environ)
    _say(stats, as_json, "restarted")


@worker.command()
@as_json_option
@click.pass_obj
def status(settings: Settings, as_json: bool) -> None:
    """Who it is and what waits. Exit code 3 when it does not run."""
    stats = client.running_worker(settings.layout)
    if stats is None:
        if as_json:
            print_json({"running": False})
        else:
            click.echo("not running (the next hook starts it)")
        raise SystemExit(3)
    _say(stats, as_json, "running")


@worker.command()
@click.pass_obj
def run(settings: Settings) -> None:
    """Run it here, in the foreground, until Ctrl-C."""
    from claude_mem.daemon import main

    if is_held(settings.layout):
        click.echo("a worker runs already: claude-mem worker status")
        return
    click.echo(f"running until Ctrl-C; the log is {settings.layout.worker_log}")
    status = main([])
    if status:
        click.echo(f"it ended; {settings.layout.worker_log} says why", err=True)
    raise SystemExit(status)


@worker.command()
@click.option("--lines", default=40, show_default=True, type=click.IntRange(1, 100_000))
@click.pass_obj
def logs(settings: Settings, lines: int) -> None:
    """The end of its log and of the hooks'."""
    layout = settings.layout
    logs = (("hooks", layout.hook_log), ("worker", layout.worker_log))
    found = [f"{name}: {line}" for name, path in logs for line in _tail(path, lines)]
    click.echo("\n".join(found) or "nothing was logged yet")


def _tail(path: Path, lines: int) -> list[str]:
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return [line.rstrip("\n") for line in deque(file, lines)]
    except FileNotFoundError:
        return []


def _say(stats: dict[str, Json], as_json: bool, state: str) -> None:
    described = stats.get("worker")
    assert isinstance(described, dict)
    if as_json:
        rest = {name: value for name, value in stats.items() if name in ("queue", "spool")}
        print_json({"running": True, "state": state, **described, **rest})
        return
    queue = stats.get("queue")
    waiting = in_words(queue) if isinstance(queue, dict) else "not answering yet"
    port = described["port"] or "none"
    click.echo(f"{state}: pid {described['pid']}, version {described['version']}, port {port}")
    click.echo(f"socket {described['socket']}")
    click.echo(f"queue {waiting}")


commands = [worker]
