"""claude-mem settings: the table of settings, and changing one."""

import click

from claude_mem.cli.output import as_json_option, print_json, print_table
from claude_mem.config import SETTINGS, Setting, Settings, change_setting, find_setting
from claude_mem.errors import SettingsError, WorkerError
from claude_mem.observer.models.keys import store_in_keyring
from claude_mem.server import client
from claude_mem.worker.lock import is_held


@click.command()
@click.argument("name", required=False)
@click.argument("value", required=False)
@click.option("--unset", is_flag=True, help="Go back to the default.")
@as_json_option
@click.pass_obj
def settings(
    current: Settings, name: str | None, value: str | None, unset: bool, as_json: bool
) -> None:
    """All settings; NAME alone shows one, NAME VALUE changes it in settings.json.

    A variable of the same name in the environment wins over the file. A running worker uses
    the new value at once, unless the help says that it needs a restart.
    """
    if name is None:
        if unset:
            raise SettingsError("say which setting to unset")
        _list(current, as_json)
        return
    setting = find_setting(name)
    if unset or value is not None:
        place = _change(current, setting, None if unset else value)
        follows = _tell_worker(current, setting)
        if not as_json:
            new = setting.mask(value or "")
            click.echo(f"{setting.name} {'is back to its default' if unset else f'= {new}'}{place}")
            if not follows:
                click.echo("The running worker keeps the old value: claude-mem worker restart")
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
    """Where it was put, if not into the file."""
    path = current.layout.settings
    if not setting.secret:
        change_setting(path, setting, value)
        return ""
    if store_in_keyring(current.layout, value):
        change_setting(path, setting, None)
        return " (in the keyring)" if value is not None else ""
    change_setting(path, setting, value)
    return f" (in {path.name}: there is no keyring here)" if value is not None else ""


def _tell_worker(current: Settings, setting: Setting) -> bool:
    """Whether a running worker, if there is one, uses the new value."""
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
            ("setting", "value", "from", "what it is for"),
            [(row["name"], row["value"], row["source"], row["help"]) for row in rows],
        )


commands = [settings]
