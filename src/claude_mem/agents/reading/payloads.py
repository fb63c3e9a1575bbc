"""Payloads and lines of transcripts: reading fields under several names, ids, and times."""

import hashlib
import json
from collections.abc import Mapping

from claude_mem.agents.agent import Normalised, Payload
from claude_mem.timestamps import milliseconds
from claude_mem.types import Json


def event(kind: str, common: Payload, **fields: Json) -> list[Normalised]:
    return [Normalised(kind, {**common, **fields})]


def first(payload: Mapping[str, Json], *names: str) -> Json:
    """The value under the first of these names that has one."""
    return next((payload[name] for name in names if payload.get(name) not in (None, "")), None)


def text(payload: Mapping[str, Json], *names: str) -> str:
    value = first(payload, *names)
    return value if isinstance(value, str) else ""


def mapping(value: Json) -> Payload:
    return value if isinstance(value, dict) else {}


def compact(**fields: Json) -> Payload:
    """Without the fields that have no value."""
    return {name: value for name, value in fields.items() if value not in (None, "")}


def time_of(payload: Mapping[str, Json]) -> Json:
    """In milliseconds: the same event may come with its time in two spellings."""
    timestamp = payload.get("timestamp")
    return milliseconds(timestamp) if isinstance(timestamp, str) else timestamp


def made_up_id(session_id: Json, name: str, tool_input: Json, at: Json) -> str:
    """For clients whose tool calls have no id: the same from every hook that reports one."""
    content = json.dumps([session_id, name, tool_input, at], sort_keys=True)
    digest = hashlib.blake2b(content.encode("utf-8", "replace"), digest_size=12).hexdigest()
    return f"call-{digest}"


def texts_of(parts: Json) -> str:
    """The texts of a prompt, without images and files."""
    if not isinstance(parts, list):
        return parts if isinstance(parts, str) else ""
    return "\n".join(filter(None, (text(mapping(part), "text") for part in parts)))


def plain_text(value: Json) -> str:
    """Of a text, a list of parts with texts, or any other JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(filter(None, map(plain_text, value)))
    if isinstance(value, dict):
        inner = first(value, "text", "output", "content", "llmContent", "stdout")
        return plain_text(inner) if inner is not None else json.dumps(value, ensure_ascii=False)
    return "" if value is None else json.dumps(value)


def parts_of(value: Json) -> list[Payload]:
    """The objects of a list."""
    return [mapping(part) for part in value] if isinstance(value, list) else []


def line_time(line: Payload) -> int | None:
    return milliseconds(line.get("timestamp"))
