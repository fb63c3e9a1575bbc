"""Settings as data: one table of names, defaults and help, read at entry points only.

A value comes from the environment, else from settings.json in the data directory, else from the
table. docs/settings.md is checked against the table by a test.
"""

import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from claude_mem import paths
from claude_mem.errors import SettingsError


@dataclass(frozen=True, slots=True)
class Setting:
    name: str
    default: str
    help: str
    kind: type[int] | type[str] = str
    choices: tuple[str, ...] = ()
    smallest: int = 0
    largest: int = 1_000_000_000
    secret: bool = False  # never shown, served or logged

    def shown(self, value: str) -> str:
        return "(hidden)" if self.secret and value else value


SETTINGS: tuple[Setting, ...] = (
    Setting("CLAUDE_MEM_DATA_DIR", "~/.claude-mem", "where everything lies; environment only"),
    Setting(
        "CLAUDE_MEM_OBSERVER",
        "local",
        "what distils a turn into memory; local needs no model and no account",
        choices=("local", "claude", "anthropic", "openai"),
    ),
    Setting(
        "CLAUDE_MEM_MODEL",
        "",
        "the model that revises drafts; empty: claude-haiku-4-5; openai needs a name",
    ),
    Setting(
        "CLAUDE_MEM_VERBOSITY",
        "normal",
        "how much a model writes down",
        choices=("minimal", "normal", "verbose"),
    ),
    Setting(
        "CLAUDE_MEM_API_URL",
        "",
        "where the API of anthropic or openai is; empty: their own; https, or this machine",
    ),
    Setting(
        "CLAUDE_MEM_API_KEY",
        "",
        "the key of that API; kept in the system's keyring where there is one",
        secret=True,
    ),
    Setting(
        "CLAUDE_MEM_DAILY_REQUESTS",
        "200",
        "how often a model is asked on one day (UTC) at most, by all observers together",
        int,
    ),
    Setting(
        "CLAUDE_MEM_DAILY_TOKENS",
        "1000000",
        "how many tokens, sent and answered, models may take on one day (UTC)",
        int,
    ),
    Setting(
        "CLAUDE_MEM_UPGRADE_DRAFTS",
        "no",
        "whether drafts wait for a model that is out of quota, capped or not logged in",
        choices=("no", "yes"),
    ),
    Setting(
        "CLAUDE_MEM_REQUEST_SECONDS",
        "120",
        "how long a model may take for one answer",
        int,
        smallest=1,
        largest=3600,
    ),
    Setting(
        "CLAUDE_MEM_OBSERVER_CLIENTS",
        "2",
        "how many turns are revised at once, and how many Claude Code clients that takes",
        int,
        smallest=1,
        largest=8,
    ),
    Setting(
        "CLAUDE_MEM_OBSERVER_IDLE_SECONDS",
        "60",
        "after how long without work such a client is closed",
        int,
        largest=86400,
    ),
    Setting("CLAUDE_CODE_PATH", "", "the Claude Code command; empty: found on the PATH"),
    Setting(
        "CLAUDE_MEM_WORKER_PORT",
        "37777",
        "port on 127.0.0.1; the next free one if taken; 0: no port, Unix socket only",
        int,
        largest=65535,
    ),
    Setting(
        "CLAUDE_MEM_CONTEXT_TOKENS",
        "1800",
        "how many tokens of memory a new session is given at most; 0: none",
        int,
    ),
    Setting(
        "CLAUDE_MEM_SKIP_TOOLS",
        "ListMcpResourcesTool,SlashCommand,Skill,TodoWrite,AskUserQuestion",
        "tools whose use is never recorded, by comma",
    ),
    Setting(
        "CLAUDE_MEM_REDACT_ALLOW",
        "",
        "texts that are never taken for a secret, by comma",
    ),
    Setting(
        "CLAUDE_MEM_DELETE_TIMEOUT",
        "5000",
        "milliseconds that a deleted session's running work gets to end",
        int,
    ),
    Setting(
        "CLAUDE_MEM_IDLE_MINUTES",
        "30",
        "after how long without an event an unfinished turn is summarised",
        int,
        smallest=1,
    ),
    Setting(
        "CLAUDE_MEM_INTERRUPT_HOURS",
        "24",
        "after how long without an event an active session counts as interrupted",
        int,
        smallest=1,
    ),
    Setting(
        "CLAUDE_MEM_RAW_FIELD_BYTES", "8192", "longest field of a raw event", int, smallest=256
    ),
    Setting(
        "CLAUDE_MEM_UNDO_HOURS", "24", "hours in which what was forgotten can be brought back", int
    ),
    Setting("CLAUDE_MEM_RAW_DAYS", "30", "days that raw events are kept", int, smallest=1),
    Setting("CLAUDE_MEM_RAW_MEGABYTES", "200", "megabytes of raw events kept", int, smallest=1),
    Setting(
        "CLAUDE_MEM_SPOOL_WARN_FILES",
        "5000",
        "events waiting in the spool from which on it is reported",
        int,
        smallest=1,
    ),
    Setting(
        "CLAUDE_MEM_SPOOL_WARN_HOURS",
        "24",
        "age of a waiting event from which on it is reported",
        int,
        smallest=1,
    ),
    Setting("CLAUDE_MEM_BACKUPS", "3", "backups of the database that are kept", int, smallest=1),
    Setting(
        "CLAUDE_MEM_LOG_LEVEL",
        "INFO",
        "what the worker's log holds",
        choices=("DEBUG", "INFO", "WARNING", "ERROR"),
    ),
)
_BY_NAME = {setting.name: setting for setting in SETTINGS}

