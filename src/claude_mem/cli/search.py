"""claude-mem search, timeline, related and reindex."""

import re
import sys
from datetime import datetime
from typing import Any

import click

from claude_mem import params
from claude_mem.cli.arguments import OneLineErrors, several_of
from claude_mem.cli.open_store import open_reader, open_store_for_import
from claude_mem.cli.output import json_option, print_json
from claude_mem.cli.team_recall import has_joined, timeline_of_team
from claude_mem.config import Settings
from claude_mem.errors import BadInput, NotFound
from claude_mem.index import indexing
from claude_mem.index.vectors.document_vectors import embed_some
from claude_mem.index.vectors.lazy_index import open_semantic_index
from claude_mem.quick_commands import VERBOSE
from claude_mem.recall.formatting import (
    Show,
    search_json,
    search_text,
    timeline_json,
    timeline_text,
)
from claude_mem.recall.highlighting import highlighter
from claude_mem.recall.memory_ids import parse_any_id
from claude_mem.recall.related import related as find_related
from claude_mem.recall.search import ORDERS
from claude_mem.recall.timeline import timeline as find_timeline
from claude_mem.server.quick_command_replies import search_reply
from claude_mem.text import NO_MEMORIES, pluralize, without_controls
from claude_mem.types import OBSERVATION_TYPES, SESSION_STATUSES

# `-word` is part of the query, so no option here has a short name: click would find -h in -hello.
_QUERY = {"ignore_unknown_options": True, "help_option_names": ["--help"]}
_OPTION = re.compile(r"--[\w-]+(=.*)?", re.DOTALL)


class _ShortOption(click.Option):
    """Shown with its first letter, which is looked for among the words of the query."""

    def get_help_record(self, context: click.Context) -> tuple[str, str] | None:
        names, text = super().get_help_record(context) or ("", "")
        return f"-{names.strip('-')[0]}, {names}", text


def _show_help(
    context: click.Context, param: click.Parameter, words: tuple[str, ...]
) -> tuple[str, ...]:
    if "-h" in words:
        click.echo(context.get_help(), color=context.color)
        context.exit()
    return words


def _check_date(context: click.Context, param: click.Parameter, value: str | None) -> str | None:
    try:
        if value:
            params.parse_timestamp(value, datetime.now().astimezone())
    except ValueError:
        message = f"{value!r} is not a date such as 2026-03-09."
        raise click.BadParameter(message, context, param) from None
    return value


_TYPES = several_of((*OBSERVATION_TYPES, *params.KINDS))
_TYPES_HELP = f"{', '.join(OBSERVATION_TYPES)}, summaries or prompts; separate several with commas."
_VERBOSE_HELP = "Also show the number of tokens, and the words that agents get (weak, outside)."
_verbose_option = click.option("--verbose", is_flag=True, cls=_ShortOption, help=_VERBOSE_HELP)
_LIMIT = click.IntRange(1, params.MAX_LIMIT)
_DEPTH = click.IntRange(0, params.MAX_DEPTH)


@click.command(cls=OneLineErrors, context_settings=_QUERY)
@click.argument("query", nargs=-1, type=click.UNPROCESSED, is_eager=True, callback=_show_help)
@click.option("--project", help="Only this project (name or key).")
@click.option("--type", callback=_TYPES, help=_TYPES_HELP)
@click.option(
    "--concept", "concepts", help="Only memories with this concept; separate several with commas."
)
@click.option(
    "--file", "files", help="Only memories about this file or folder; separate several with commas."
)
@click.option(
    "--since",
    "dateStart",
    callback=_check_date,
    help="Only memories since this day, such as 2026-03-09.",
)
@click.option(
    "--until", "dateEnd", callback=_check_date, help="Only memories up to and including this day."
)
@click.option("--session", help="Only this session (id from `claude-mem sessions`).")
@click.option(
    "--status",
    callback=several_of(SESSION_STATUSES),
    help="Only sessions with this status: active, completed, failed or interrupted; separate "
    "several with commas.",
)
@click.option("--wrong", is_flag=True, default=None, help="Include memories marked as wrong.")
@click.option(
    "--order", "orderBy", type=click.Choice(ORDERS), help="Sort order (default: relevance)."
)
@click.option("--limit", type=_LIMIT, help="Maximum rows (default 8).")
@click.option("--offset", type=click.IntRange(0, params.MAX_OFFSET), help="Rows to skip.")
@_verbose_option
@json_option
@click.help_option("--help", cls=_ShortOption)
@click.pass_obj
def search(
    settings: Settings, /, query: tuple[str, ...], verbose: bool, as_json: bool, **options: Any
) -> None:
    """Search memories.

    \b
    claude-mem search why does the light flicker
    claude-mem search '"exact phrase" relay -fuse'
    claude-mem search --file src/light.py --since 2026-03-01

    Any word may match, a phrase in quotes must match, and -word must not match. For times such
    as "last week" or "in May", memories from that time rank higher. To read a memory in full, use
    its id:

    \b
    claude-mem show 12 S3 P4
    """
    text, verbose = _join(query, verbose)
    now = datetime.now().astimezone()
    values = {"query": text, **_set(options)}
    with open_reader(settings) as store:
        if store is not None:
            index = open_semantic_index(settings)
            for_terminal = sys.stdout.isatty()
            reply = search_reply(store, values, now, index, as_json, for_terminal, verbose)
            click.echo(reply)
            return
    if as_json:
        print_json({"results": []})
    else:
        click.echo(NO_MEMORIES)


