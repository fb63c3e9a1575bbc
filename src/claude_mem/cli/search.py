"""search, timeline, related and reindex: finding a memory again, and mending what finds it."""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

import click

from claude_mem import params
from claude_mem.cli.output import as_json_option, counted, print_json
from claude_mem.cli.status import NOTHING_YET, reading
from claude_mem.cli.store import open_store_for_import
from claude_mem.config import Settings
from claude_mem.errors import BadInput, NotFound
from claude_mem.index.text import full_text
from claude_mem.index.text.words import pieces, plain_text, stem
from claude_mem.index.vectors.semantic import open_semantic_index
from claude_mem.recall.formatting import Show, search_text, timeline_text
from claude_mem.recall.memory_ids import parse_memory_id
from claude_mem.recall.parsed_text import parse_text
from claude_mem.recall.related import related as find_related
from claude_mem.recall.search import search as find_memories
from claude_mem.recall.timeline import timeline as find_timeline
from claude_mem.server.search import search_record, timeline_record
from claude_mem.text import without_controls
from claude_mem.types import OBSERVATION_TYPES, Json

# `-word` is part of the question: no option here has a short name.
_QUERY = {"ignore_unknown_options": True, "help_option_names": ["--help"]}
_OPTION = re.compile(r"--[\w-]+(=.*)?", re.DOTALL)
_WORD = re.compile(r"\w+")
_NAMES = {"type_": "type", "date_start": "dateStart", "date_end": "dateEnd", "order": "orderBy"}
_TYPED = {"dateStart": "--since", "dateEnd": "--until", "orderBy": "--order", "type": "--type",
          "status": "--status", "limit": "--limit", "offset": "--offset",
          "depth_before": "--before", "depth_after": "--after"}  # fmt: skip


@contextmanager
def _said_as_typed() -> Iterator[None]:
    """What is wrong, by the name of the option instead of the parameter's."""
    try:
        yield
    except BadInput as error:
        typed = _TYPED.get(error.field or "")
        if typed is None:
            raise
        raise BadInput(str(error).replace(error.field or "", typed, 1), error.field) from None


@click.command(context_settings=_QUERY)
@click.argument("query", nargs=-1, type=click.UNPROCESSED)
@click.option("--project", help="Only this project, by name or key.")
@click.option("--type", "type_", help=f"{', '.join(OBSERVATION_TYPES)}, summaries or prompts.")
@click.option("--concept", "concepts", help="Only with this concept; several with commas.")
@click.option("--file", "files", help="Only about this file or folder; several with commas.")
@click.option("--since", "date_start", help="From this day on, like 2026-03-09.")
@click.option("--until", "date_end", help="To this day.")
@click.option("--session", help="Only this session, by the id that `claude-mem sessions` shows.")
@click.option("--status", help="Only sessions that are active, completed, failed, interrupted.")
@click.option("--order", help="relevance, date_desc or date_asc.")
@click.option("--limit", help="How many rows; 40 unless told.")
@click.option("--offset", help="How many rows to pass over.")
@as_json_option
@click.pass_obj
def search(
    settings: Settings, /, query: tuple[str, ...], as_json: bool, **options: str | None
) -> None:
    """Find memories by what they say.

    \b
    claude-mem search why does the light flicker
    claude-mem search '"exact phrase" relay -fuse'
    claude-mem search --file src/light.py --since 2026-03-01

    Any word may match, a phrase in quotes must, -word must not. "last week" or "in May" prefers
    memories of that time. `claude-mem show 12 S3 P4` shows them in full.
    """
    given: dict[str, Json] = {"query": _joined(query)}
    given |= {_NAMES.get(name, name): value for name, value in options.items() if value is not None}
    now = datetime.now().astimezone()
    with reading(settings) as store, _said_as_typed():
        found = None
        if store:
            asked = params.search_query(store, given, now)
            found = find_memories(store, asked, now, open_semantic_index(settings.embedder))
    if as_json:
        print_json(search_record(found) if found else {"results": []})
    elif found is None:
        click.echo(NOTHING_YET)
    else:
        click.echo(search_text(found, now.tzinfo, _marker(_joined(query), now)))


@click.command(context_settings=_QUERY)
@click.argument("anchor", nargs=-1, required=True, type=click.UNPROCESSED)
@click.option("--before", "depth_before", help="How many memories before it; 10 unless told.")
@click.option("--after", "depth_after", help="How many after it.")
@click.option("--project", help="Only this project, by name or key.")
@as_json_option
@click.pass_obj
def timeline(
    settings: Settings, /, anchor: tuple[str, ...], as_json: bool, **options: str | None
) -> None:
    """What happened around a memory: 12, S3, P4, or what it is about."""
    where = _joined(anchor)
    given: dict[str, Json] = {name: value for name, value in options.items() if value is not None}
    given["anchor" if parse_memory_id(where) else "query"] = where
    now = datetime.now().astimezone()
    with reading(settings) as store, _said_as_typed():
        if store is None:
            raise NotFound(NOTHING_YET)
        asked = params.timeline_query(store, given, now)
        found = find_timeline(store, asked, now, open_semantic_index(settings.embedder))
    if as_json:
        print_json(timeline_record(found))
    else:
        click.echo(timeline_text(found, now.tzinfo, _marker(where, now)))


@click.command()
@click.argument("anchor")
@click.option("--project", help="In this project, by name or key, instead of its own.")
@click.option("--type", "type_", help=f"{', '.join(OBSERVATION_TYPES)}, summaries or prompts.")
@click.option("--limit", help="How many rows; 10 unless told.")
@as_json_option
@click.pass_obj
def related(
    settings: Settings, /, anchor: str, type_: str | None, as_json: bool, **options: str | None
) -> None:
    """Memories that mean something like one: 12, S3 or P4."""
    given: dict[str, Json] = {"anchor": anchor, "type": type_, **options}
    now = datetime.now().astimezone()
    with reading(settings) as store, _said_as_typed():
        if store is None:
            raise NotFound(NOTHING_YET)
        wanted = {name: value for name, value in given.items() if value is not None}
        asked = params.related_query(store, wanted, now)
        found = find_related(store, asked, open_semantic_index(settings.embedder))
    if as_json:
        print_json(search_record(found))
    else:
        click.echo(search_text(found, now.tzinfo, without_controls))


def _joined(words: tuple[str, ...]) -> str:
    for word in words:
        if _OPTION.fullmatch(word):
            raise BadInput(f"there is no option {word}; to search for it: '\"{word}\"'")
    return " ".join(words)


def _marker(query: str, now: datetime) -> Show:
    """Marks the words of the question, on a terminal alone."""
    if not sys.stdout.isatty():
        return without_controls
    asked = {stem(piece) for word in parse_text(query, now).words for piece in word.pieces}

    def mark(match: re.Match[str]) -> str:
        stems = {stem(piece.lower()) for piece in pieces(plain_text(match[0]))}
        return click.style(match[0], bold=True) if stems & asked else match[0]

    return lambda title: _WORD.sub(mark, without_controls(title))


@click.command()
@click.pass_obj
def reindex(settings: Settings) -> None:
    """Make the search index anew from the memories. Nothing else is touched."""
    if not settings.layout.database.exists():
        raise NotFound(NOTHING_YET)
    with open_store_for_import(settings) as store:
        click.echo(f"indexed {counted(full_text.rebuild(store), 'memory')}")
        semantic_index = open_semantic_index(settings.embedder)
        while semantic_index is not None and semantic_index.embed_some(store):
            pass


commands = [search, timeline, related, reindex]
