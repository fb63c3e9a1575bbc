"""The settings as typed values, grouped by the part of the program that uses them.

Each field declares its variable, default, help and bounds. SETTINGS, the table for the command,
the HTTP API and docs/settings.md, is derived from these declarations.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, Literal, TypeVar, get_args

from claude_mem.config.layout import Layout
from claude_mem.errors import SettingsError
from claude_mem.types import Verbosity

ObserverKind = Literal["local", "claude", "anthropic", "openai"]
EmbedderKind = Literal["static", "onnx", "fastembed", "endpoint", "none"]
LogLevel = Literal["DEBUG", "INFO", "WARNING", "ERROR"]

Value = bool | int | str | tuple[str, ...]
T = TypeVar("T", bound=Value)

NO, YES = "no", "yes"
LARGEST_NUMBER = 1_000_000_000
FOREVER = 1_000_000  # days


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting as data."""

    name: str
    default: Value
    help: str
    choices: tuple[str, ...] = ()
    minimum: int = 0
    maximum: int = LARGEST_NUMBER
    no_limit: str = ""  # the word for the largest number
    secret: bool = False  # never shown, served or logged
    needs_restart: bool = False  # a running worker keeps the old value
    protected: bool = False  # names a program, a path or an address, or gives a right

    @property
    def default_text(self) -> str:
        return self.format(self.default)

    def format(self, value: Value) -> str:
        """Formats the value as the environment or settings.json would hold it."""
        if self.no_limit and value == self.maximum:
            return self.no_limit
        return format_value(value)

    def mask(self, text: str) -> str:
        return "(hidden)" if self.secret and text else text

    def parse(self, text: str, source: str = "") -> Value:
        """`source` says in the error where the text came from."""
        shown = f"{self.name}={self.mask(text)!r}" + (f" ({source})" if source else "")
        if self.choices and text not in self.choices:
            raise SettingsError(f"{shown} must be one of: {', '.join(self.choices)}")
        if isinstance(self.default, bool):
            return text == YES
        if isinstance(self.default, int):
            return self._parse_number(text, shown)
        if isinstance(self.default, tuple):
            return tuple(part.strip() for part in text.split(",") if part.strip())
        return text

    def _parse_number(self, text: str, shown: str) -> int:
        if self.no_limit and text == self.no_limit:
            return self.maximum
        try:
            number = int(text[:40])
        except ValueError:
            number = self.minimum - 1
        if not self.minimum <= number <= self.maximum:
            no_limit = f" or {self.no_limit}" if self.no_limit else ""
            raise SettingsError(
                f"{shown} must be a whole number from {self.minimum} to {self.maximum}{no_limit}"
                f" (default {self.default_text})"
            )
        return number

    @property
    def short_name(self) -> str:
        """The name as a user may type it."""
        return self.name.removeprefix("CLAUDE_MEM_")


def format_value(value: Value) -> str:
    if isinstance(value, bool):
        return YES if value else NO
    return ",".join(value) if isinstance(value, tuple) else str(value)


def declare(
    name: str,
    default: T,
    help: str,  # noqa: A002
    *,
    choices: tuple[str, ...] = (),
    minimum: int = 0,
    maximum: int = LARGEST_NUMBER,
    no_limit: str = "",
    secret: bool = False,
    needs_restart: bool = False,
    protected: bool = False,
) -> T:
    """A dataclass field that is a setting."""
    if isinstance(default, bool):
        choices = (NO, YES)
    setting = Setting(
        name, default, help, choices, minimum, maximum, no_limit, secret, needs_restart, protected
    )
    return field(default=default, metadata={Setting: setting})


