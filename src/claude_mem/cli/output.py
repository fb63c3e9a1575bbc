"""Printing data: tables on a terminal, tab-separated lines in a pipe, JSON with --json."""

import json
import sys
from collections.abc import Sequence

import click

from claude_mem.text import format_pairs, one_line, without_controls
from claude_mem.types import Json

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def print_json(value: Json) -> None:
    """Prints JSON, on a terminal in ASCII: a text may have characters that change what is shown."""
    click.echo(json.dumps(value, ensure_ascii=sys.stdout.isatty(), indent=2))


def print_table(headers: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    texts = [["" if cell is None else without_controls(str(cell)) for cell in row] for row in rows]
    if not sys.stdout.isatty():
        for row in texts:
            click.echo("\t".join(one_line(cell) for cell in row))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold", show_edge=False)
    for header in headers:
        table.add_column(header, overflow="fold")
    for row in texts:
        table.add_row(*(Text(cell) for cell in row))
    Console().print(table)


def print_pairs(pairs: Sequence[tuple[str, object]]) -> None:
    for line in format_pairs(pairs):
        click.echo(line)


def print_heading(text: str) -> None:
    click.echo(click.style(text, bold=True) if sys.stdout.isatty() else text)