_OWN_NAMES = frozenset(
    os.fsdecode(name)
    for name in (
        paths.SPOOL, paths.CONTEXTS, paths.LOGS, paths.TROUBLE, paths.WAKE, paths.LOCK,
        paths.SOCKET, paths.WORKER_STATE, paths.LAST_WORKER_STATE, paths.LAUNCHER,
        paths.MCP_LAUNCHER, paths.DATABASE, paths.BACKUPS, paths.TOKEN, paths.SETTINGS,
        paths.ACTIVITY_FLAG, paths.OBSERVER, paths.AGREED,
        b"plugin", b"installed.json", b".trouble.told", b".launcher-told",
    )
)  # fmt: skip
_OWN_PREFIXES = (f"{os.fsdecode(paths.DATABASE)}-", f"{os.fsdecode(paths.DATABASE)}.damaged-")


@dataclass(frozen=True, slots=True)
class Layout:
    """The data directory's names as paths."""

    root: Path

    def at(self, name: bytes) -> Path:
        return self.root / os.fsdecode(name)

    @property
    def spool(self) -> Path:
        return self.at(paths.SPOOL)

    @property
    def rejected(self) -> Path:
        return self.at(paths.REJECTED)

    @property
    def contexts(self) -> Path:
        return self.at(paths.CONTEXTS)

    @property
    def worker_log(self) -> Path:
        return self.at(paths.WORKER_LOG)

    @property
    def hook_log(self) -> Path:
        return self.at(paths.HOOK_LOG)

    @property
    def wake(self) -> Path:
        return self.at(paths.WAKE)

    @property
    def lock(self) -> Path:
        return self.at(paths.LOCK)

    @property
    def socket(self) -> Path:
        return self.at(paths.SOCKET)

    @property
    def worker_state(self) -> Path:
        return self.at(paths.WORKER_STATE)

    @property
    def last_worker_state(self) -> Path:
        return self.at(paths.LAST_WORKER_STATE)

    @property
    def launcher(self) -> Path:
        return self.at(paths.LAUNCHER)

    @property
    def mcp_launcher(self) -> Path:
        return self.at(paths.MCP_LAUNCHER)

    @property
    def database(self) -> Path:
        return self.at(paths.DATABASE)

    @property
    def backups(self) -> Path:
        return self.at(paths.BACKUPS)

    @property
    def token(self) -> Path:
        return self.at(paths.TOKEN)

    @property
    def settings(self) -> Path:
        return self.at(paths.SETTINGS)

    @property
    def activity_flag(self) -> Path:
        return self.at(paths.ACTIVITY_FLAG)

    @property
    def observer(self) -> Path:
        return self.at(paths.OBSERVER)

    @property
    def agreed(self) -> Path:
        return self.at(paths.AGREED)

    def is_ours(self, name: str) -> bool:
        """Whether a name in the data directory is one that we make; it may not be ours alone."""
        return name in _OWN_NAMES or name.startswith(_OWN_PREFIXES)

    def create(self) -> None:
        """Makes the directories, for the owner alone."""
        for directory in (self.root, self.spool, self.rejected, self.contexts, self.backups,
                          self.worker_log.parent):  # fmt: skip
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            if directory.stat().st_mode & 0o077:
                directory.chmod(0o700)


