"""Requests into values, parsed once: bodies, parameters, and the errors that say what is wrong."""

from collections.abc import Iterable, Mapping

from starlette.requests import Request

from claude_mem.errors import BadInput
from claude_mem.hook.scanner import strip_private
from claude_mem.intake.dialects import parse_payload
from claude_mem.store.pages import Page
from claude_mem.types import Json

LARGEST_BODY = 32 * 1024 * 1024
LARGEST_PAGE = 200


async def read_body(request: Request) -> bytes:
    parts: list[bytes] = []
    size = 0
    async for part in request.stream():
        size += len(part)
        if size > LARGEST_BODY:
            raise BadInput(f"the body is over {LARGEST_BODY} bytes")
        parts.append(part)
    return b"".join(parts)


async def read_object(request: Request) -> dict[str, Json]:
    """A JSON object without what is private in it."""
    data = strip_private(await read_body(request))
    if not data.strip():
        return {}
    try:
        return parse_payload(data)
    except BadInput as error:
        raise BadInput(f"the body: {error}") from None


def text_of(body: Mapping[str, Json], *names: str) -> str | None:
    """The first of these fields that is there; they are names of one thing."""
    for name in names:
        value = body.get(name)
        if value is None:
            continue
        if not isinstance(value, str):
            raise BadInput(f"{name} is not a text", name)
        return value
    return None


def required_text(body: Mapping[str, Json], *names: str) -> str:
    value = text_of(body, *names)
    if not value:
        raise BadInput(f"{names[0]} is missing", names[0])
    return value


def known_parameters(request: Request, names: Iterable[str]) -> None:
    unknown = sorted(set(request.query_params) - set(names))
    if unknown:
        raise BadInput(f"there is no parameter {unknown[0]!r}", unknown[0])


def number(name: str, value: str, smallest: int, largest: int) -> int:
    digits = value.removeprefix("-")
    found = int(value) if digits.isascii() and digits.isdecimal() and len(digits) < 20 else None
    if found is None or not smallest <= found <= largest:
        raise BadInput(f"{name} is not a number from {smallest} to {largest}", name)
    return found


def page_of(request: Request) -> Page:
    given = request.query_params
    largest_id = 2**62
    return Page(
        limit=number("limit", given.get("limit", "20"), 1, LARGEST_PAGE),
        offset=number("offset", given.get("offset", "0"), 0, largest_id),
        before=number("before", given["before"], 1, largest_id) if "before" in given else None,
    )
