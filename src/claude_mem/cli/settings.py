"""claude-mem settings: list, show and change settings."""

import os

import click

from claude_mem.cli.output import json_option, print_json, print_table
from claude_mem.cli.user_only import refuse_agents
from claude_mem.config import (
    SCRIPTS,
    SETTINGS,
    Setting,
    Settings,
    change_setting,
    find_setting,
    load_usable_settings,
)
from claude_mem.errors import SettingsError, WorkerError
from claude_mem.observer.models.keys import store_in_keyring
from claude_mem.server import client
from claude_mem.worker.lock import is_held


@click.command()
@click.argument("name", required=False)
@click.argument("value", required=False)
@click.option("--unset", is_flag=True, help="Reset NAME to its default.")
@json_option
@click.pass_obj
def settings(
    current: Settings, name: str | None, value: str | None, unset: bool, as_json: bool
) -> None:
    """List all settings, show NAME, or set NAME to VALUE in settings.json.

    NAME may be written without CLAUDE_MEM_. An environment variable with the full name overrides
    the file. A running worker uses a new value at once, unless the description of the setting says
    that it needs a restart.
    """
    if value is None and not unset:
        for problem in load_usable_settings(os.environ)[1]:
            click.echo(f"{problem}. To fix it: {problem.remedy}", err=True)
    if name is None:
        if unset:
            raise SettingsError("--unset needs the NAME of a setting")
        _list(current, as_json)
        return
    setting = find_setting(name)
    if setting is SCRIPTS and value is not None:
        refuse_agents()
    if unset or value is not None:
        note = _change(current, setting, None if unset else value)
        is_applied = _apply_to_worker(current, setting)
        if not as_json:
            new = "reset to its default" if unset else f"= {setting.mask(value or '')}"
            click.echo(f"{setting.name} {new}{note}")
            if not is_applied:
                click.echo("To apply it to the running worker: claude-mem worker restart")
            return
    shown = {"name": setting.name,
             "value": setting.mask(value or current.text_of(setting)),
             "default": setting.default_text, "help": setting.help}  # fmt: skip
    if as_json:
        print_json(shown)  # type: ignore[arg-type]
    else:
        click.echo(f"{setting.name}={setting.mask(current.text_of(setting))} "
                   f"({current.source_of(setting)})\n{setting.help}")  # fmt: skip


def _change(current: Settings, setting: Setting, value: str | None) -> str:
    """Returns a note about where the value was stored, if it is a secret."""
    path = current.layout.settings
    if not setting.secret:
        change_setting(path, setting, value)
        return ""
    if store_in_keyring(current.layout, value):
        change_setting(path, setting, None)
        return " (stored in the keyring)" if value is not None else ""
    change_setting(path, setting, value)
    return f" (stored in {path.name}: no keyring is available)" if value is not None else ""


def _apply_to_worker(current: Settings, setting: Setting) -> bool:
    """Returns whether the worker, if it is running, uses the new value."""
    if not is_held(current.layout):
        return True
    # A key in the keyring is not part of the settings: only a restarted observer reads it.
    route = "/api/observer" if setting.secret else "/api/settings/reload"
    try:
        client.ask_worker(current.layout, route, {})
    except WorkerError:
        return False
    return not setting.needs_restart


def _list(current: Settings, as_json: bool) -> None:
    rows = [
        {
            "name": setting.name,
            "value": setting.mask(current.text_of(setting)),
            "source": current.source_of(setting),
            "default": setting.default_text,
            "help": setting.help,
        }
        for setting in SETTINGS
    ]
    if as_json:
        print_json(list(rows))  # type: ignore[arg-type]
    else:
        print_table(
            ("setting", "value", "source", "meaning"),
            [(row["name"], row["value"], row["source"], row["help"]) for row in rows],
        )


commands = [settings]
