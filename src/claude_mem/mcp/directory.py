"""The working directory of a session: a header that the shim sends and other clients may send."""

import os
from urllib.parse import unquote_to_bytes

from starlette.datastructures import Headers

HEADER = "claude-mem-directory"


def directory_of(headers: Headers) -> str:
    """Empty if the header is missing or is not an absolute path."""
    directory = os.fsdecode(unquote_to_bytes(headers.get(HEADER, "")))
    return directory if directory.startswith("/") and "\0" not in directory else ""
