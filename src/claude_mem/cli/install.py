"""claude-mem install and uninstall."""

import os
import shlex
import shutil
import sqlite3
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import click

from claude_mem.agents import CLAUDE, installable_agents
from claude_mem.agents.agent import Agent, AgentEvent
from claude_mem.cli.other_agents import (
    ALL,
    CHOICES,
    chosen_agents,
    install_agents,
    offer_agents,
    preview,
    print_diff,
    uninstall_agents,
)
from claude_mem.config import Layout, Settings, change_setting, find_setting, record_environment
from claude_mem.distribution import (
    COMMAND,
    environment_without,
    installer_for_good,
    is_cache,
    lasting_command,
    own_passing_place,
)
from claude_mem.errors import ClaudeMemError
from claude_mem.install import (
    attachment,
    changed_files,
    mcp_server,
    other_agents,
    plugin,
)
from claude_mem.install.changed_files import Outcome
from claude_mem.install.claude import Claude, config_dir, find_claude
from claude_mem.install.hooks import events_for, hooks_in
from claude_mem.install.launcher import disarm_launcher, write_launcher
from claude_mem.install.other_agents import files_with_entries
from claude_mem.install.settings_files import check_writable
from claude_mem.server import client
from claude_mem.store import StoreReader
from claude_mem.store.listing import Page
from claude_mem.text import pluralize

SCOPES = ("user", "project")


@click.command()
@click.option(
    "--scope",
    type=click.Choice(SCOPES),
    help="Install for the user or only for this project. For Claude Code, this writes hooks to "
    "settings.json instead of installing the plugin.",
)
@click.option(
    "--agent",
    "agents",
    multiple=True,
    type=click.Choice(CHOICES),
    help='Agent to add claude-mem to; can be repeated. "all": every agent that is found on this '
    "machine.",
)
@click.option("--rules", is_flag=True, help="Also write a rules file (only for --agent windsurf).")
@click.option("--dry-run", is_flag=True, help="Show what would change without changing it.")
@click.option(
    "--import/--no-import",
    "import_past",
    default=None,
    help="Whether to import past sessions (default: ask).",
)
@click.option(
    "--observer",
    type=click.Choice(find_setting("CLAUDE_MEM_OBSERVER").choices),
    help="Which observer summarises sessions (default: ask).",
)
@click.option(
    "--yes",
    is_flag=True,
    help="Do not ask; without --import and --observer, import nothing and keep the observer.",
)
@click.pass_obj
def install(
    settings: Settings,
    scope: str | None,
    agents: tuple[str, ...],
    rules: bool,
    dry_run: bool,
    import_past: bool | None,
    observer: str | None,
    yes: bool,
) -> None:
    """Add claude-mem to agents. Run it again after an upgrade or to repair the installation.

    Without --agent, it adds claude-mem to Claude Code and offers to add it to other agents on this
    machine. With --agent, it adds claude-mem to those agents, for the user or with --scope project
    for this directory.

    For Claude Code, without --scope it installs a plugin with Claude Code's plugin command. With
    --scope it adds hooks to ~/.claude/settings.json (user) or ./.claude/settings.json (project)
    and registers the MCP server. Each way replaces the other.
    """
    layout = settings.layout
    if (place := own_passing_place(layout.root)) is not None:
        _install_for_good(place, dry_run)
    others = chosen_agents(agents)
    if agents and not _includes_claude(settings, agents):
        _install_others(others, layout, scope or "user", rules, dry_run, yes)
        return
    if scope is None:
        report = _install_plugin(settings, dry_run)
    else:
        report = _install_in_settings(settings, scope, dry_run, yes)
    if dry_run:
        click.echo(report or "Nothing would change.")
        preview(others, layout, scope or "user", rules)
        return
    _start_memory(layout)
    click.echo(report)
    click.echo("Memory is on, starting with the next session of Claude Code.")
    interactive = sys.stdin.isatty() and not yes
    if agents:
        install_agents(others, layout, scope or "user", rules=rules, yes=yes)
    else:
        other_agents.refresh(layout, os.environ)
        offer_agents(layout, interactive=interactive)
    settings = choose_record(settings, interactive)
    offer_import(settings, import_past, interactive)
    choose_observer(settings, observer, interactive, yes)  # what a model costs is known by now
    click.echo("Check it with claude-mem doctor; remove it with claude-mem uninstall.")


