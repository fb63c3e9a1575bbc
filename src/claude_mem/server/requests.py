"""Request bodies and parameters, validated; a `BadInput` names the field that is wrong."""

from collections.abc import Iterable, Mapping

from starlette.requests import Request

from claude_mem.errors import BadInput
from claude_mem.hook.scanner import strip_private
from claude_mem.intake.dialects import parse_payload
from claude_mem.store.pages import Page
from claude_mem.types import Json

LARGEST_BODY = 32 * 1024 * 1024
LARGEST_PAGE = 200
LARGEST_ID = 2**62


async def read_body(request: Request) -> bytes:
    parts: list[bytes] = []
    size = 0
    async for part in request.stream():
        size += len(part)
        if size > LARGEST_BODY:
            raise BadInput(f"the body is larger than {LARGEST_BODY} bytes")
        parts.append(part)
    return b"".join(parts)


async def read_object(request: Request) -> dict[str, Json]:
    """The JSON object of the body, without private text; empty if there is no body."""
    data = strip_private(await read_body(request))
    if not data.strip():
        return {}
    try:
        return parse_payload(data)
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


def known_parameters(request: Request, names: Iterable[str]) -> None:
    unknown = sorted(set(request.query_params) - set(names))
    if unknown:
        raise BadInput(f"unknown parameter {unknown[0]!r}", unknown[0])


def integer(name: str, value: str, smallest: int, largest: int) -> int:
    digits = value.removeprefix("-")
    is_integer = digits.isascii() and digits.isdecimal() and len(digits) < 20
    if not is_integer or not smallest <= int(value) <= largest:
        raise BadInput(f"{name} must be a number from {smallest} to {largest}", name)
    return int(value)


def page_of(request: Request) -> Page:
    params = request.query_params
    return Page(
        limit=integer("limit", params.get("limit", "20"), 1, LARGEST_PAGE),
        offset=integer("offset", params.get("offset", "0"), 0, LARGEST_ID),
        before=integer("before", params["before"], 1, LARGEST_ID) if "before" in params else None,
    )