@dataclass(frozen=True, slots=True)
class ObserverSettings:
    kind: ObserverKind = declare(
        "CLAUDE_MEM_OBSERVER",
        "local",
        "what summarises sessions: local needs no model and no account; claude uses Claude Code; "
        "anthropic and openai use an API",
        choices=get_args(ObserverKind),
    )
    model: str = declare(
        "CLAUDE_MEM_MODEL",
        "",
        "model that revises drafts; empty: claude-haiku-4-5 (openai needs a name)",
    )
    verbosity: Verbosity = declare(
        "CLAUDE_MEM_VERBOSITY",
        "normal",
        "how much is remembered of a turn, by the local observer and by a model: minimal, normal "
        "or verbose",
        choices=get_args(Verbosity),
    )
    api_url: str = declare(
        "CLAUDE_MEM_API_URL",
        "",
        "URL of the anthropic or openai API, https or on this machine; empty: the provider's own",
        protected=True,
    )
    api_key: str = declare(
        "CLAUDE_MEM_API_KEY",
        "",
        "key for that API; stored in the system keyring if there is one",
        secret=True,
    )
    daily_requests: int = declare(
        "CLAUDE_MEM_DAILY_REQUESTS",
        200,
        "maximum requests to models per day (UTC), all observers together",
    )
    daily_tokens: int = declare(
        "CLAUDE_MEM_DAILY_TOKENS",
        1_000_000,
        "maximum tokens per day (UTC), input and output, all observers together",
    )
    upgrade_drafts: bool = declare(
        "CLAUDE_MEM_UPGRADE_DRAFTS",
        False,
        "keep drafts queued while the model is out of quota, over a daily limit or not logged in: "
        "yes or no",
    )
    request_seconds: int = declare(
        "CLAUDE_MEM_REQUEST_SECONDS",
        120,
        "timeout of a request to a model, in seconds",
        minimum=1,
        maximum=3600,
    )
    clients: int = declare(
        "CLAUDE_MEM_OBSERVER_CLIENTS",
        2,
        "maximum number of turns revised at a time, and of Claude Code processes for it",
        minimum=1,
        maximum=8,
    )
    claude_code_path: str = declare(
        "CLAUDE_CODE_PATH",
        "",
        "the Claude Code executable; empty: searched for on the PATH and in the usual directories",
        protected=True,
    )


@dataclass(frozen=True, slots=True)
class EmbedderSettings:
    kind: EmbedderKind = declare(
        "CLAUDE_MEM_EMBEDDER",
        "static",
        "model for semantic search: static ships with the package; onnx and fastembed need "
        "claudemem[semantic]; endpoint sends texts to CLAUDE_MEM_EMBEDDER_URL, after your "
        "consent; none: full text only",
        choices=get_args(EmbedderKind),
    )
    model: str = declare(
        "CLAUDE_MEM_EMBEDDER_MODEL",
        "",
        "for onnx a directory with model.onnx and tokenizer.json, otherwise the model's name",
        protected=True,
    )
    url: str = declare(
        "CLAUDE_MEM_EMBEDDER_URL",
        "",
        "for endpoint: the URL for embeddings, https or on this machine, such as "
        "http://127.0.0.1:11434/api/embed (Ollama) or https://host/v1/embeddings (OpenAI)",
        protected=True,
    )
    key_file: str = declare(
        "CLAUDE_MEM_EMBEDDER_KEY_FILE",
        "",
        "for endpoint: a file with the API key; empty: no key is sent",
        protected=True,
    )
    chroma_url: str = declare(
        "CLAUDE_MEM_CHROMA_URL",
        "",
        "a Chroma server on this machine that finds the nearest vectors, such as "
        "http://127.0.0.1:8000; empty: the worker compares them itself",
        protected=True,
    )


@dataclass(frozen=True, slots=True)
class ContextSettings:
    tokens: int = declare(
        "CLAUDE_MEM_CONTEXT_TOKENS",
        1000,
        "maximum tokens of the context of a new session, up to 7425; 0: no context",
        maximum=7_425,  # 9,900 UTF-16 units, what a client passes on, have at most 3 bytes each
    )
    hints: bool = declare(
        "CLAUDE_MEM_HINTS",
        True,
        "add related text from earlier sessions to a prompt if it is likely to be relevant: "
        "yes or no",
    )
    file_hints: bool = declare(
        "CLAUDE_MEM_FILE_HINTS",
        False,
        "before Claude Code reads or edits a file, tell it the known gotchas of that file: yes or "
        "no; to add or remove the hook that this needs, run claude-mem install again",
    )


