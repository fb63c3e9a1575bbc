"""claude-mem sessions and stats."""

import click

from claude_mem.cli.open_store import open_reader
from claude_mem.cli.output import json_option, print_json, print_pairs, print_table
from claude_mem.config import Settings
from claude_mem.store.disk_usage import database_usage, size_of, turn_count, usage_json
from claude_mem.store.listing import Page
from claude_mem.store.memory_rows import JsonRow
from claude_mem.text import NO_MEMORIES, local_time
from claude_mem.types import Json


@click.command()
@click.option("--project", help="Only this project (name or key).")
@click.option(
    "--limit", default=20, type=click.IntRange(1, 1000), help="Maximum rows (default 20)."
)
@json_option
@click.pass_obj
def sessions(settings: Settings, project: str | None, limit: int, as_json: bool) -> None:
    """List sessions, latest first."""
    with open_reader(settings) as store:
        rows: list[JsonRow] = []
        if store is not None:
            project_id = store.find_project(project) if project else None
            rows, _ = store.page("sessions", Page(limit=limit), project_id)
    if as_json:
        print_json(list(rows))
    elif not rows:
        click.echo(NO_MEMORIES)
    else:
        print_table(
            ("id", "when", "project", "status", "prompts", "title"),
            [(s["id"], local_time(s["updated_at_epoch"]), s["project"], s["status"],
              s["prompt_counter"], s["title"] or _first_line(s["user_prompt"])) for s in rows],
        )  # fmt: skip


@click.command()
@click.option("--disk", is_flag=True, help="Show disk usage by kind of data.")
@json_option
@click.pass_obj
def stats(settings: Settings, disk: bool, as_json: bool) -> None:
    """Count memories by project."""
    if disk:
        _show_disk(settings, as_json)
        return
    with open_reader(settings) as store:
        counts = store.counts() if store else {}
        projects = store.projects() if store else []
    if as_json:
        print_json({"database": dict(counts), "projects": list(projects)})
    elif not counts:
        click.echo(NO_MEMORIES)
    else:
        print_pairs(list(counts.items()))
        click.echo()
        print_table(
            ("project", "sessions", "observations", "last active", "key"),
            [(p["name"], p["sessions"], p["observations"], local_time(p["updated_at_epoch"]),
              p["key"]) for p in projects],
        )  # fmt: skip


def _show_disk(settings: Settings, as_json: bool) -> None:
    layout = settings.layout
    with open_reader(settings) as store:
        usage = store.read(database_usage) if store else {}
        turns = store.read(turn_count) if store else 0
    journal = layout.database.with_name(f"{layout.database.name}-wal")
    files = {
        "database": size_of(layout.database),
        "journal": size_of(journal),
        "backups": size_of(layout.backups),
        "logs": size_of(layout.worker_log.parent),
        "spool": size_of(layout.spool),
        "rendered contexts": size_of(layout.contexts),
    }
    if as_json:
        print_json({**usage_json(usage, files), "turns": turns})
        return
    print_table(("files", "MB"), [(name, _megabytes(size)) for name, size in files.items()])
    if not usage:
        click.echo("This SQLite cannot report the size of tables.")
        return
    click.echo()
    print_table(
        ("of the database", "MB", "bytes a turn"),
        [(name, _megabytes(size), size // max(1, turns)) for name, size in usage.items()],
    )


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f}"


def _first_line(text: Json) -> str:
    return text.strip().splitlines()[0][:80] if isinstance(text, str) and text.strip() else ""


commands = [sessions, stats]
