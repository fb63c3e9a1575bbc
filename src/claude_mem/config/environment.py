"""The environment of the worker: what the user's own shell had, not what a session has.

A client takes variables from the settings of a repository and passes them to hooks, and a hook may
start the worker. So `claude-mem install` and other commands of the user record the variables that
decide what is stored, which program runs and where text is sent. A worker that a hook starts uses
the recorded ones.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from claude_mem.agents import is_agent
from claude_mem.config.layout import Layout
from claude_mem.config.owner_only_file import write_private
from claude_mem.config.settings import DATA_DIR, SETTINGS

_BASIC = (
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "CLAUDE_CONFIG_DIR",
    "DBUS_SESSION_BUS_ADDRESS", "LANG", "LANGUAGE",
)  # fmt: skip
_BASIC_PREFIXES = ("XDG_", "LC_")
_TIME_ZONE = "TZ"  # only the user's own: it may name any file
CONNECTION = (
    "SSL_CERT_FILE", "SSL_CERT_DIR",
    "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
)  # fmt: skip
_SETTING_NAMES = tuple(setting.name for setting in SETTINGS if setting is not DATA_DIR)
# A key is stored only where the user puts it.
_RECORDED_SETTINGS = tuple(
    setting.name for setting in SETTINGS if setting is not DATA_DIR and not setting.secret
)
# Where nothing is recorded, it still applies: what is not to be recorded must not be.
_WITHOUT_RECORD = "CLAUDE_MEM_EXCLUDED_PROJECTS"


@dataclass(frozen=True, slots=True)
class WorkerEnvironment:
    variables: Mapping[str, str]
    ignored: tuple[str, ...]  # names that the session sets to other values


def record_environment(layout: Layout, environ: Mapping[str, str]) -> None:
    """Keeps the environment for the workers that hooks start, if it is the user's own."""
    if is_agent(environ):
        return
    recorded = {name: value for name, value in environ.items() if value and _is_recorded(name)}
    if recorded == recorded_environment(layout):
        return
    text = json.dumps(recorded, indent=2, sort_keys=True) + "\n"
    write_private(layout.environment, text.encode())


def recorded_environment(layout: Layout) -> dict[str, str] | None:
    """None if there is none that can be read."""
    try:
        content = json.loads(layout.environment.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(content, dict):
        return None
    return {str(name): value for name, value in content.items() if isinstance(value, str)}


def environment_for_worker(session: Mapping[str, str], layout: Layout) -> WorkerEnvironment:
    """Returns the environment for a worker that a hook started with that of this session."""
    recorded = recorded_environment(layout)
    if recorded is None:
        base = {name: value for name, value in session.items() if _is_basic(name)}
        if _WITHOUT_RECORD in session:
            base[_WITHOUT_RECORD] = session[_WITHOUT_RECORD]
    else:
        base = recorded
    variables = {**base, DATA_DIR.name: str(layout.root)}
    decisive = (*_SETTING_NAMES, *CONNECTION)
    ignored = (name for name in decisive if session.get(name, "") not in ("", variables.get(name)))
    return WorkerEnvironment(variables, tuple(ignored))


def _is_recorded(name: str) -> bool:
    settings = (*CONNECTION, *_RECORDED_SETTINGS)
    return _is_basic(name) or name == _TIME_ZONE or name in settings


def _is_basic(name: str) -> bool:
    return name in _BASIC or name.startswith(_BASIC_PREFIXES)