def _install_for_good(place: Path, dry_run: bool) -> None:
    """Install the package where it stays, and go on with the installed command: what this copy
    would write into the settings of agents would stop working when its directory is emptied."""
    installer = installer_for_good(os.environ)
    if installer is None or not is_cache(place):
        raise ClaudeMemError(
            f"this copy is in {place}, whose files are deleted at some time, and the hooks with"
            f" them. Install it where it stays: {lasting_command(os.environ)}, then run its"
            f" {COMMAND} install"
        )
    environ = environment_without(place, os.environ)
    if dry_run:
        click.echo(f"This copy is in the cache {place}. Would first run {installer.command_line}")
        return
    click.echo(f"This copy is in the cache {place}. Installing it where it stays:")
    click.echo(f"  {installer.command_line}")
    command = installer.install(environ)
    sys.stdout.flush()
    os.execve(command, [str(command), *sys.argv[1:]], environ)


def _start_memory(layout: Layout) -> None:
    layout.create()
    record_environment(layout, os.environ)
    write_launcher(layout)
    _, is_new = client.start(layout, os.environ)
    if not is_new:  # it may run an earlier state of the same version
        client.stop(layout)
        client.start(layout, os.environ)


def _includes_claude(settings: Settings, agents: tuple[str, ...]) -> bool:
    if "claude" in agents:
        return True
    return ALL in agents and find_claude(settings, os.environ) is not None


def _install_others(
    agents: list[Agent], layout: Layout, scope: str, rules: bool, dry_run: bool, yes: bool
) -> None:
    if not agents:
        raise ClaudeMemError("No agent was found on this machine. Name one: --agent codex")
    if dry_run:
        if not preview(agents, layout, scope, rules):
            click.echo("Nothing would change.")
        return
    _start_memory(layout)
    install_agents(agents, layout, scope, rules=rules, yes=yes)
    click.echo("Memory is on, starting with the next session.")
    from claude_mem.cli.imports import all_transcripts  # loads much, which a dry run does not need

    for agent in agents:
        if agent.transcripts and (files := all_transcripts((agent.name,))):
            count = pluralize(len(files), "file")
            click.echo(f"To import past sessions ({count}): claude-mem import --agent {agent.name}")
    click.echo("Check it with claude-mem doctor; remove it with claude-mem uninstall.")


def choose_observer(
    settings: Settings, name: str | None, interactive: bool, yes: bool = False
) -> None:
    setting = find_setting("CLAUDE_MEM_OBSERVER")
    current = settings.observer.kind
    if name is None and interactive and len(setting.choices) > 1:
        from claude_mem.cli.observer_recommendation import recommendation

        if advice := recommendation(settings, os.environ):
            click.echo(advice)
        name = click.prompt(
            "Which observer should summarise sessions? local uses no model and costs nothing",
            type=click.Choice(setting.choices),
            default=current,
        )
    if name is not None and name != current:
        from claude_mem.cli.observer import switch

        try:
            switch(settings, name, yes)
        except ClaudeMemError as error:  # the rest of the installation does not depend on it
            click.echo(f"The observer is still {current}: {error}")
            return
        click.echo(f"The observer is {name}. To change it: claude-mem observer NAME")


def choose_record(settings: Settings, interactive: bool) -> Settings:
    """Say what is stored of every turn and ask for consent; returns the new settings."""
    if not settings.record.is_on:
        click.echo("The text of turns is not stored: CLAUDE_MEM_RECORD_DAYS is 0.")
        return settings
    text = (
        "The text that you and the agent write in each turn (not tool output) is stored on this"
        " machine, without secrets and <private> text, so that search finds it."
    )
    if not interactive:
        click.echo(f"{text} To turn it off: claude-mem settings RECORD_DAYS 0")
    elif not click.confirm(f"{text} Store it?", default=True):
        change_setting(settings.layout.settings, find_setting("CLAUDE_MEM_RECORD_DAYS"), "0")
        client.ask_worker(settings.layout, "/api/settings/reload", {})
        click.echo("It is not stored. To turn it on: claude-mem settings RECORD_DAYS forever")
        return replace(settings, record=replace(settings.record, days=0))
    return settings


