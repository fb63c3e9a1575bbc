"""Printing data: tables on a terminal, tab-separated lines in a pipe, JSON with --json."""

import json
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime

import click

from claude_mem.text import one_line, without_controls
from claude_mem.types import Json

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def print_json(value: Json) -> None:
    click.echo(json.dumps(value, ensure_ascii=False, indent=2))


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


def format_counts(counts: Mapping[str, Json]) -> str:
    """{"pending": 2, "dead": 0} as "2 pending"."""
    return ", ".join(f"{count} {name}" for name, count in counts.items() if count) or "empty"


def pluralize(count: Json, noun: str) -> str:
    plural = noun if count == 1 else f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{count} {plural}"


def print_pairs(pairs: Sequence[tuple[str, object]]) -> None:
    width = max((len(name) for name, _ in pairs), default=0)
    for name, value in pairs:
        click.echo(f"{name.ljust(width)}  {value}")


def print_heading(text: str) -> None:
    click.echo(click.style(text, bold=True) if sys.stdout.isatty() else text)


def local_time(ms: Json) -> str:
    if not isinstance(ms, int):
        return ""
    return datetime.fromtimestamp(ms / 1000).astimezone().strftime("%Y-%m-%d %H:%M")
