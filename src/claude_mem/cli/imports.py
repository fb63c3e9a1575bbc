"""claude-mem import: past sessions, exports and other databases become memories."""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import click

from claude_mem.agents import CLAUDE, all_agents
from claude_mem.agents.agent import Agent
from claude_mem.cli.open_store import open_reader, open_store_for_import
from claude_mem.cli.output import json_option, print_heading, print_json, print_table
from claude_mem.cli.user_only import refuse_agents
from claude_mem.config import Settings
from claude_mem.errors import BadInput
from claude_mem.hook.spooling import wake
from claude_mem.index import indexing
from claude_mem.install import agent_files
from claude_mem.install.claude import transcripts_dir
from claude_mem.intake.project_access import TrustDialog
from claude_mem.intake.projects import Projects
from claude_mem.intake.transcripts.import_options import ImportOptions, Reads
from claude_mem.intake.transcripts.import_report import Report, Tally
from claude_mem.intake.transcripts.importer import OnFile, distil_waiting, import_transcripts
from claude_mem.intake.transcripts.transcript import open_transcript
from claude_mem.recall.context import build_context
from claude_mem.redaction import Redactor
from claude_mem.server.client import hand_over
from claude_mem.store import Store
from claude_mem.store.clock import now_ms
from claude_mem.store.transfer.restore import Refusal, RestoreReport, is_export, restore
from claude_mem.store.transfer.typescript.importer import DatabaseReport, import_typescript
from claude_mem.text import pluralize
from claude_mem.types import Json, Project
from claude_mem.worker.contexts import render_all_contexts

DAY_MS = 86_400_000
PROCESSES = 4
TROUBLES_SHOWN = 5


@click.command("import")
@click.argument("paths", nargs=-1, type=click.Path(exists=True, path_type=Path))
@click.option(
    "--agent",
    "agents",
    multiple=True,
    type=click.Choice([agent.name for agent in all_agents() if agent.transcripts]),
    help="Only sessions of this agent; can be repeated (default: all agents).",
)
@click.option("--project", default="", help="Only this project (name, key or directory).")
@click.option("--since", default="", help="Only turns since this day (UTC), such as 2026-01-31.")
@click.option(
    "--from-db",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Import the database of the TypeScript claude-mem; it is not changed.",
)
@click.option("--dry-run", is_flag=True, help="Show what would be imported without importing it.")
@click.option(
    "--own",
    is_flag=True,
    help="Treat the export as your own. Otherwise all of it is marked as text from outside, facts"
    " become candidates, and no context contains it until you confirm or pin it.",
)
@click.option("--again", is_flag=True, help="Read unchanged files again.")
@click.option(
    "--wait",
    "waits",
    is_flag=True,
    help="Summarise all sessions before the command ends, not only the newest.",
)
@json_option
@click.pass_obj
def import_past(
    settings: Settings,
    paths: tuple[Path, ...],
    agents: tuple[str, ...],
    project: str,
    since: str,
    from_db: Path | None,
    dry_run: bool,
    own: bool,
    again: bool,
    waits: bool,
    as_json: bool,
) -> None:
    """Import past sessions of Claude Code and other agents.

    PATHS are transcripts, directories of transcripts, or files written by claude-mem export;
    default: all transcripts that agents keep on this machine. The import itself
    uses no model and sends nothing. It is safe to run it again: nothing is duplicated, turns that
    were incomplete are completed, and turns without a record get one. The newest sessions are
    summarised at once, the others by the worker in the background.
    """
    if own:
        refuse_agents()
    if dry_run and from_db is not None:
        raise BadInput("--dry-run cannot be combined with --from-db")
    if from_db is not None:
        _print_lines(report_of_database(import_database(settings, from_db)))
        return
    exports = [path for path in paths if path.is_file() and is_export(path)]
    if dry_run and exports:
        raise BadInput(f"--dry-run supports only transcripts, but {exports[0]} is an export")
    transcripts = [path for path in paths if path not in exports]
    _refuse_other_files(transcripts)
    for path in exports:
        restored = restore_file(settings, path, is_own=own)
        _print_lines(report_of_file(restored, is_own=own))
    if exports and len(exports) == len(paths):
        return
    files = find_transcripts(transcripts) if transcripts else all_transcripts(agents)
    options = import_options(settings, project, day_ms(since))
    if not files and not as_json:
        places = transcripts or [_transcripts_place(agent) for agent in _agents_named(agents)]
        click.echo(f"No transcripts in {', '.join(map(str, places))}.")
        return
    if dry_run:
        report, context, unindexed = _preview(settings, files, options, again, as_json), "", 0
    else:
        report, context, unindexed = import_files(
            settings, files, options, again=again, waits=waits, as_json=as_json
        )
    if as_json:
        print_json(report_json(report))
        return
    print_report(report, context, dry_run)
    _print_left(report, unindexed)
    if project and not report.projects:
        click.echo(f"These files contain no session of the project {project}.")