def offer_import(settings: Settings, import_past: bool | None, interactive: bool) -> None:
    from claude_mem.cli.imports import claude_transcripts_home, find_transcripts, import_and_report

    files = find_transcripts([claude_transcripts_home()])
    if import_past is None and files and interactive:
        megabytes = sum(path.stat().st_size for path in files) / 1e6
        import_past = click.confirm(
            f"Import {pluralize(len(files), 'past session')} of Claude Code ({megabytes:.0f} MB)? "
            "This takes seconds and uses no model.",
            default=True,
        )
    if import_past:
        import_and_report(settings, files)
    elif files:
        click.echo(f"To import {pluralize(len(files), 'past session')}: claude-mem import")


def _install_plugin(settings: Settings, dry_run: bool) -> str:
    layout = settings.layout
    claude = find_claude(settings, os.environ)
    if claude is None:
        raise ClaudeMemError(
            f"Claude Code was not found. {_found_agents()}Install it, or set its path: "
            "claude-mem settings CLAUDE_CODE_PATH /path/to/claude. "
            "Or install without it: claude-mem install --scope user"
        )
    if dry_run:
        return "\n".join(_plugin_steps(claude, layout))
    layout.create()
    write_launcher(layout)
    plugin.install_plugin(claude, layout, _events(settings))
    outcomes = [
        *attachment.remove_servers(claude, layout, os.environ),
        *attachment.remove_hooks(layout, os.environ),
    ]
    installed = f"Installed the plugin {plugin.NAME} in Claude Code {claude.version()}."
    return "\n".join((installed, *(outcome.text for outcome in outcomes)))


def _found_agents() -> str:
    return "".join(
        f"{agent.title} was found: {COMMAND} install --agent {agent.name}. "
        for agent in other_agents.present_agents(os.environ)
    )


def _plugin_steps(claude: Claude, layout: Layout) -> list[str]:
    directory = plugin.installed_dir(layout)
    places = mcp_server.find_places(layout, os.environ)
    files = attachment.files_with_hooks(layout, os.environ)
    return [
        f"Would write {directory} and {layout.launcher}, then run",
        f"  {claude.path} plugin marketplace add {directory}",
        f"  {claude.path} plugin install {plugin.ID}",
        *(f"  {claude.path} {shlex.join(('mcp', *place.remove_arguments))}" for place in places),
        *(f"Would remove our hooks from {path}: the plugin replaces them." for path in files),
    ]


def _install_in_settings(settings: Settings, scope: str, dry_run: bool, yes: bool) -> str:
    """Add hooks and MCP server, and remove the plugin, which has both."""
    layout = settings.layout
    claude = find_claude(settings, os.environ)
    has_plugin = attachment.has_plugin(claude)
    if has_plugin and scope == "project":
        raise ClaudeMemError(
            "The plugin is installed for every project. To install for this project only: "
            "claude-mem uninstall, then claude-mem install --scope project"
        )
    lines = [_install_hooks(layout, _settings_path(scope), _events(settings), dry_run, yes)]
    if has_plugin and dry_run:
        lines.append(f"Would remove the plugin {plugin.NAME}: the hooks replace it.")
    elif has_plugin:
        lines += [outcome.text for outcome in attachment.remove_plugin(claude, layout)]
    lines.append(_install_server(claude, layout, scope, dry_run))
    return "\n".join(filter(None, lines))


def _events(settings: Settings) -> tuple[AgentEvent, ...]:
    return events_for(file_hints=settings.context.file_hints)


def _install_hooks(
    layout: Layout, path: Path, events: tuple[AgentEvent, ...], dry_run: bool, yes: bool
) -> str:
    file = hooks_in(path, layout.launcher, events)
    change = file.with_ours()
    if change.is_empty:
        return f"Our hooks are already in {path}."
    check_writable(path)
    if dry_run or (sys.stdin.isatty() and not yes):
        print_diff(change)
    if dry_run:
        return ""
    if sys.stdin.isatty() and not yes:
        click.confirm(f"Change {path}?", default=True, abort=True)
    layout.create()
    write_launcher(layout)
    return f"Added our hooks to {path}.{changed_files.write(layout, file, change, CLAUDE)}"


