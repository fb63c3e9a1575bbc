"""Where a session works: the shim says it with every request, others may."""

import os
from urllib.parse import unquote_to_bytes

from starlette.datastructures import Headers

HEADER = "claude-mem-directory"


def directory_of(headers: Headers) -> str:
    """Empty where it is not said, or is no absolute path."""
    directory = os.fsdecode(unquote_to_bytes(headers.get(HEADER, "")))
    return directory if directory.startswith("/") and "\0" not in directory else ""
