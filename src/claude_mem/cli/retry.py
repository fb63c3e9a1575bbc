"""claude-mem retry: retry turns that could not be summarised."""

import os

import click

from claude_mem.cli.open_store import open_reader
from claude_mem.cli.output import json_option, print_json
from claude_mem.config import Settings
from claude_mem.server.client import request
from claude_mem.server.quick_command_replies import dead_letter_line
from claude_mem.store.memory_rows import JsonRow
from claude_mem.text import pluralize
from claude_mem.types import Json


@click.command()
@click.option("--dry-run", is_flag=True, help="List the turns without retrying them.")
@json_option
@click.pass_obj
def retry(settings: Settings, dry_run: bool, as_json: bool) -> None:
    """Retry turns that could not be summarised.

    After several failed attempts a turn is set aside. This command puts all such turns back into
    the queue, with new attempts, and wakes the worker.
    """
    count, letters = _dead(settings)
    if dry_run:
        _print_turns(count, letters, as_json)
        return
    answer: dict[str, Json] = {"retried": 0}
    if count:  # done by the worker, which alone writes to the queue
        answer = request(settings.layout, os.environ, "/api/queue/retry", {})
    if as_json:
        print_json(answer)
    elif answer["retried"]:
        turns = pluralize(answer["retried"], "turn")
        click.echo(f"Retrying {turns}. To see the progress: claude-mem status")
    else:
        click.echo("Nothing to retry: no turn has failed.")


def _dead(settings: Settings) -> tuple[int, list[JsonRow]]:
    with open_reader(settings) as store:
        return (store.queue_state()["dead"], store.dead_letters()) if store else (0, [])


def _print_turns(count: int, letters: list[JsonRow], as_json: bool) -> None:
    if as_json:
        print_json({"dead": count, "dead_letters": list(letters)})
        return
    click.echo(f"{pluralize(count, 'turn')} would be retried{':' if count else '.'}")
    for letter in letters:
        click.echo(dead_letter_line(letter))
    if count > len(letters):
        click.echo(f"  and {count - len(letters)} more")


commands = [retry]
