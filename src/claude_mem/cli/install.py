"""claude-mem install, uninstall and doctor."""

import difflib
import os
import shlex
import shutil
import sqlite3
import sys
from pathlib import Path

import click

from claude_mem.cli.imports import import_and_report, transcripts_home
from claude_mem.cli.observer import switch
from claude_mem.cli.output import as_json_option, counted, print_json
from claude_mem.config import Layout, Settings, find_setting
from claude_mem.errors import ClaudeMemError, SettingsError
from claude_mem.install import attachment, claude_settings, installed_files, mcp_server, plugin
from claude_mem.install.claude import Claude, config_dir, find_claude
from claude_mem.install.claude_settings import Change
from claude_mem.install.doctor import Check, Doctor
from claude_mem.install.launcher import disarm_launcher, write_launcher
from claude_mem.intake.transcripts.importer import find_transcripts
from claude_mem.server import client
from claude_mem.store import StoreReader
from claude_mem.store.pages import Page

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
    Claude Code add the MCP server. Each way takes the place of the other.
    """  # fmt: skip
    layout = settings.layout
    if scope is None:
        done = _install_plugin(settings, dry_run)
    else:
        done = _install_in_settings(settings, scope, dry_run, yes)
    if dry_run:
        click.echo(done or "Nothing was changed.")
        return
    layout.create()
    write_launcher(layout)
    client.start(layout, os.environ)
    click.echo(done)
    click.echo("Memory is on: the next session of Claude Code is remembered.")
    asks = sys.stdin.isatty() and not yes
    choose_observer(settings, observer, asks, yes)
    offer_import(settings, remember_past, asks)
    click.echo("claude-mem doctor checks everything; claude-mem uninstall takes it back.")


def choose_observer(settings: Settings, chosen: str | None, asks: bool, yes: bool = False) -> None:
    setting = find_setting("CLAUDE_MEM_OBSERVER")
    now = settings.observer.kind
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
    layout = settings.layout
    claude = find_claude(settings, os.environ)
    if claude is None:
        raise ClaudeMemError(
            "Claude Code was not found. Install it, or name it: "
            "claude-mem settings CLAUDE_CODE_PATH /path/to/claude. "
            "Or write the hooks yourself: claude-mem install --scope user"
        )
    if dry_run:
        return "\n".join(_foreseen(claude, layout))
    layout.create()
    write_launcher(layout)
    plugin.install_plugin(claude, layout)
    said = [f"Installed the plugin {plugin.NAME} into Claude Code {claude.version()}."]
    said += attachment.take_out_servers(claude, layout, os.environ)
    return "\n".join((*said, *attachment.take_out_hooks(layout, os.environ)))


def _foreseen(claude: Claude, layout: Layout) -> list[str]:
    directory = plugin.installed_dir(layout)
    places = mcp_server.find_places(layout, os.environ)
    files = attachment.files_with_hooks(layout, os.environ)
    return [
        f"would write {directory} and {layout.launcher}, then run",
        f"  {claude.path} plugin marketplace add {directory}",
        f"  {claude.path} plugin install {plugin.NAME}@{plugin.MARKETPLACE}",
        *(f"  {claude.path} {shlex.join(('mcp', *place.removing))}" for place in places),
        *(f"and take our hooks out of {path}: the plugin brings them" for path in files),
    ]


def _install_in_settings(settings: Settings, scope: str, dry_run: bool, yes: bool) -> str:
    """Hooks and MCP server; the plugin goes, which brings both."""
    layout = settings.layout
    claude = find_claude(settings, os.environ)
    has_plugin = attachment.has_plugin(claude)
    if has_plugin and scope == "project":
        raise ClaudeMemError(
            "The plugin is installed: it attaches this project like every other. To attach this "
            "one alone: claude-mem uninstall, then claude-mem install --scope project"
        )
    said = [_install_hooks(layout, _settings_path(scope), dry_run, yes)]
    if has_plugin:
        said += (
            [f"would remove the plugin {plugin.NAME}: the hooks take its place"]
            if dry_run
            else attachment.take_out_plugin(claude, layout)
        )
    said.append(_install_server(claude, layout, scope, dry_run))
    return "\n".join(filter(None, said))


def _install_hooks(layout: Layout, path: Path, dry_run: bool, yes: bool) -> str:
    change = claude_settings.with_hooks(path, layout.launcher)
    if change.is_empty:
        return f"{path} has our hooks already."
    claude_settings.check_writable(path)
    if dry_run or (sys.stdin.isatty() and not yes):
        _print_diff(change)
    if dry_run:
        return ""
    if sys.stdin.isatty() and not yes:
        click.confirm(f"Change {path}?", default=True, abort=True)
    layout.create()
    write_launcher(layout)
    backup = installed_files.remember(layout, change)
    try:
        claude_settings.apply(change)
    except SettingsError:
        installed_files.forget(layout, path)
        raise
    kept = f" What it was before is kept in {backup}." if backup else ""
    return f"Wrote our hooks into {path}.{kept}"


def _install_server(claude: Claude | None, layout: Layout, scope: str, dry_run: bool) -> str:
    """What became of it: hooks remember without it, so that nothing here is an error."""
    command = shlex.join(("claude", "mcp", *mcp_server.adding(layout, scope)))
    if claude is None:
        return f"Claude Code was not found; for its tools of search run: {command}"
    if dry_run:
        return f"would run {command}"
    here = mcp_server.Place(scope, None if scope == "user" else Path.cwd())
    try:
        known = mcp_server.find_places(layout, os.environ)
        mcp_server.add_server(claude, layout, here, known)
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
    """Detach from Claude Code. The memory stays unless --purge is given.

    Exit code 1 if a file could not be changed; its hooks do nothing from now on, all the same.
    """
    layout = settings.layout
    if purge and not yes:
        click.confirm(f"Delete everything in {layout.root}?", abort=True)
    claude = find_claude(settings, os.environ)
    said = attachment.take_out_everything(claude, layout, os.environ)
    for line in said or ["No hook of ours was installed."]:
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
    if any(line.startswith(attachment.STAYS) for line in said):
        raise SystemExit(1)


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
