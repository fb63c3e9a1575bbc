"""search, timeline and reindex: finding a memory again, and mending what finds it."""

import click

from claude_mem.cli.output import counted
from claude_mem.cli.people import NOTHING_YET
from claude_mem.config import Settings
from claude_mem.errors import NotFound
from claude_mem.index import full_text
from claude_mem.store import Store


@click.command()
@click.pass_obj
def reindex(settings: Settings) -> None:
    """Make the search index anew from the memories. Nothing else is touched."""
    layout = settings.layout
    if not layout.database.exists():
        raise NotFound(NOTHING_YET)
    keep = settings.number("CLAUDE_MEM_BACKUPS")
    with Store.open(layout.database, layout.backups, keep) as store:
        click.echo(f"indexed {counted(full_text.rebuild(store), 'memory')}")


commands = [reindex]
