"""Requests to the team server, and the errors that they lead to."""

import asyncio
from collections.abc import Mapping
from typing import Any

from claude_mem.errors import BadInput, ClaudeMemError, NotFound, RequestFailed
from claude_mem.http_client import Response, post_json
from claude_mem.team.client.membership import Membership
from claude_mem.types import Json

SECONDS = 30.0


class TeamRefused(ClaudeMemError):
    """The server does not accept the token, or the request is not allowed to it."""


class TeamFull(ClaudeMemError):
    """A quota of the project is used up."""


async def ask(
    membership: Membership, path: str, body: Mapping[str, Json], seconds: float = SECONDS
) -> dict[str, Any]:
    """Raises RequestFailed if the server does not respond, and the errors above."""
    headers = {"authorization": f"Bearer {membership.token}"} if membership.token else {}
    url = f"{membership.url}/v1/{path}"
    response = await post_json(url, headers, body, seconds, membership.token)
    if response.status == 200:
        return response.json_object()
    raise _error(response)


def ask_blocking(
    membership: Membership, path: str, body: Mapping[str, Json], seconds: float = SECONDS
) -> dict[str, Any]:
    """Asks the server for a command, which runs no event loop."""
    return asyncio.run(ask(membership, path, body, seconds))


def _error(response: Response) -> ClaudeMemError:
    try:
        reason = str(response.json_object().get("error") or "")
    except RequestFailed:
        reason = ""
    message = f"the team server: {reason or f'status {response.status}'}"
    if response.status in (401, 403):
        return TeamRefused(message)
    if response.status == 404:
        return NotFound(message)
    if response.status == 413:
        return TeamFull(message)
    if response.status == 400:
        return BadInput(message)
    return RequestFailed(message)
