"""claude-mem install, uninstall and doctor."""

import difflib
import os
import shlex
import shutil
import sqlite3
import sys
from pathlib import Path

import click

from claude_mem.cli.history import import_and_report, transcripts_home
from claude_mem.cli.observer import switch
from claude_mem.cli.output import as_json_option, counted, print_json
from claude_mem.config import Layout, Settings, find_setting
from claude_mem.errors import ClaudeMemError, SettingsError
from claude_mem.install import claude_settings, mcp_server, plugin, record
from claude_mem.install.claude import Claude, config_dir, find_claude
from claude_mem.install.claude_settings import Change
from claude_mem.install.doctor import Check, Doctor, settings_files
from claude_mem.install.launcher import disarm_launcher, write_launcher
from claude_mem.server import client
from claude_mem.store import StoreReader
from claude_mem.store.pages import Page
from claude_mem.worker.history import find_transcripts

SCOPES = ("user", "project")
NEVER_REFUSED = ("doctor", "uninstall")  # they must work where settings do not


@click.command()
@click.option(
    "--scope",
    type=click.Choice(SCOPES),
    help="Write hooks into settings.json instead of installing the plugin.",
)
@click.option("--dry-run", is_flag=True, help="Show what would change, and change nothing.")
@click.option(
    "--import/--no-import",
    "remember_past",
    default=None,
    help="Remember the sessions of the past at once, or not; otherwise you are asked.",
)
@click.option(
    "--observer",
    type=click.Choice(find_setting("CLAUDE_MEM_OBSERVER").choices),
    help="Who distils the sessions; otherwise you are asked where there is a choice.",
)
@click.option("--yes", is_flag=True, help="Ask nothing: attach, and leave the rest as it is.")
@click.pass_obj
def install(
    settings: Settings,
    scope: str | None,
    dry_run: bool,
    remember_past: bool | None,
    observer: str | None,
    yes: bool,
) -> None:
    """Attach to Claude Code. Run it again after an upgrade, or to mend things.

    Without --scope it installs a plugin through Claude Code's own plugin command. With --scope it
    writes hooks into ~/.claude/settings.json (user) or ./.claude/settings.json (project), and has
    Claude Code add the MCP server.
    """  # fmt: skip
    layout = settings.layout
    if scope is None:
        done = _install_plugin(settings, dry_run)
    else:
        done = _install_hooks(layout, _settings_path(scope), dry_run, yes)
        done = "\n".join(filter(None, (done, _install_server(settings, scope, dry_run))))
    if dry_run:
        click.echo(done or "Nothing was changed.")
        return
    layout.create()
    write_launcher(layout)
    client.start(layout)
    click.echo(done)
    click.echo("Memory is on: the next session of Claude Code is remembered.")
    asks = sys.stdin.isatty() and not yes
    choose_observer(settings, observer, asks, yes)
    offer_import(settings, remember_past, asks)
    click.echo("claude-mem doctor checks everything; claude-mem uninstall takes it back.")


def choose_observer(settings: Settings, chosen: str | None, asks: bool, yes: bool = False) -> None:
    setting = find_setting("CLAUDE_MEM_OBSERVER")
    now = settings.text(setting.name)
    if chosen is None and asks and len(setting.choices) > 1:
        chosen = click.prompt(
            "Who shall distil your sessions? local asks no model and costs nothing",
            type=click.Choice(setting.choices),
            default=now,
        )
    if chosen is not None and chosen != now:
        try:
            switch(settings, chosen, yes)
        except ClaudeMemError as error:  # the rest of the installation does not depend on it
            click.echo(f"{now} goes on to distil your sessions: {error}")
            return
        click.echo(f"{chosen} distils your sessions; claude-mem settings OBSERVER changes it.")


def offer_import(settings: Settings, wanted: bool | None, asks: bool) -> None:
    """Most people have months of sessions on their machine already."""
    files = find_transcripts([transcripts_home()])
    if wanted is None and files and asks:
        megabytes = sum(path.stat().st_size for path in files) / 1e6
        wanted = click.confirm(
            f"{counted(len(files), 'past session')} of Claude Code ({megabytes:.0f} MB) can be "
            "remembered, too. It takes seconds and asks no model. Import them?",
            default=True,
        )
    if wanted:
        import_and_report(settings, files)
    elif files:
        click.echo(f"{counted(len(files), 'past session')} can be remembered: claude-mem import")


def _install_plugin(settings: Settings, dry_run: bool) -> str:
    claude = find_claude(settings, os.environ)
    if claude is None:
        raise ClaudeMemError(
            "Claude Code was not found. Install it, or name it: "
            "claude-mem settings CLAUDE_CODE_PATH /path/to/claude. "
            "Or write the hooks yourself: claude-mem install --scope user"
        )
    directory = plugin.installed_dir(settings.layout)
    if dry_run:
        click.echo(f"would write {directory} and {settings.layout.launcher}, then run")
        click.echo(f"  {claude.path} plugin marketplace add {directory}")
        click.echo(f"  {claude.path} plugin install {plugin.NAME}@{plugin.MARKETPLACE}")
        return ""
    settings.layout.create()
    write_launcher(settings.layout)
    plugin.install_plugin(claude, settings.layout)
    return f"Installed the plugin {plugin.NAME} into Claude Code {claude.version()}."


def _install_hooks(layout: Layout, path: Path, dry_run: bool, yes: bool) -> str:
    change = claude_settings.with_hooks(path, layout.launcher)
    if change.is_empty:
        return f"{path} has our hooks already."
    if dry_run or (sys.stdin.isatty() and not yes):
        _print_diff(change)
    if dry_run:
        return ""
    if sys.stdin.isatty() and not yes:
        click.confirm(f"Change {path}?", default=True, abort=True)
    layout.create()
    write_launcher(layout)
    backup = record.remember(layout, change)
    try:
        claude_settings.apply(change)
    except SettingsError:
        record.forget(layout, path)
        raise
    kept = f" What it was before is kept in {backup}." if backup else ""
    return f"Wrote our hooks into {path}.{kept}"


