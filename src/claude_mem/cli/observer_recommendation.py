"""Whether to recommend the observer claude, and what it would use, from the user's own history."""

from collections.abc import Mapping
from pathlib import Path

from claude_mem.cli.open_store import open_reader
from claude_mem.config import OBSERVER, Settings, load_settings
from claude_mem.observer.models.active_observer import missing_requirement
from claude_mem.observer.models.estimates import daily_use

LARGEST_STATE = 20_000_000  # bytes of the client's state file


def is_logged_in(environ: Mapping[str, str]) -> bool:
    """Whether Claude Code has a login in its files; a login in a keychain leaves a trace there."""
    home = Path(environ.get("HOME", "/"))
    config_dir = environ.get("CLAUDE_CONFIG_DIR")
    directory = Path(config_dir) if config_dir else home / ".claude"
    if (directory / ".credentials.json").is_file():
        return True
    state = (directory if config_dir else home) / ".claude.json"
    try:
        return state.stat().st_size <= LARGEST_STATE and b'"oauthAccount"' in state.read_bytes()
    except OSError:
        return False


def recommendation(settings: Settings, environ: Mapping[str, str]) -> str:
    """Empty where claude cannot be used, or is used already."""
    changed = load_settings({**environ, OBSERVER.name: "claude"})
    if settings.observer.kind == "claude" or not is_logged_in(environ):
        return ""
    if missing_requirement(changed, environ):
        return ""
    return f"Recommended: claude. Claude Code is logged in here.{_cost(changed)}"


def _cost(settings: Settings) -> str:
    with open_reader(settings) as store:
        use = daily_use(store, settings) if store is not None else ""
    return f" By your history {use}; a plan counts them against its limits." if use else ""
