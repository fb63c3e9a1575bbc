"""claude-mem retry: the way back for turns that could not be distilled."""

import os

import click

from claude_mem.cli.output import as_json_option, counted, print_json
from claude_mem.cli.status import letter_line, reading
from claude_mem.config import Settings
from claude_mem.server import client
from claude_mem.store.pages import Record
from claude_mem.types import Json


@click.command()
@click.option("--dry-run", is_flag=True, help="Show which turns, and change nothing.")
@as_json_option
@click.pass_obj
def retry(settings: Settings, dry_run: bool, as_json: bool) -> None:
    """Try the turns again that could not be distilled.

    They are kept, but left alone, when every try failed. Once the cause is gone, this puts them
    back into the queue, with all their tries, and wakes the worker.
    """
    count, letters = _dead(settings)
    if dry_run:
        _show(count, letters, as_json)
        return
    answer: Json = {"retried": 0}
    if count:
        # The worker does it: it alone writes, and what it is distilling now is not disturbed.
        client.start(settings.layout, os.environ)
        answer = client.ask_worker(settings.layout, "/api/queue/retry", {})
    assert isinstance(answer, dict)
    if as_json:
        print_json(answer)
    elif answer["retried"]:
        turns = counted(answer["retried"], "turn")
        click.echo(f"Trying {turns} again: claude-mem status shows what becomes of it.")
    else:
        click.echo("Every turn could be distilled: there is nothing to try again.")


def _dead(settings: Settings) -> tuple[int, list[Record]]:
    with reading(settings) as store:
        return (store.queue_state()["dead"], store.dead_letters()) if store else (0, [])


def _show(count: int, letters: list[Record], as_json: bool) -> None:
    if as_json:
        print_json({"dead": count, "dead_letters": list(letters)})
        return
    click.echo(f"{counted(count, 'turn')} would be tried again{':' if count else '.'}")
    for letter in letters:
        click.echo(letter_line(letter))
    if count > len(letters):
        click.echo(f"  and {count - len(letters)} more")


commands = [retry]
