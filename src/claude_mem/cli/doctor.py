"""claude-mem doctor."""

import os

import click

from claude_mem.cli.output import json_option, print_json
from claude_mem.config import Settings
from claude_mem.install.doctor import Check, Doctor


@click.command()
@click.option("--fix", is_flag=True, help="Apply safe fixes.")
@json_option
@click.pass_obj
def doctor(settings: Settings, fix: bool, as_json: bool) -> None:
    """Check the installation and show how to fix problems. Exits with 1 if there are errors."""
    checks = Doctor(settings, os.environ).run_checks()
    if fix and any(check.fix for check in checks):
        for check in checks:
            if check.fix is not None:
                check.fix()
        checks = Doctor(settings, os.environ).run_checks()
    if as_json:
        print_json([
            {"check": c.name, "verdict": c.verdict, "found": c.detail, "mend": c.remedy or None}
            for c in checks
        ])  # fmt: skip
    else:
        for check in checks:
            _print_check(check)
    if any(check.verdict == "wrong" for check in checks):
        raise SystemExit(1)


_COLOURS = {"ok": "green", "warning": "yellow", "wrong": "red"}


def _print_check(check: Check) -> None:
    verdict = click.style(f"{check.verdict:<8}", fg=_COLOURS[check.verdict])
    remedy = f"  -> {check.remedy}" if check.remedy else ""
    click.echo(f"{verdict}{check.name}: {check.detail}{remedy}")


commands = [doctor]
