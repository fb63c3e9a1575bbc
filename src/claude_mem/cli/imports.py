"""claude-mem import: sessions of the past become memory."""

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path

import click

from claude_mem.cli.output import as_json_option, counted, heading, print_json, print_table
from claude_mem.cli.restore import (
    import_database,
    is_export,
    report_of_database,
    report_of_file,
    restore_file,
)
from claude_mem.cli.store import open_store_for_import
from claude_mem.config import Settings
from claude_mem.errors import BadInput
from claude_mem.hook.wake import wake
from claude_mem.install.claude import transcripts_dir
from claude_mem.intake.projects import Projects
from claude_mem.intake.transcripts.importer import (
    ImportOptions,
    Progress,
    Report,
    Tally,
    find_transcripts,
    import_transcripts,
)
from claude_mem.recall.context import build_context
from claude_mem.store import Store, StoreReader
from claude_mem.store.clock import now_ms
from claude_mem.types import Json, Project
from claude_mem.worker.contexts import render_contexts

DAY_MS = 86_400_000
PROCESSES = 4
TROUBLES_SHOWN = 5


@click.command("import")
@click.argument("paths", nargs=-1, type=click.Path(exists=True, path_type=Path))
@click.option("--project", default="", help="Only this project: its name, key or directory.")
@click.option("--since", default="", help="Only turns since this day, as 2026-01-31.")
@click.option(
    "--from-db",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Take over the database of the TypeScript claude-mem; it is only read.",
)
@click.option("--dry-run", is_flag=True, help="Say what would be imported, and keep nothing.")
@click.option("--again", is_flag=True, help="Read files again that were read before.")
@as_json_option
@click.pass_obj
def import_past(
    settings: Settings,
    paths: tuple[Path, ...],
    project: str,
    since: str,
    from_db: Path | None,
    dry_run: bool,
    again: bool,
    as_json: bool,
) -> None:
    """Remember past sessions of Claude Code.

    Without PATHS, all transcripts that Claude Code keeps on this machine; a path may be a
    transcript, a directory of them, or a file that claude-mem export wrote. No model is asked and
    nothing leaves the machine. Run it as often as you like: what is known already stays as it is.
    """
    if dry_run and from_db is not None:
        raise BadInput("--dry-run works for transcripts only, not with --from-db")
    if from_db is not None:
        say(report_of_database(import_database(settings, from_db)))
        return
    exports = [path for path in paths if path.is_file() and is_export(path)]
    if dry_run and exports:
        raise BadInput(f"--dry-run works for transcripts only, and {exports[0]} is an export")
    for path in exports:
        say(report_of_file(restore_file(settings, path)))
    if exports and len(exports) == len(paths):
        return
    rest = [path for path in paths if path not in exports]
    places = rest or [transcripts_home()]
    files = find_transcripts(places)
    wishes = import_options(settings, project, day_ms(since))
    if not files and not as_json:
        click.echo(f"There are no transcripts in {', '.join(map(str, places))}.")
        return
    opened = _open_to_look(settings) if dry_run else open_store_for_import(settings)
    with opened as store, _progress(files, as_json) as progress:
        report = import_transcripts(
            store, files, wishes, again=again, processes=processes(), progress=progress
        )
        look = refresh_contexts(settings, store, report) if isinstance(store, Store) else ""
    if as_json:
        print_json(as_data(report))
        return
    print_report(report, look, dry_run)
    if project and not report.projects:
        click.echo(f"No session in these files is of the project {project}.")


def _open_to_look(settings: Settings) -> AbstractContextManager[StoreReader | None]:
    database = settings.layout.database
    return StoreReader.open_existing(database) if database.exists() else nullcontext()


def import_and_report(settings: Settings, files: list[Path]) -> None:
    """All of it, for whoever is just installing."""
    with open_store_for_import(settings) as store, _progress(files, as_json=False) as progress:
        report = import_transcripts(
            store, files, import_options(settings), processes=processes(), progress=progress
        )
        refresh_contexts(settings, store, report)
    print_report(report, "", dry_run=False)


def say(lines: list[str]) -> None:
    for line in lines:
        click.echo(line)


def transcripts_home() -> Path:
    return transcripts_dir(os.environ)


def processes() -> int:
    return min(PROCESSES, os.cpu_count() or 1)


def import_options(settings: Settings, project: str = "", since_ms: int = 0) -> ImportOptions:
    return ImportOptions(
        own_root=str(settings.layout.root),
        home=os.environ.get("HOME", ""),
        keep_raw_since=now_ms() - settings.retention.raw_days * DAY_MS,
        skip_tools=settings.capture.skip_tools,
        redact_allow=settings.capture.redact_allow,
        project=_project_of(project),
        since_ms=since_ms,
    )


