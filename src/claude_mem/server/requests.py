"""Request bodies and parameters, validated; a `BadInput` names the field that is wrong."""

import asyncio
from collections.abc import Callable, Mapping

from starlette.requests import Request

from claude_mem import params
from claude_mem.errors import BadInput
from claude_mem.hook.private_text import strip_payload, strip_private
from claude_mem.json_objects import parse_object
from claude_mem.store.listing import Page
from claude_mem.types import Json

MAX_BODY = 32 * 1024 * 1024
_LARGE_BODY = 64 * 1024
MAX_ID = 2**62


async def read_body(request: Request) -> bytes:
    parts: list[bytes] = []
    size = 0
    async for part in request.stream():
        size += len(part)
        if size > MAX_BODY:
            raise BadInput(f"the body is larger than {MAX_BODY} bytes")
        parts.append(part)
    return b"".join(parts)


async def read_object(request: Request) -> dict[str, Json]:
    """The JSON object of the body, without private text; empty if there is no body."""
    return await _read_object(request, strip_private)


async def read_payload(request: Request) -> dict[str, Json]:
    """The same of an event, with a mark if some of it was private."""
    return await _read_object(request, strip_payload)


async def _read_object(request: Request, strip: Callable[[bytes], bytes]) -> dict[str, Json]:
    data = await read_body(request)
    if len(data) > _LARGE_BODY:  # must not keep other requests waiting
        return await asyncio.to_thread(_parse_object, data, strip)
    return _parse_object(data, strip)


def _parse_object(data: bytes, strip: Callable[[bytes], bytes]) -> dict[str, Json]:
    data = strip(data)
    if not data.strip():
        return {}
    try:
        return parse_object(data)
    except BadInput as error:
        raise BadInput(f"the body is {error}") from None


def text_of(body: Mapping[str, Json], *names: str) -> str | None:
    """The first of these fields that has a value; the names are aliases."""
    for name in names:
        value = body.get(name)
        if value is None:
            continue
        if not isinstance(value, str):
            raise BadInput(f"{name} must be a string", name)
        return value
    return None


def required_text(body: Mapping[str, Json], *names: str) -> str:
    value = text_of(body, *names)
    if not value:
        raise BadInput(f"{names[0]} is required", names[0])
    return value


def reject_parameters(request: Request) -> None:
    """Rejects query parameters of routes that have none."""
    params.check_names(request.query_params, ())


def page_of(request: Request) -> Page:
    values = request.query_params
    return Page(
        limit=params.integer(values, "limit", 20, 1, params.MAX_LIMIT),
        offset=params.integer(values, "offset", 0, 0, MAX_ID),
        before=params.integer(values, "before", 0, 1, MAX_ID) if "before" in values else None,
    )
