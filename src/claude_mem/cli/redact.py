"""claude-mem redact: secrets in stored data."""

import os
import sys
from collections import Counter
from collections.abc import Iterable
from typing import Any, cast

import click

from claude_mem.cli.open_store import open_reader
from claude_mem.cli.output import json_option, print_json
from claude_mem.config import Settings
from claude_mem.errors import BadInput
from claude_mem.redaction import Redactor
from claude_mem.server import client
from claude_mem.store.stored_secrets import Finding
from claude_mem.text import pluralize
from claude_mem.types import Json
from claude_mem.worker.stored_secrets import files_to_replace, scan

TIMEOUT = 3600  # seconds; a large database is searched and written anew


@click.command()
@click.option("--scan", "is_scan", is_flag=True, help="Show what would be redacted.")
@click.option(
    "--clean",
    "is_clean",
    is_flag=True,
    help="Redact secrets in the database; replace backups; delete logs, rejected payloads, events"
    " that were set aside and copies of damaged databases.",
)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@json_option
@click.pass_obj
def redact(settings: Settings, is_scan: bool, is_clean: bool, yes: bool, as_json: bool) -> None:
    """Find and remove secrets in stored data.

    Secrets are redacted before anything reaches the database. This command finds secrets that an
    earlier version did not recognise, in memories, prompts, facts, the record, raw events, hints,
    replies of models, the trash, rendered contexts, rejected payloads, logs and backups. Secrets
    are never printed in full.
    """
    if is_scan == is_clean:
        raise BadInput("set one of --scan and --clean")
    if is_scan:
        _scan(settings, as_json)
    else:
        _clean(settings, yes, as_json)


def _scan(settings: Settings, as_json: bool) -> None:
    with open_reader(settings) as store:
        redactor = Redactor(settings.capture.redact_allow)
        findings = scan(settings.layout, store, redactor) if store else []
    if as_json:
        print_json({"findings": [_as_json(finding) for finding in findings]})
        return
    _print(findings)
    if findings:
        click.echo(
            "To remove them: claude-mem redact --clean (it first says what it changes, and asks)"
        )


def _clean(settings: Settings, yes: bool, as_json: bool) -> None:
    if not yes and (as_json or not sys.stdin.isatty()):
        raise BadInput(
            "--clean cannot ask for confirmation here: claude-mem redact --scan shows what would be"
            " redacted, claude-mem redact --clean --yes does it"
        )
    if not as_json:
        _announce(settings)
    if not yes:
        click.confirm("Redact secrets in all files?", abort=True)
    client.start(settings.layout, os.environ)
    answer = cast(
        "dict[str, Any]", client.ask_worker(settings.layout, "/api/redact", {}, timeout=TIMEOUT)
    )
    if as_json:
        print_json(answer)
        return
    _print([Finding(**row) for row in answer["redacted"]])
    if answer["scrubbed"]:
        click.echo("No file contains them any more.")
    else:
        click.echo("The worker is still removing them from its files: see claude-mem doctor.")


def _announce(settings: Settings) -> None:
    files = files_to_replace(settings.layout)
    changes = [
        "redacts secrets in the database and renders the contexts again",
        f"replaces {pluralize(files.backups, 'backup')} by a fresh one" if files.backups else "",
        f"empties or deletes {pluralize(files.logs, 'log')}" if files.logs else "",
        f"deletes {pluralize(files.rejected, 'hook payload')} that could not be read or "
        f"{'was' if files.rejected == 1 else 'were'} set aside"
        if files.rejected
        else "",
        f"deletes {pluralize(files.damaged, 'file')} of damaged databases" if files.damaged else "",
    ]
    click.echo(f"In {settings.layout.root}, this")
    for change in filter(None, changes):
        click.echo(f"- {change}")
    click.echo("Files that cannot be searched reliably go as a whole. This cannot be undone.")


def _print(findings: Iterable[Finding]) -> None:
    findings = list(findings)
    for (place, kind), count in sorted(Counter((f.place, f.kind) for f in findings).items()):
        hints = dict.fromkeys(f.hint for f in findings if (f.place, f.kind) == (place, kind))
        click.echo(f"{place}: {count} {kind}, {', '.join(list(hints)[:3])}")
    click.echo(f"{pluralize(len(findings), 'secret')} found.")


def _as_json(finding: Finding) -> dict[str, Json]:
    return {"place": finding.place, "kind": finding.kind, "hint": finding.hint}


commands = [redact]
