"""claude-mem edit, pin and wrong, carried out by the worker, which also updates contexts."""

import os
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

import click

from claude_mem import params
from claude_mem.cli.output import json_option, print_json
from claude_mem.cli.user_only import refuse_agents
from claude_mem.config import Settings
from claude_mem.errors import BadInput
from claude_mem.recall.memory_ids import MemoryId
from claude_mem.server.client import request
from claude_mem.store.editing import FIELDS
from claude_mem.types import OBSERVATION_TYPES, Json

_PARTICIPLES = ("investigated", "learned", "completed")  # "New learned" needs a noun
_HELP = {
    "type": f"New type: {', '.join(OBSERVATION_TYPES)}.",
    "fact": "New fact of the observation; replaces all of them; can be repeated.",
    "concept": "New concept; replaces all concepts; can be repeated.",
    "subject": "What the fact is about: a question, a purpose, the command that fails.",
    "value": "The rule, the answer, or the command that works.",
    "scope": "Folder that the fact is limited to; empty for the whole project.",
    **{name: f'New text of "{name}"; "" removes it.' for name in _PARTICIPLES},
    "next_steps": 'New next steps; "" removes them.',
    "notes": 'New notes; "" removes them.',
}
_OPTIONS = {"facts": "fact", "concepts": "concept"}


def undo_option(text: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    return click.option("--undo", is_flag=True, help=text)


def _option(field: str) -> str:
    return f"--{_OPTIONS.get(field, field).replace('_', '-')}"


def field_options(*kinds: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """An option for each field of these kinds of memories."""
    names = dict.fromkeys(name for kind in kinds for name in FIELDS[kind])

    def add(command: Callable[..., None]) -> Callable[..., None]:
        for name in reversed(names):
            option = _OPTIONS.get(name, name)
            text = _HELP.get(option) or f'New {option}; "" removes it.'
            if len(kinds) > 1 and name in FIELDS["fact"]:
                text = f"Of a fact (F5): {text[0].lower()}{text[1:]}"
            command = click.option(_option(name), name, multiple=name in _OPTIONS, help=text)(
                command
            )
        return command

    return add


@click.command()
@click.argument("id_", metavar="ID")
@field_options("observation", "summary", "fact")
@json_option
@click.pass_obj
def edit(settings: Settings, /, id_: str, as_json: bool, **fields: Any) -> None:
    """Change the text of an observation (12), a summary (S3) or a fact (F5).

    \b
    claude-mem edit 12 --title "The relay needs 5 V" --narrative "Measured at the board."
    claude-mem edit S3 --next-steps ""
    claude-mem edit F5 --value "make test"

    Observers and imports do not overwrite an edited memory.
    """
    refuse_agents()
    print_changed(edit_memory(settings, id_, fields), "Edited", as_json)


@click.command()
@click.argument("id_", metavar="ID")
@undo_option("Unpin it.")
@json_option
@click.pass_obj
def pin(settings: Settings, /, id_: str, undo: bool, as_json: bool) -> None:
    """Show a memory or fact in the contexts of its project.

    ID is an observation (12), a summary (S3), a prompt (P4) or a fact (F5).

    A context shows the ten newest pinned memories, if they fit its budget. Observers and imports
    do not overwrite pinned memories, and no later statement replaces a pinned fact.
    """
    refuse_agents()
    memory = change_memory(settings, id_, "pin", undo)
    print_changed(memory, "Unpinned" if undo else "Pinned", as_json)


@click.command()
@click.argument("id_", metavar="ID")
@undo_option("Remove the mark.")
@json_option
@click.pass_obj
def wrong(settings: Settings, /, id_: str, undo: bool, as_json: bool) -> None:
    """Mark a memory or fact as wrong.

    ID is an observation (12), a summary (S3), a prompt (P4) or a fact (F5).

    It stays in the database, but contexts, hints and searches leave it out. `claude-mem search
    --wrong` shows it.
    """
    refuse_agents()
    memory = change_memory(settings, id_, "wrong", undo)
    print_changed(memory, "No longer marked as wrong" if undo else "Marked as wrong", as_json)


def edit_memory(settings: Settings, id_: str, fields: dict[str, Any]) -> dict[str, Any]:
    body: dict[str, Json] = {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in fields.items()
        if value is not None and value != ()
    }
    memory_id = params.any_memory_id(id_)
    _check_fields(memory_id, body)
    return request(settings.layout, os.environ, _path(memory_id), body, method="PATCH")


def _check_fields(memory_id: MemoryId, body: Mapping[str, Json]) -> None:
    allowed = FIELDS[memory_id.kind]
    if not allowed:
        raise BadInput(
            f"{memory_id} is a {memory_id.kind}, which stays as it was typed. To leave it out of"
            f" searches and contexts: claude-mem wrong {memory_id}; to forget it: claude-mem forget"
            f" {memory_id}"
        )
    unknown = [name for name in body if name not in allowed]
    if body and not unknown:
        return
    options = [_option(name) for name in allowed]
    reason = f"{memory_id} has no {_option(unknown[0])}" if unknown else "nothing to change"
    example = _option(allowed[1])
    raise BadInput(
        f"{reason}: set {', '.join(options[:-1])} or {options[-1]}, such as"
        f" claude-mem edit {memory_id} {example} TEXT"
    )


def change_memory(settings: Settings, id_: str, action: str, undo: bool) -> dict[str, Any]:
    return request(
        settings.layout, os.environ, f"{_path(params.any_memory_id(id_))}/{action}", {"undo": undo}
    )


def _path(memory_id: MemoryId) -> str:
    return f"/api/memories/{quote(str(memory_id), safe='')}"


def print_changed(result: dict[str, Any], action: str, as_json: bool) -> None:
    memory = result["memory"]
    if as_json:
        print_json(memory)
        return
    prefix = {"observation": "#", "summary": "S", "prompt": "P", "fact": "F"}
    click.echo(f"{action}: {prefix[memory['memory_kind']]}{memory['id']}")


commands = [edit, pin, wrong]