@dataclass(frozen=True, slots=True)
class Settings:
    layout: Layout
    values: Mapping[str, str]
    sources: Mapping[str, str]

    def text(self, name: str) -> str:
        return self.values[name]

    def number(self, name: str) -> int:
        return int(self.values[name])

    def names(self, name: str) -> tuple[str, ...]:
        return tuple(part.strip() for part in self.values[name].split(",") if part.strip())


def load_settings(environ: Mapping[str, str]) -> Settings:
    """Raises at the first setting that cannot be used."""
    settings, wrong = load_usable_settings(environ)
    if wrong:
        raise SettingsError(wrong[0])
    return settings


def load_usable_settings(environ: Mapping[str, str]) -> tuple[Settings, list[str]]:
    """The default wherever a setting cannot be used, and what was wrong.

    For whoever must go on: a typing error must not stop the memory.
    """
    layout = find_layout(environ)
    wrong: list[str] = []
    try:
        stored = read_settings_file(layout.settings)
    except SettingsError as error:
        stored = {}
        wrong.append(str(error))
    values: dict[str, str] = {}
    sources: dict[str, str] = {}
    for setting in SETTINGS:
        name = setting.name
        if environ.get(name):
            value, source = environ[name], "environment"
        elif name in stored and name != "CLAUDE_MEM_DATA_DIR":
            value, source = stored[name], "settings.json"
        else:
            value, source = setting.default, "default"
        try:
            values[name], sources[name] = check_value(setting, value, source), source
        except SettingsError as error:
            values[name], sources[name] = setting.default, "default"
            wrong.append(str(error))
    values["CLAUDE_MEM_DATA_DIR"] = str(layout.root)
    return Settings(layout, values, sources), wrong


def find_layout(environ: Mapping[str, str]) -> Layout:
    encoded = {os.fsencode(name): os.fsencode(value) for name, value in environ.items()}
    root = paths.data_dir(encoded)
    if not root:
        raise SettingsError("neither CLAUDE_MEM_DATA_DIR nor HOME is set: where should I remember?")
    path = Path(os.fsdecode(root))
    if not path.is_absolute():
        # A hook runs in the project's directory, the worker elsewhere: they would part ways.
        raise SettingsError(f"CLAUDE_MEM_DATA_DIR={path} is not an absolute path")
    return Layout(path)


def find_setting(name: str) -> Setting:
    """By its name, with or without the prefix, in any case."""
    wanted = name.upper().replace("-", "_")
    for candidate in (wanted, f"CLAUDE_MEM_{wanted}"):
        if candidate in _BY_NAME:
            return _BY_NAME[candidate]
    raise SettingsError(f"there is no setting {name!r}: `claude-mem settings` lists them")


def check_value(setting: Setting, value: str, source: str) -> str:
    if setting.choices and value not in setting.choices:
        allowed = ", ".join(setting.choices)
        raise SettingsError(f"{setting.name}={value!r} ({source}) is not one of: {allowed}")
    if setting.kind is int:
        try:
            number = int(value[:40])
        except ValueError:
            raise SettingsError(f"{setting.name}={value!r} ({source}) is not a number") from None
        if number < setting.smallest:
            raise SettingsError(f"{setting.name}={number} ({source}) is under {setting.smallest}")
        if number > setting.largest:
            raise SettingsError(f"{setting.name}={number} ({source}) is over {setting.largest}")
        return str(number)
    return value


def read_settings_file(path: Path) -> dict[str, str]:
    """The names and values in the file; other tools' keys are left alone and passed over."""
    return {
        name: str(value)
        for name, value in _read_object(path).items()
        if name in _BY_NAME and isinstance(value, str | int) and str(value)
    }


def change_setting(path: Path, setting: Setting, value: str | None) -> None:
    """Writes one setting, or removes it, and keeps every other key of the file."""
    if setting.name == "CLAUDE_MEM_DATA_DIR":
        raise SettingsError("CLAUDE_MEM_DATA_DIR can only be set in the environment")
    content = _read_object(path)
    if value is None:
        content.pop(setting.name, None)
    else:
        content[setting.name] = check_value(setting, value, "given")
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_private(path, (json.dumps(content, indent=2) + "\n").encode())


def _read_object(path: Path) -> dict[str, object]:
    try:
        content = json.loads(path.read_text("utf-8") or "{}")
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise SettingsError(f"{path} cannot be read: {error}. Mend it or delete it.") from None
    if not isinstance(content, dict):
        raise SettingsError(f"{path} does not hold an object. Mend it or delete it.")
    return content


def write_private(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Replaces a file atomically, readable by its owner alone."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix="." + path.name)
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        temporary.chmod(mode)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