def _refuse_other_files(paths: list[Path]) -> None:
    """Refuses, before anything is imported, a file that the user named and is no transcript."""
    for path in paths:
        if path.is_dir():
            continue
        try:
            is_transcript = next(open_transcript(path).events(), None) is not None
        except (OSError, BadInput):
            continue  # it cannot be read, which the import reports
        if not is_transcript:
            agents = ", ".join(agent.title for agent in all_agents() if agent.transcripts)
            raise BadInput(
                f"{path} is not a transcript: it contains no session. Nothing was imported. import"
                f" takes transcripts of {agents}, directories of them, files that claude-mem export"
                " wrote, and with --from-db the database of the TypeScript claude-mem"
            )


def import_and_report(settings: Settings, files: list[Path]) -> None:
    """Import everything, as part of `claude-mem install`."""
    report, _, unindexed = import_files(settings, files, import_options(settings))
    print_report(report, "", dry_run=False)
    _print_left(report, unindexed)


def _preview(
    settings: Settings, files: list[Path], options: ImportOptions, again: bool, as_json: bool
) -> Report:
    with open_reader(settings) as store, _progress(files, as_json) as progress:
        return import_transcripts(
            store, files, options, again=again, processes=processes(), progress=progress
        )


def import_files(
    settings: Settings,
    files: list[Path],
    options: ImportOptions,
    *,
    again: bool = False,
    waits: bool = False,
    as_json: bool = False,
) -> tuple[Report, str, int]:
    """The report, the context of the next session in the most active project, and how many
    documents are not indexed yet. Without `waits`, the worker does what is not urgent."""
    reads: Reads = "all" if waits else "newest"
    with _open_store(settings) as store:
        with _progress(files, as_json) as progress:
            report = import_transcripts(
                store, files, replace(options, reads=reads), again=again, processes=processes(),
                progress=progress,
            )  # fmt: skip
        context = context_of_most_active(settings, store, report)
        unindexed = store.read(indexing.waiting)
    if waits or not hand_over(settings.layout, os.environ):
        unindexed = _finish(settings, options, report, as_json)
    return report, context, unindexed


def _finish(settings: Settings, options: ImportOptions, report: Report, as_json: bool) -> int:
    """What a worker would do; returns how many documents it still has to index."""
    with _open_store(settings) as store:
        files = [Path(transcript.path) for transcript in store.waiting_transcripts()]
        with _progress(files, as_json) as progress:
            distil_waiting(store, options, report, processes=processes(), progress=progress)
        render_all_contexts(settings, store, os.environ)
        store.contexts_rendered(list(store.distilled_projects())).result()
        return _index(settings, store, as_json)


def _open_store(settings: Settings) -> Store:
    """The index is made after the import: it would take longer than all the rest."""
    return open_store_for_import(settings, index_at_once=False)


def _index(settings: Settings, store: Store, as_json: bool) -> int:
    """Returns how many memories a worker still has to index."""
    if as_json or not os.isatty(2):
        return _index_imported(settings, store, lambda waiting: None)

    def show(waiting: int) -> None:
        click.echo(f"\r{pluralize(waiting, 'document')} to index …\x1b[K", nl=False, err=True)

    unindexed = _index_imported(settings, store, show)
    click.echo("\r\x1b[K", nl=False, err=True)
    return unindexed


def _index_imported(settings: Settings, store: Store, progress: Callable[[int], None]) -> int:
    """Leaves the index to a running worker, which does it in the background; without one it is
    done here, and `progress` is told how many documents wait. Returns how many are left."""
    waiting = store.read(indexing.waiting)
    if waiting and wake(os.fsencode(settings.layout.root)):
        return waiting
    while waiting:
        progress(waiting)
        previous, waiting = waiting, store.write(indexing.refresh).result()
        if waiting >= previous:
            break  # it failed; the worker tries again
    return waiting


def _print_left(report: Report, unindexed: int) -> None:
    left = []
    if report.waiting:
        left.append(f"summarising {pluralize(report.waiting, 'turn')} of older sessions")
    if unindexed:
        left.append(f"indexing {pluralize(unindexed, 'document')} for search")
    if left:
        click.echo(
            f"The worker is still {' and '.join(left)}. To see the progress: claude-mem status; "
            "to wait for it: claude-mem import --wait"
        )


def _print_lines(lines: list[str]) -> None:
    for line in lines:
        click.echo(line)


def processes() -> int:
    return min(PROCESSES, os.cpu_count() or 1)