def _install_server(settings: Settings, scope: str, dry_run: bool) -> str:
    """What became of it: hooks remember without it, so that nothing here is an error."""
    layout = settings.layout
    command = shlex.join(("claude", "mcp", *mcp_server.adding(layout, scope)))
    claude = find_claude(settings, os.environ)
    if claude is None:
        return f"Claude Code was not found; for its tools of search run: {command}"
    if dry_run:
        return f"would run {command}"
    try:
        if plugin.is_installed(claude):
            return ""  # which brings it
        mcp_server.add_server(claude, layout, scope, Path.cwd())
    except ClaudeMemError as error:
        return f"The MCP server could not be added: {error}"
    return "Added the MCP server, with which the agent can search."


def _settings_path(scope: str) -> Path:
    directory = config_dir(os.environ) if scope == "user" else Path.cwd() / ".claude"
    return directory / "settings.json"


def _print_diff(change: Change) -> None:
    before = (change.before or b"").decode("utf-8").splitlines(keepends=True)
    after = (change.after or b"").decode("utf-8").splitlines(keepends=True)
    name = str(change.path)
    for line in difflib.unified_diff(before, after, name, name):
        click.echo(line.rstrip("\n"))


@click.command()
@click.option("--purge", is_flag=True, help="Delete the memory, too.")
@click.option("--yes", is_flag=True, help="Ask nothing.")
@click.pass_obj
def uninstall(settings: Settings, purge: bool, yes: bool) -> None:
    """Detach from Claude Code. The memory stays unless --purge is given."""
    layout = settings.layout
    if purge and not yes:
        click.confirm(f"Delete everything in {layout.root}?", abort=True)
    for line in _detach(settings):
        click.echo(line)
    sessions_open = _open_sessions(layout)
    client.stop(layout)
    disarm_launcher(layout)
    if purge:
        stayed = _purge(layout, sessions_open)
        click.echo(f"Deleted the memory in {layout.root}.")
        if stayed:
            click.echo(f"Not ours, or still called, and left there: {', '.join(stayed)}")
    elif layout.database.exists():
        click.echo(f"The memory stays in {layout.root}; claude-mem uninstall --purge deletes it.")


def _detach(settings: Settings) -> list[str]:
    """Takes out exactly our entries, wherever they are; one line for each place."""
    layout = settings.layout
    said = []
    claude = find_claude(settings, os.environ)
    if claude is not None and plugin.remove_plugin(claude, layout):
        said.append(f"Removed the plugin {plugin.NAME}.")
    if claude is None and plugin.installed_dir(layout).exists():
        said.append(
            "Claude Code was not found, so its plugin may still be there: "
            f"claude plugin uninstall {plugin.NAME}@{plugin.MARKETPLACE}"
        )
    recorded = record.installed_files(layout)
    if claude is not None and _remove_servers(claude, [file.path for file in recorded]):
        said.append("Removed the MCP server.")
    taken = [f.path for f in recorded if not record.take_back(layout, f, layout.launcher).is_empty]
    said += [f"Took our hooks out of {path}." for path in taken]
    for path in settings_files(os.environ):
        try:
            change = claude_settings.without_hooks(path, layout.launcher)
            claude_settings.apply(change)
        except SettingsError as error:
            said.append(f"Look into this file yourself: {error}.")
        else:
            said += [] if change.is_empty else [f"Took our hooks out of {path}."]
    return said or ["No hook of ours was installed."]


def _remove_servers(claude: Claude, settings_files: list[Path]) -> bool:
    home = config_dir(os.environ)
    projects = [p.parents[1] for p in settings_files if p.parent != home and p.parents[1].is_dir()]
    removed = [mcp_server.remove_server(claude, "project", project) for project in projects]
    return mcp_server.remove_server(claude, "user", Path.home()) or any(removed)


def _open_sessions(layout: Layout) -> bool:
    if not layout.database.exists():
        return False
    try:
        with StoreReader.open_existing(layout.database) as store:
            latest, _ = store.page("sessions", Page(limit=20))
    except (ClaudeMemError, sqlite3.Error):
        return True  # nobody can say
    return any(session["status"] == "active" for session in latest)


def _purge(layout: Layout, sessions_open: bool) -> list[str]:
    """All that we made goes, but the launcher that open sessions call; the names of what stayed.

    Another claude-mem may live in the same directory: what is not ours is not touched.
    """
    if not layout.root.is_dir():
        return []
    for path in layout.root.iterdir():
        if not layout.is_ours(path.name) or (path == layout.launcher and sessions_open):
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    stayed = sorted(path.name for path in layout.root.iterdir())
    if not stayed:
        layout.root.rmdir()
    return stayed


@click.command()
@click.option("--fix", is_flag=True, help="Mend at once what is safe to mend.")
@as_json_option
@click.pass_obj
def doctor(settings: Settings, fix: bool, as_json: bool) -> None:
    """What is wrong, and the command that mends it. Exit code 1 if anything is."""
    examiner = Doctor(settings, os.environ)
    checks = examiner.examine()
    if fix and any(check.fix for check in checks):
        for check in checks:
            if check.fix is not None:
                check.fix()
        checks = examiner.examine()
    if as_json:
        print_json([
            {"check": c.name, "verdict": c.verdict, "found": c.found, "mend": c.mend or None}
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
    mend = f"  -> {check.mend}" if check.mend else ""
    click.echo(f"{verdict}{check.name}: {check.found}{mend}")


commands = [install, uninstall, doctor]
