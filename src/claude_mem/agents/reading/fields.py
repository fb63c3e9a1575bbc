"""The JSON objects that clients send and write, whose fields may have other names and types."""

import hashlib
import json

from claude_mem.timestamps import milliseconds
from claude_mem.types import Json


class Fields(dict[str, Json]):
    def first(self, *names: str) -> Json:
        """The value under the first of these names that has one."""
        return next((self[name] for name in names if self.get(name) not in (None, "")), None)

    def text(self, *names: str) -> str:
        value = self.first(*names)
        return value if isinstance(value, str) else ""

    def plain(self, *names: str) -> str:
        return plain_text(self.first(*names))

    def number(self, name: str) -> int | None:
        value = self.get(name)
        return value if isinstance(value, int) else None

    def inner(self, *names: str) -> "Fields":
        return fields_of(self.first(*names))

    def parts(self, name: str) -> list["Fields"]:
        """The objects of a list."""
        value = self.get(name)
        return [fields_of(part) for part in value] if isinstance(value, list) else []

    @property
    def at_ms(self) -> int | None:
        return milliseconds(self.get("timestamp"))

    @property
    def time(self) -> Json:
        """The time in milliseconds: the same event may come with its time in two spellings."""
        timestamp = self.get("timestamp")
        return self.at_ms if isinstance(timestamp, str) else timestamp


def fields_of(value: Json) -> Fields:
    return Fields(value) if isinstance(value, dict) else Fields()


def compact(**fields: Json) -> Fields:
    """Makes fields without those that have no value."""
    return Fields({name: value for name, value in fields.items() if value not in (None, "")})


def made_up_id(session_id: Json, name: str, tool_input: Json, at: Json) -> str:
    """Makes an id for a tool call of a client that has none: the same from every hook."""
    content = json.dumps([session_id, name, tool_input, at], sort_keys=True)
    digest = hashlib.blake2b(content.encode("utf-8", "replace"), digest_size=12).hexdigest()
    return f"call-{digest}"


def texts_of(parts: Json) -> str:
    """The texts of a prompt, without images and files."""
    if not isinstance(parts, list):
        return parts if isinstance(parts, str) else ""
    return "\n".join(filter(None, (fields_of(part).text("text") for part in parts)))


def plain_text(value: Json) -> str:
    """Returns the text of a text, a list of parts with texts, or any other JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(filter(None, map(plain_text, value)))
    if isinstance(value, dict):
        inner = Fields(value).first("text", "output", "content", "llmContent", "stdout")
        return plain_text(inner) if inner is not None else json.dumps(value, ensure_ascii=False)
    return "" if value is None else json.dumps(value)
