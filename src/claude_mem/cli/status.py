"""claude-mem status."""

import os
import sys

import click

from claude_mem.cli.open_store import open_reader
from claude_mem.cli.output import json_option, print_json
from claude_mem.config import Settings
from claude_mem.index.vectors.lazy_index import open_semantic_index
from claude_mem.server.client import running_worker
from claude_mem.server.quick_command_replies import status_report, status_text
from claude_mem.store.clock import now_ms
from claude_mem.worker.observer_status import describe


@click.command()
@json_option
@click.pass_obj
def status(settings: Settings, as_json: bool) -> None:
    """Show the state of the worker, the queue, the observer and the index."""
    running = running_worker(settings.layout)
    worker = running["worker"] if running else None
    with open_reader(settings) as store:
        observer = describe(settings, os.environ, store, now_ms())
        index = open_semantic_index(settings)
        obstacle = running.get("obstacle") if running else ""
        report = status_report(settings, store, worker, observer, index, obstacle)
    if as_json:
        print_json(report)
    else:
        click.echo(status_text(report, sys.stdout.isatty()))


commands = [status]