@click.command(cls=OneLineErrors, context_settings=_QUERY)
@click.argument(
    "anchor",
    nargs=-1,
    required=True,
    type=click.UNPROCESSED,
    is_eager=True,
    callback=_show_help,
)
@click.option("--before", "depth_before", type=_DEPTH, help="Memories before it (default 10).")
@click.option("--after", "depth_after", type=_DEPTH, help="Memories after it (default 10).")
@click.option("--project", help="Only this project (name or key).")
@_verbose_option
@json_option
@click.help_option("--help", cls=_ShortOption)
@click.pass_obj
def timeline(
    settings: Settings, /, anchor: tuple[str, ...], verbose: bool, as_json: bool, **options: Any
) -> None:
    """Show the memories before and after ANCHOR: an id such as 12, S3 or P4, or a search query."""
    text, verbose = _join(anchor, verbose)
    now = datetime.now().astimezone()
    identity = parse_any_id(text)
    name = "anchor" if identity and identity.kind != "fact" else "query"
    values = {name: text, **_set(options)}
    if has_joined(settings):
        click.echo(timeline_of_team(settings, values, as_json))
        return
    with open_reader(settings) as store:
        if store is None:
            raise NotFound(NO_MEMORIES)
        request = params.timeline_query(store, values, now)
        result = find_timeline(store, request, now, open_semantic_index(settings))
    if as_json:
        print_json(timeline_json(result))
    else:
        show = _highlighter(text, now)
        click.echo(timeline_text(result, now.tzinfo, show, plain=not verbose))


@click.command(cls=OneLineErrors)
@click.argument("anchor")
@click.option(
    "--project", help="Search this project (name or key) instead of the project of ANCHOR."
)
@click.option("--type", callback=_TYPES, help=_TYPES_HELP)
@click.option("--limit", type=_LIMIT, help="Maximum rows (default 10).")
@click.option("-v", "--verbose", is_flag=True, help=_VERBOSE_HELP)
@json_option
@click.pass_obj
def related(
    settings: Settings, /, anchor: str, verbose: bool, as_json: bool, **options: Any
) -> None:
    """List memories with a meaning similar to that of ANCHOR.

    ANCHOR is the id of an observation (12), a summary (S3) or a prompt (P4).
    """
    now = datetime.now().astimezone()
    with open_reader(settings) as store:
        if store is None:
            raise NotFound(NO_MEMORIES)
        request = params.related_query(store, {"anchor": anchor, **_set(options)}, now)
        result = find_related(store, request, open_semantic_index(settings))
    if as_json:
        print_json(search_json(result))
    else:
        more = f"--limit {min(2 * request.limit, params.MAX_LIMIT)}"
        click.echo(search_text(result, now.tzinfo, without_controls, more=more, plain=not verbose))


def _set(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _join(words: tuple[str, ...], verbose: bool) -> tuple[str, bool]:
    """The query, and whether its words or the option ask for details."""
    for word in words:
        if _OPTION.fullmatch(word):
            raise BadInput(f"no such option: {word}. To search for it: '\"{word}\"'")
    rest = [word for word in words if word not in VERBOSE]
    return " ".join(rest), verbose or len(rest) < len(words)


def _highlighter(query: str, now: datetime) -> Show:
    """Marks the words of the query if stdout is a terminal."""
    if not sys.stdout.isatty():
        return without_controls
    return highlighter(query, now)


@click.command()
@click.pass_obj
def reindex(settings: Settings) -> None:
    """Rebuild the search index. Memories are not changed."""
    if not settings.layout.database.exists():
        raise NotFound(NO_MEMORIES)
    with open_store_for_import(settings) as store:
        click.echo(f"Indexed {pluralize(indexing.rebuild(store), 'memory')}.")
        semantic_index = open_semantic_index(settings)
        while semantic_index is not None and embed_some(semantic_index, store):
            pass


commands = [search, timeline, related, reindex]