def _install_server(claude: Claude | None, layout: Layout, scope: str, dry_run: bool) -> str:
    """Returns a report instead of raising: recording works without the MCP server."""
    command = shlex.join(("claude", "mcp", *mcp_server.add_arguments(layout, scope)))
    if claude is None:
        return f"Claude Code was not found. To let the agent search, run: {command}"
    if dry_run:
        return f"Would run {command}"
    place = mcp_server.Place(scope, None if scope == "user" else Path.cwd())
    try:
        existing = mcp_server.find_places(layout, os.environ)
        mcp_server.add_server(claude, layout, place, existing)
    except ClaudeMemError as error:
        return f"The MCP server could not be added: {error}"
    return "Added the MCP server, so that the agent can search."


def _settings_path(scope: str) -> Path:
    directory = config_dir(os.environ) if scope == "user" else Path.cwd() / ".claude"
    return directory / "settings.json"


@click.command()
@click.option(
    "--agent",
    "agents",
    multiple=True,
    type=click.Choice(CHOICES[:-1]),
    help="Remove it only from this agent; can be repeated.",
)
@click.option("--purge", is_flag=True, help="Also delete all memories.")
@click.option("--dry-run", is_flag=True, help="Show what would be removed without removing it.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.pass_obj
def uninstall(
    settings: Settings, agents: tuple[str, ...], purge: bool, dry_run: bool, yes: bool
) -> None:
    """Remove claude-mem from all agents. Memories are kept unless --purge is given.

    Exits with 1 if a settings file could not be changed; the hooks left in it do nothing.
    """
    layout = settings.layout
    if dry_run:
        for line in _preview_uninstall(settings, agents, purge):
            click.echo(line)
        return
    if purge and not yes:
        click.confirm(f"Delete everything in {layout.root}?", abort=True)
    outcomes = _detach(settings, agents)
    for outcome in outcomes or [Outcome("claude-mem was not installed.")]:
        click.echo(outcome.text)
    if agents:  # the others go on
        if any(outcome.failed for outcome in outcomes):
            raise SystemExit(1)
        return
    sessions_open = _has_open_sessions(layout)
    client.stop(layout)
    disarm_launcher(layout)
    if purge:
        remaining = _purge(layout, sessions_open)
        click.echo(f"Deleted the memories in {layout.root}.")
        if remaining:
            click.echo(f"Not deleted (not ours, or still in use): {', '.join(remaining)}")
    elif layout.database.exists():
        click.echo(
            f"The memories are kept in {layout.root}. To delete them: claude-mem uninstall --purge"
        )
    if any(outcome.failed for outcome in outcomes):
        raise SystemExit(1)


def _preview_uninstall(settings: Settings, agents: tuple[str, ...], purge: bool) -> Iterator[str]:
    layout = settings.layout
    parts = [
        f"the entries of {agent.title} in {path}"
        for agent in installable_agents()
        if not agents or agent.name in agents
        for path in files_with_entries(agent, layout, os.environ)
    ]
    if not agents or "claude" in agents:
        parts = [
            *attachment.attached(find_claude(settings, os.environ), layout, os.environ),
            *parts,
        ]
    for part in parts:
        yield f"Would remove {part}"
    if not parts:
        yield "claude-mem is not installed: there is nothing to remove."
    if agents:
        return
    if client.running_worker(layout) is not None:
        yield "Would stop the worker"
    if layout.root.is_dir():
        yield (
            f"Would delete the memories in {layout.root}"
            if purge
            else f"Would keep the memories in {layout.root} (--purge deletes them)"
        )


def _detach(settings: Settings, agents: tuple[str, ...]) -> list[Outcome]:
    layout = settings.layout
    others = [agent for agent in installable_agents() if not agents or agent.name in agents]
    outcomes = uninstall_agents(others, layout)
    if not agents or "claude" in agents:
        claude = find_claude(settings, os.environ)
        outcomes = [*attachment.detach(claude, layout, os.environ), *outcomes]
    return outcomes


def _has_open_sessions(layout: Layout) -> bool:
    if not layout.database.exists():
        return False
    try:
        with StoreReader.open_existing(layout.database) as store:
            latest, _ = store.page("sessions", Page(limit=20))
    except (ClaudeMemError, sqlite3.Error):
        return True  # unknown: keep the launcher
    return any(session["status"] == "active" for session in latest)


def _purge(layout: Layout, sessions_open: bool) -> list[str]:
    """Delete our files, except for the launcher if open sessions call it; returns what remains.

    Another claude-mem may use the same directory: its files are not touched.
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
    remaining = sorted(path.name for path in layout.root.iterdir())
    if not remaining:
        layout.root.rmdir()
    return remaining


commands = [install, uninstall]