def _project_of(name: str) -> str:
    """A directory stands for the project that it belongs to."""
    if not name or not Path(name).is_dir():
        return name
    home = os.environ.get("HOME")
    return Projects(Path(home) if home else None).of(str(Path(name).absolute())).key


def day_ms(day: str) -> int:
    if not day:
        return 0
    try:
        moment = datetime.fromisoformat(day)
    except ValueError:
        raise BadInput(f"--since {day!r} is not a day: write it as 2026-01-31") from None
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


@contextmanager
def _progress(files: list[Path], as_json: bool) -> Iterator[Progress]:
    """A bar with rate and time left, on a terminal."""
    if as_json or not os.isatty(2):
        with nullcontext():
            yield lambda path, size: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(),
               TransferSpeedColumn(), TimeRemainingColumn())  # fmt: skip
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        total = sum(path.stat().st_size for path in files if path.exists())
        task = bar.add_task(counted(len(files), "transcript"), total=total)
        yield lambda path, size: bar.advance(task, size)


def refresh_contexts(settings: Settings, store: Store, report: Report) -> str:
    """Renders what cold sessions are given, and returns the most active project's.

    Of all projects: an import that was killed may have left any of them as it was before.
    """
    budget = settings.context.tokens
    for known in store.projects():
        project_id = store.project_by_key(str(known["key"]))
        if project_id is not None:
            render_contexts(settings.layout, store, project_id, budget)
    wake(os.fsencode(settings.layout.root))
    busiest = most_active(report)
    project_id = store.project_by_key(busiest.key) if busiest else None
    return build_context(store, project_id, budget) if project_id is not None else ""


def most_active(report: Report) -> Project | None:
    active = [(tally.turns, project.key, project) for project, tally in report.projects.items()]
    return max(active)[2] if active else None


def print_report(report: Report, look: str, dry_run: bool) -> None:
    verb = "Would import" if dry_run else "Imported"
    told = report.all
    click.echo(
        f"{verb} {counted(told.turns, 'turn')} of {counted(len(told.sessions), 'session')} from "
        f"{counted(report.files, 'file')} ({report.bytes / 1e6:.1f} MB)."
    )
    said = [
        (report.unchanged, "file", "unchanged since the last import"),
        (told.known, "turn", "known already"),
        (told.private, "turn", "private, and left out"),
        (told.forgotten, "turn", "forgotten before, and left out"),
        (report.unreadable, "line", "could not be read, and passed over"),
    ]
    for count, noun, what in said:
        if count:
            click.echo(f"  {counted(count, noun)} {what}")
    for path, reason in report.troubles[:TROUBLES_SHOWN]:
        click.echo(f"  {path}: {reason}")
    if len(report.troubles) > TROUBLES_SHOWN:
        click.echo(f"  and {len(report.troubles) - TROUBLES_SHOWN} more files")
    if not told.turns:
        return
    click.echo()
    _print_projects(report)
    if look:
        project = most_active(report)
        click.echo()
        heading(f"What the next session in {project.name if project else ''} is given")
        click.echo(look)


def _print_projects(report: Report) -> None:
    projects = [(project, tally) for project, tally in report.projects.items() if tally.turns]
    projects.sort(key=lambda one: (-one[1].turns, one[0].key))
    rows = [_row(project.name, tally) for project, tally in projects]
    print_table(
        ("project", "sessions", "turns", "observations", "summaries", "tokens of memory"), rows
    )
    text = report.text_chars // 4
    share = 100 * report.all.memory_tokens / text if text else 0.0
    click.echo(
        f"{text:,} tokens were said in these sessions; the memory of them has "
        f"{report.all.memory_tokens:,} ({share:.0f}%)."
    )


def _row(name: str, tally: Tally) -> tuple[object, ...]:
    return (name, len(tally.sessions), tally.turns, tally.observations, tally.summaries,
            tally.memory_tokens)  # fmt: skip


def as_data(report: Report) -> dict[str, Json]:
    return {
        "files": report.files,
        "unchanged": report.unchanged,
        "bytes": report.bytes,
        "unreadable_lines": report.unreadable,
        "troubles": [{"file": str(path), "reason": reason} for path, reason in report.troubles],
        "text_tokens": report.text_chars // 4,
        **_tally_data(report.all),
        "projects": [
            {"project": project.name, "key": project.key, **_tally_data(tally)}
            for project, tally in report.projects.items()
        ],
    }


def _tally_data(tally: Tally) -> dict[str, Json]:
    return {
        "sessions": len(tally.sessions),
        "turns": tally.turns,
        "observations": tally.observations,
        "summaries": tally.summaries,
        "known": tally.known,
        "private": tally.private,
        "forgotten": tally.forgotten,
        "memory_tokens": tally.memory_tokens,
    }


commands = [import_past]
