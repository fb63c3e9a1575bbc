"""A request of a command to the worker, which is started if it is not running."""

import os
from typing import Any, cast

from claude_mem.config import Settings
from claude_mem.server import client
from claude_mem.types import Json


def request(settings: Settings, path: str, body: Json = None) -> dict[str, Any]:
    client.start(settings.layout, os.environ)
    return cast("dict[str, Any]", client.ask_worker(settings.layout, path, body, timeout=120))