@dataclass(frozen=True, slots=True)
class CaptureSettings:
    skip_tools: tuple[str, ...] = declare(
        "CLAUDE_MEM_SKIP_TOOLS",
        ("ListMcpResourcesTool", "SlashCommand", "Skill", "TodoWrite", "AskUserQuestion"),
        "tools to ignore, separated by commas; with the default list, questions, answers and tasks "
        "are still kept in the record",
    )
    redact_allow: tuple[str, ...] = declare(
        "CLAUDE_MEM_REDACT_ALLOW",
        (),
        "texts that are never redacted as secrets, separated by commas",
    )
    excluded_projects: tuple[str, ...] = declare(
        "CLAUDE_MEM_EXCLUDED_PROJECTS",
        (),
        "projects that are not recorded, separated by commas: patterns for the directory (with "
        "everything below it), the key or the name, such as ~/clients/*,*/secret-*",
    )
    client_memory: bool = declare(
        "CLAUDE_MEM_CLIENT_MEMORY",
        True,
        "make the memory files of Claude Code and Codex searchable; they are only read: yes or no",
    )
    event_seconds: int = declare(
        "CLAUDE_MEM_EVENT_SECONDS",
        60,
        "maximum seconds to read one event; after that, the worker ends and the next one retries; "
        "an event that takes too long twice is set aside",
        minimum=1,
        maximum=3600,
    )


@dataclass(frozen=True, slots=True)
class SessionSettings:
    delete_timeout: int = declare(
        "CLAUDE_MEM_DELETE_TIMEOUT",
        5000,
        "maximum milliseconds to wait for the jobs of a session that is stopped (DELETE "
        "/sessions/{id}) or forgotten for good",
    )
    idle_minutes: int = declare(
        "CLAUDE_MEM_IDLE_MINUTES",
        30,
        "minutes without an event after which an unfinished turn is summarised",
        minimum=1,
    )
    interrupt_hours: int = declare(
        "CLAUDE_MEM_INTERRUPT_HOURS",
        24,
        "hours without an event after which an active session counts as interrupted",
        minimum=1,
    )


@dataclass(frozen=True, slots=True)
class RetentionSettings:
    undo_hours: int = declare(
        "CLAUDE_MEM_UNDO_HOURS", 24, "hours in which forgetting can be undone"
    )
    raw_days: int = declare("CLAUDE_MEM_RAW_DAYS", 30, "days to keep raw events", minimum=1)
    raw_megabytes: int = declare(
        "CLAUDE_MEM_RAW_MEGABYTES", 200, "maximum megabytes of raw events", minimum=1
    )
    backups: int = declare("CLAUDE_MEM_BACKUPS", 3, "database backups to keep", minimum=1)
    rejected_days: int = declare(
        "CLAUDE_MEM_REJECTED_DAYS",
        30,
        "days to keep hook payloads that could not be read, redacted",
    )
    rejected_megabytes: int = declare(
        "CLAUDE_MEM_REJECTED_MEGABYTES",
        20,
        "maximum megabytes of hook payloads that could not be read",
    )


@dataclass(frozen=True, slots=True)
class RecordSettings:
    days: int = declare(
        "CLAUDE_MEM_RECORD_DAYS",
        FOREVER,
        "days to keep the record (what was said in each turn): forever, a number, or 0 to store no "
        "record and delete the existing one",
        maximum=FOREVER,
        no_limit="forever",
    )
    megabytes: int = declare(
        "CLAUDE_MEM_RECORD_MEGABYTES",
        1000,
        "maximum megabytes of the record; beyond that, the record of the oldest turns is deleted",
        minimum=1,
    )

    @property
    def is_on(self) -> bool:
        return self.days > 0

    def since_ms(self, now_ms: int) -> int:
        """The record of turns before that is not kept."""
        return now_ms - self.days * 86_400_000


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    port: int = declare(
        "CLAUDE_MEM_WORKER_PORT",
        37777,
        "port on 127.0.0.1, the next free one if it is taken; 0: Unix socket only; "
        "needs a worker restart",
        maximum=65535,
        needs_restart=True,
    )
    log_level: LogLevel = declare(
        "CLAUDE_MEM_LOG_LEVEL",
        "INFO",
        "level of the worker's log: DEBUG, INFO, WARNING or ERROR; needs a worker restart",
        choices=get_args(LogLevel),
        needs_restart=True,
    )


@dataclass(frozen=True, slots=True)
class CommandSettings:
    scripts: bool = declare(
        "CLAUDE_MEM_SCRIPTS",
        False,
        "let programs without a terminal run the commands that only you may run, such as pin and "
        "project join; counts only in settings.json: yes or no",
        protected=True,
    )


