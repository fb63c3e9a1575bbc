"""Where settings come from: the environment, then settings.json, then the defaults."""

import json
from collections.abc import Mapping
from pathlib import Path

from claude_mem.config.layout import find_layout
from claude_mem.config.owner_only_file import write_private
from claude_mem.config.settings import (
    DATA_DIR,
    RETIRED,
    SETTINGS,
    Setting,
    Settings,
    Value,
    build_settings,
    format_value,
)
from claude_mem.errors import SettingsError

MOVE_ASIDE = "correct the file, or move it aside with claude-mem doctor --fix"
_NAMES = frozenset(setting.name for setting in SETTINGS)


def load_settings(environ: Mapping[str, str]) -> Settings:
    """Raises SettingsError for the first value that cannot be used."""
    settings, problems = load_usable_settings(environ)
    if problems:
        raise problems[0]
    return settings


def load_usable_settings(environ: Mapping[str, str]) -> tuple[Settings, list[SettingsError]]:
    """The settings, with the default for each value that cannot be used, and the problems.

    Callers that must keep working use it: a typing error must not stop the memory.
    """
    layout = find_layout(environ)
    values: dict[str, Value] = {}
    sources: dict[str, str] = {}
    problems: list[SettingsError] = []
    try:
        stored = read_settings_file(layout.settings)
    except SettingsError as error:
        stored = {}
        problems.append(error)
    for setting in SETTINGS:
        name = setting.name
        if environ.get(name):
            text, source = environ[name], "environment"
        elif name in stored and setting is not DATA_DIR:
            text, source = stored[name], "settings.json"
        else:
            continue
        try:
            values[name], sources[name] = setting.parse(text, source), source
        except SettingsError as error:
            unset = f"claude-mem settings {setting.short_name} --unset"
            remedy = f"unset {name}" if source == "environment" else unset
            problems.append(SettingsError(str(error), remedy))
    return build_settings(layout, values, sources), problems


def retired_settings(environ: Mapping[str, str]) -> list[str]:
    """Names of settings that earlier versions had and that are still set somewhere."""
    try:
        stored = _read_object(find_layout(environ).settings)
    except SettingsError:
        stored = {}
    return [name for name in RETIRED if environ.get(name) or name in stored]


def read_settings_file(path: Path) -> dict[str, str]:
    """The settings in the file; keys of other programs are ignored."""
    return {
        name: str(value)
        for name, value in _read_object(path).items()
        if name in _NAMES and isinstance(value, str | int) and str(value)
    }


def move_aside(path: Path) -> Path:
    """Keeps a settings file that cannot be read under another name, and returns it."""
    aside = path.with_name(f"{path.name}.invalid")
    path.chmod(0o600)
    path.replace(aside)
    return aside


def change_setting(path: Path, setting: Setting, text: str | None) -> None:
    """Write one setting, or remove it (None), and keep every other key of the file."""
    if setting is DATA_DIR:
        raise SettingsError(f"{setting.name} can only be set in the environment")
    content = _read_object(path)
    if text is None:
        content.pop(setting.name, None)
    else:
        content[setting.name] = format_value(setting.parse(text))
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_private(path, (json.dumps(content, indent=2) + "\n").encode())


def _read_object(path: Path) -> dict[str, object]:
    try:
        content = json.loads(path.read_text("utf-8") or "{}")
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise SettingsError(f"{path} cannot be read: {error}", MOVE_ASIDE) from None
    if not isinstance(content, dict):
        raise SettingsError(f"{path} does not contain a JSON object", MOVE_ASIDE)
    return content