def import_options(settings: Settings, project: str = "", since_ms: int = 0) -> ImportOptions:
    return ImportOptions(
        own_root=str(settings.layout.root),
        home=os.environ.get("HOME", ""),
        keep_raw_since=now_ms() - settings.retention.raw_days * DAY_MS,
        skip_tools=settings.capture.skip_tools,
        excluded=settings.capture.excluded_projects,
        redact_allow=settings.capture.redact_allow,
        project=_project_of(project),
        since_ms=since_ms,
        keep_record_since=settings.record.since_ms(now_ms()),
        verbosity=settings.observer.verbosity,
        trust=TrustDialog.of(os.environ),
    )


def _project_of(name: str) -> str:
    """The key of a directory's project; any other name as it is."""
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
        raise BadInput(f"--since must be a day such as 2026-01-31, not {day!r}") from None
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


@contextmanager
def _progress(files: list[Path], as_json: bool) -> Iterator[OnFile]:
    """A progress bar if stderr is a terminal."""
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
        task = bar.add_task(pluralize(len(files), "transcript"), total=total)
        yield lambda path, size: bar.advance(task, size)


def context_of_most_active(settings: Settings, store: Store, report: Report) -> str:
    project = most_active(report)
    project_id = store.project_by_key(project.key) if project else None
    if project_id is None:
        return ""
    return build_context(store, project_id, settings.context.tokens)


def most_active(report: Report) -> Project | None:
    active = [(tally.turns, project.key, project) for project, tally in report.projects.items()]
    return max(active)[2] if active else None


def print_report(report: Report, context: str, dry_run: bool) -> None:
    verb = "Would import" if dry_run else "Imported"
    total = report.all
    click.echo(
        f"{verb} {pluralize(total.turns, 'turn')} of {pluralize(len(total.sessions), 'session')} "
        f"from {pluralize(report.files, 'file')} ({report.bytes / 1e6:.1f} MB)."
    )
    skipped = [
        (report.unchanged, "file", "unchanged since the last import"),
        (total.existing, "turn", "already recorded"),
        (total.records, "turn", "already recorded, but without their text, which was added"),
        (total.private, "turn", "skipped: private"),
        (total.forgotten, "turn", "skipped: forgotten"),
        (report.unreadable, "line", "skipped: not readable"),
    ]
    for count, noun, reason in skipped:
        if count:
            click.echo(f"  {pluralize(count, noun)} {reason}")
    for path, reason in report.troubles[:TROUBLES_SHOWN]:
        click.echo(f"  {path}: {reason}")
    if len(report.troubles) > TROUBLES_SHOWN:
        click.echo(f"  and {pluralize(len(report.troubles) - TROUBLES_SHOWN, 'more file')}")
    if not total.turns:
        return
    click.echo()
    _print_projects(report)
    if context:
        project = most_active(report)
        click.echo()
        print_heading(f"Context of the next session in {project.name if project else ''}")
        click.echo(context)


def _print_projects(report: Report) -> None:
    projects = [(project, tally) for project, tally in report.projects.items() if tally.turns]
    projects.sort(key=lambda pair: (-pair[1].turns, pair[0].key))
    names = Counter(project.name for project, _ in projects)
    rows = [
        _row(project.name if names[project.name] == 1 else project.key, tally)
        for project, tally in projects
    ]
    if report.all.waiting:
        rows = [row[:3] for row in rows]
        print_table(("project", "sessions", "turns"), rows)
        return
    print_table(
        ("project", "sessions", "turns", "observations", "summaries", "memory tokens"), rows
    )
    text_tokens = report.text_chars // 4
    share = 100 * report.all.memory_tokens / text_tokens if text_tokens else 0.0
    click.echo(
        f"These sessions have {text_tokens:,} tokens of text; their memories have "
        f"{report.all.memory_tokens:,} ({share:.0f}%)."
    )


def _row(name: str, tally: Tally) -> tuple[object, ...]:
    return (name, len(tally.sessions), tally.turns, tally.observations, tally.summaries,
            tally.memory_tokens)  # fmt: skip


def report_json(report: Report) -> dict[str, Json]:
    return {
        "files": report.files,
        "unchanged": report.unchanged,
        "bytes": report.bytes,
        "unreadable_lines": report.unreadable,
        "troubles": [{"file": str(path), "reason": reason} for path, reason in report.troubles],
        "text_tokens": report.text_chars // 4,
        **_tally_json(report.all),
        "waiting": report.waiting,
        "projects": [
            {"project": project.name, "key": project.key, **_tally_json(tally)}
            for project, tally in report.projects.items()
        ],
    }