@dataclass(frozen=True, slots=True)
class Settings:
    layout: Layout
    sources: Mapping[str, str] = field(default_factory=dict)  # by name; missing: default
    observer: ObserverSettings = field(default_factory=ObserverSettings)
    embedder: EmbedderSettings = field(default_factory=EmbedderSettings)
    context: ContextSettings = field(default_factory=ContextSettings)
    capture: CaptureSettings = field(default_factory=CaptureSettings)
    sessions: SessionSettings = field(default_factory=SessionSettings)
    retention: RetentionSettings = field(default_factory=RetentionSettings)
    record: RecordSettings = field(default_factory=RecordSettings)
    worker: WorkerSettings = field(default_factory=WorkerSettings)
    commands: CommandSettings = field(default_factory=CommandSettings)

    def text_of(self, setting: Setting) -> str:
        """The value as text, for lists of all settings; code reads the typed attributes."""
        if setting is DATA_DIR:
            return str(self.layout.root)
        section, attribute = _PLACES[setting]
        return setting.format(getattr(getattr(self, section), attribute))

    def source_of(self, setting: Setting) -> str:
        return self.sources.get(setting.name, "default")


DATA_DIR = Setting(
    "CLAUDE_MEM_DATA_DIR",
    "~/.claude-mem",
    "directory for all data; set in the environment only; claude-mem install writes it into the "
    "hooks; must not be inside a repository",
    needs_restart=True,
)
_SECTIONS: dict[str, type[Any]] = {
    section.name: section.type
    for section in fields(Settings)
    if isinstance(section.type, type) and is_dataclass(section.type) and section.type is not Layout
}
_PLACES: dict[Setting, tuple[str, str]] = {
    attribute.metadata[Setting]: (section, attribute.name)
    for section, kind in _SECTIONS.items()
    for attribute in fields(kind)
}
SETTINGS: tuple[Setting, ...] = (DATA_DIR, *_PLACES)
_BY_NAME = {setting.name: setting for setting in SETTINGS}

# Settings of earlier versions. Where they are still set, they are ignored.
RETIRED = (
    "CLAUDE_MEM_OBSERVER_IDLE_SECONDS",
    "CLAUDE_MEM_RAW_FIELD_BYTES",
    "CLAUDE_MEM_SPOOL_WARN_FILES",
    "CLAUDE_MEM_SPOOL_WARN_HOURS",
)


def find_setting(name: str) -> Setting:
    """Finds a setting by its name in any case, with or without the prefix CLAUDE_MEM_."""
    plain = name.upper().replace("-", "_")
    for candidate in (plain, f"CLAUDE_MEM_{plain}"):
        if candidate in _BY_NAME:
            return _BY_NAME[candidate]
        if candidate in RETIRED:
            raise SettingsError(f"{candidate} is no longer a setting: it is ignored")
    from difflib import get_close_matches

    names = [setting.short_name for setting in SETTINGS]
    similar = get_close_matches(plain.removeprefix("CLAUDE_MEM_"), names, n=2)
    meant = f"did you mean {' or '.join(similar)}? " if similar else ""
    raise SettingsError(f"there is no setting {name!r}: {meant}`claude-mem settings` lists them")


def section_of(setting: Setting) -> str:
    """The attribute of Settings that it belongs to; empty for the data directory."""
    return _PLACES[setting][0] if setting in _PLACES else ""


OBSERVER = find_setting("CLAUDE_MEM_OBSERVER")
SCRIPTS = find_setting("CLAUDE_MEM_SCRIPTS")
API_KEY = find_setting("CLAUDE_MEM_API_KEY")
EMBEDDER = find_setting("CLAUDE_MEM_EMBEDDER")
EMBEDDER_MODEL = find_setting("CLAUDE_MEM_EMBEDDER_MODEL")
EMBEDDER_URL = find_setting("CLAUDE_MEM_EMBEDDER_URL")


def build_settings(
    layout: Layout, values: Mapping[str, Value], sources: Mapping[str, str]
) -> Settings:
    """Settings with these values by name, and defaults for all others."""
    sections: dict[str, dict[str, Value]] = {section: {} for section in _SECTIONS}
    for setting, (section, attribute) in _PLACES.items():
        if setting.name in values:
            sections[section][attribute] = values[setting.name]
    built: dict[str, Any] = {name: kind(**sections[name]) for name, kind in _SECTIONS.items()}
    return Settings(layout, sources, **built)
