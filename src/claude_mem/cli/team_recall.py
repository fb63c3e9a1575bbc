"""Timelines and memories of a team for commands: the worker asks the server."""

import os
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from claude_mem.config import Settings
from claude_mem.errors import NotFound
from claude_mem.recall.memory_ids import parse_any_id
from claude_mem.recall.team_interface import TEAM
from claude_mem.server import client
from claude_mem.server.quick_command_replies import json_text
from claude_mem.text import without_controls


def has_joined(settings: Settings) -> bool:
    return settings.layout.team.exists()


def is_of_team(text: str) -> bool:
    memory_id = parse_any_id(text)
    return memory_id is not None and memory_id.kind == TEAM


def timeline_of_team(settings: Settings, values: Mapping[str, Any], as_json: bool) -> str:
    route = "/api/timeline" if "anchor" in values else "/api/timeline/by-query"
    if as_json:
        return json_text(_ask(settings, f"{route}?{urlencode(values)}"))
    client.start(settings.layout, os.environ)
    path = f"{route}?{urlencode({**values, 'format': 'text'})}"
    return without_controls(client.ask_text(settings.layout, path, client.COMMAND_SECONDS))


def memories_of_team(
    settings: Settings, ids: Sequence[str], with_record: bool
) -> list[dict[str, Any]]:
    """Reads memories of the team by their ids; those that the user may not read are left out."""
    if not has_joined(settings):
        raise NotFound("this machine joined no team: claude-mem team join URL")
    return list(
        _ask(settings, "/api/observations/batch", {"ids": list(ids), "record": with_record})
    )


def _ask(settings: Settings, path: str, body: dict[str, Any] | None = None) -> Any:
    return client.request(settings.layout, os.environ, path, body)
