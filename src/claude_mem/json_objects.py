"""JSON objects from outside, as bytes, to values whose strings can all be stored."""

import json

from claude_mem.errors import BadInput
from claude_mem.types import Json


def parse_object(data: bytes) -> dict[str, Json]:
    """Raises BadInput for anything but a JSON object."""
    try:
        text = data.decode("utf-8")
        value: Json = json.loads(text)
        if "\\ud" in text or "\\uD" in text:
            value = replace_surrogates(value)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"not valid JSON: {error or type(error).__name__}") from None
    if not isinstance(value, dict):
        raise BadInput("not a JSON object")
    return value


def replace_surrogates(value: Json) -> Json:
    """JSON can escape a lone surrogate, which neither UTF-8 nor the database can hold."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, list):
        return [replace_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {
            name.encode("utf-8", "replace").decode("utf-8"): replace_surrogates(inner)
            for name, inner in value.items()
        }
    return value
