"""Where Claude Code is installed. Imports little: most commands of the program ask for it."""

import importlib.util
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from claude_mem.config import Settings

_USUAL_PATHS = (".local/bin/claude", ".claude/local/claude", ".npm-global/bin/claude")


def find_command(settings: Settings, environ: Mapping[str, str]) -> Path | None:
    configured = settings.observer.claude_code_path
    if configured:
        return Path(configured) if os.access(configured, os.X_OK) else None
    on_path = shutil.which("claude", path=environ.get("PATH"))
    if on_path:
        return Path(on_path)
    home = Path(environ.get("HOME", "/"))
    return next((home / path for path in _USUAL_PATHS if os.access(home / path, os.X_OK)), None)


def is_sdk_installed() -> bool:
    return importlib.util.find_spec("claude_agent_sdk") is not None
