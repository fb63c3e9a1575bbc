"""Style sheet and scripts, from the package; a browser asks each time and gets them once."""

import hashlib
from functools import lru_cache
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

STATIC = Path(__file__).parent / "static"
_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


async def asset(request: Request) -> Response:
    """GET /static/{name}"""
    content = _contents().get(request.path_params["name"])
    if content is None:
        raise HTTPException(404)
    data, media_type, tag = content
    headers = {"etag": tag, "cache-control": "no-cache", "x-content-type-options": "nosniff",
               "cross-origin-resource-policy": "same-origin"}  # fmt: skip
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(data, media_type=media_type, headers=headers)


@lru_cache(maxsize=1)
def _contents() -> dict[str, tuple[bytes, str, str]]:
    contents = {}
    for path in STATIC.iterdir():
        if path.suffix in _TYPES:
            data = path.read_bytes()
            tag = f'"{hashlib.blake2b(data, digest_size=12).hexdigest()}"'
            contents[path.name] = (data, f"{_TYPES[path.suffix]}; charset=utf-8", tag)
    return contents


routes = [Route("/static/{name}", asset)]