def _tally_json(tally: Tally) -> dict[str, Json]:
    return {
        "sessions": len(tally.sessions),
        "turns": tally.turns,
        "observations": tally.observations,
        "summaries": tally.summaries,
        "known": tally.existing,
        "private": tally.private,
        "forgotten": tally.forgotten,
        "records": tally.records,
        "waiting": tally.waiting,
        "memory_tokens": tally.memory_tokens,
    }


def claude_transcripts_home() -> Path:
    return transcripts_dir(os.environ)


def _agents_named(names: tuple[str, ...] = ()) -> list[Agent]:
    return [a for a in all_agents() if a.transcripts and (not names or a.name in names)]


def _transcripts_place(agent: Agent) -> Path:
    return (
        claude_transcripts_home()
        if agent.name == CLAUDE
        else agent_files.transcripts_home(agent, os.environ)
    )


def all_transcripts(names: tuple[str, ...] = ()) -> list[Path]:
    """Returns the transcripts of these agents, or of all."""
    files: list[Path] = []
    for agent in _agents_named(names):
        if agent.name == CLAUDE:
            files += find_transcripts([claude_transcripts_home()])
        elif agent.transcripts is not None:
            pattern = agent.transcripts.pattern
            files += sorted(p for p in _transcripts_place(agent).glob(pattern) if p.is_file())
    return files


def find_transcripts(places: Iterable[Path]) -> list[Path]:
    """Files of sessions; those of subagents are left out, because hooks report their work as
    part of the parent session."""
    transcripts: dict[Path, None] = {}
    for place in map(Path.absolute, places):
        if place.is_dir():
            files = (path for path in place.rglob("*.jsonl") if _is_session_file(path, place))
            transcripts.update(dict.fromkeys(sorted(files)))
        elif place.exists():
            transcripts[place] = None
    return list(transcripts)


def _is_session_file(path: Path, root: Path) -> bool:
    of_subagent = path.name.startswith("agent-") or "subagents" in path.relative_to(root).parts
    return not of_subagent and path.is_file()


# Importing an export, or the database of the TypeScript claude-mem.


def restore_file(settings: Settings, path: Path, *, is_own: bool = True) -> RestoreReport:
    """Merge an export into the database; running it again changes nothing."""
    with open_store_for_import(settings) as store:
        report = restore(store, path, _redactor(settings), is_own=is_own)
        render_all_contexts(settings, store, os.environ)
    return report


def import_database(settings: Settings, path: Path) -> DatabaseReport:
    """Import the other database; nothing is written to it or next to it."""
    with open_store_for_import(settings) as store:
        report = import_typescript(store, path, _redactor(settings))
        render_all_contexts(settings, store, os.environ)
    return report


def _redactor(settings: Settings) -> Redactor:
    return Redactor(settings.capture.redact_allow)


def report_of_file(report: RestoreReport, *, is_own: bool = False) -> list[str]:
    existing = report.existing.total()
    restored = (
        f"{pluralize(report.added.total(), 'record')} restored, {existing} already stored"
        if report.added.total()
        else f"Nothing new: {pluralize(existing, 'record')} already stored"
    )
    lines = [
        restored,
        *_refusals(report.refused, report.reasons),
    ]
    if report.candidates:
        rules = pluralize(report.candidates, "rule")
        lines.append(f"{rules} to confirm: claude-mem facts; for an export of your own, use --own")
    if report.added["user_prompts"] and not is_own:
        lines.append(
            "search finds it, marked as from outside; contexts contain only what you confirm"
            " (claude-mem facts confirm) or pin (claude-mem pin)"
        )
    if report.private:
        lines.append(f"{report.private} skipped: they belong to private prompts")
    if report.forgotten:
        lines.append(f"{report.forgotten} skipped: they were forgotten here")
    if not report.is_complete:
        lines.append("the file is cut off: the complete records before that were restored")
    return lines


def report_of_database(report: DatabaseReport) -> list[str]:
    sessions, added = report.sessions, report.added
    existing = sessions["skipped"] + sessions["unchanged"]
    return [
        f"{pluralize(sessions['added'], 'session')} imported, {sessions['updated']} updated, "
        f"{existing} already stored",
        f"{pluralize(added['observations'], 'observation')}, "
        f"{pluralize(added['summaries'], 'summary')}, {pluralize(added['prompts'], 'prompt')}",
        *_refusals(report.refused, report.reasons),
    ]


def _refusals(count: int, reasons: Iterable[Refusal]) -> list[str]:
    if not count:
        return []
    lines = [f"  {refusal.place} {refusal.reason}" for refusal in reasons]
    more = [f"  and {count - len(lines)} more"] if count > len(lines) else []
    return [f"{pluralize(count, 'record')} rejected:", *lines, *more]


commands = [import_past]
