"""claude-mem observer: who distils the sessions, why, and what that cost today."""

import os
import re
import sys
from contextlib import suppress
from datetime import UTC, datetime

import click

from claude_mem.cli.output import as_json_option, counted, heading, print_json, print_pairs
from claude_mem.cli.status import reading
from claude_mem.config import OBSERVER, Settings, change_setting, load_settings
from claude_mem.errors import ClaudeMemError, NotRunning
from claude_mem.observer.models.provider import (
    address_of,
    has_consent,
    missing_requirement,
    record_consent,
)
from claude_mem.server import client
from claude_mem.store.clock import now_ms
from claude_mem.types import Json
from claude_mem.worker.observer_status import describe, format_spending, has_spent

# A model's words are a stranger's: nothing in them moves the cursor.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


@click.command()
@click.argument("name", required=False, type=click.Choice(OBSERVER.choices))
@click.option("--yes", is_flag=True, help="Agree, without being asked, to what NAME sends where.")
@click.option("--answers", is_flag=True, help="Show the answers that were kept as they came.")
@as_json_option
@click.pass_obj
def observer(settings: Settings, name: str | None, yes: bool, answers: bool, as_json: bool) -> None:
    """Which observer is used and why, and what it spent today; NAME switches to another at once.

    local asks no model. claude uses Claude Code with your own login, anthropic and openai an API
    (the latter any that speaks OpenAI's language: API_URL, MODEL and API_KEY are settings).
    Answers that could not be read, or that say more than memories hold, are kept for a while.
    """
    if name is not None:
        settings = switch(settings, name, yes)
    if answers:
        _print_answers(settings, as_json)
        return
    with reading(settings) as store:
        found = describe(settings, os.environ, store, now_ms())
    if as_json:
        print_json(found)
    else:
        _print(found)


def switch(settings: Settings, name: str, yes: bool) -> Settings:
    """To this observer, for which the person is asked once; a running worker follows."""
    if settings.source_of(OBSERVER) == "environment" and settings.observer.kind != name:
        raise ClaudeMemError(
            f"the environment sets {OBSERVER.name}={settings.observer.kind}, which overrides "
            "settings.json: remove it there first"
        )
    wanted = load_settings({**os.environ, OBSERVER.name: name})
    if missing := missing_requirement(wanted, os.environ):
        raise ClaudeMemError(f"{name} cannot be used: {missing}")
    ask_once(wanted, name, yes)
    change_setting(settings.layout.settings, OBSERVER, name)
    with suppress(NotRunning):
        client.ask_worker(settings.layout, "/api/observer", {})
    return load_settings(os.environ)


def ask_once(wanted: Settings, name: str, yes: bool) -> None:
    address = address_of(wanted)
    if name == "local" or has_consent(wanted.layout, name, address):
        return
    caps = (f"at most {wanted.observer.daily_requests} requests and "
            f"{wanted.observer.daily_tokens} tokens a day")  # fmt: skip
    what = (f"{name} sends what happens in your sessions, without secrets and private parts, to "
            f"{address}, and spends your quota or money there: {caps}.")  # fmt: skip
    if not yes:
        if not sys.stdin.isatty():
            raise ClaudeMemError(f"{what} To agree: claude-mem observer {name} --yes")
        click.echo(what)
        click.confirm("Use it?", default=False, abort=True)
    record_consent(wanted.layout, name, address)


def _print(found: dict[str, Json]) -> None:
    pairs: list[tuple[str, object]] = [("observer", f"{found['used']} ({found['why']})")]
    if "model" in found:
        pairs += [("model", found["model"] or "none"), ("sends to", found["address"]),
                  ("key", found["key"])]  # fmt: skip
    if has_spent(found):
        pairs.append(("spent", format_spending(found)))
    if "model" in found:
        breaker = found["breaker"]
        assert isinstance(breaker, dict)
        pairs.append(("breaker", breaker_in_words(breaker)))
    drafts = found["drafts"]
    assert isinstance(drafts, dict)
    if waiting := int(str(drafts.get("pending", 0))) + int(str(drafts.get("processing", 0))):
        pairs.append(("waiting", counted(waiting, "draft")))
    if kept := drafts.get("kept"):
        reason = f"; the last: {found['last_reason']}" if "last_reason" in found else ""
        pairs.append(("left", f"{counted(kept, 'draft')} stand as they are{reason}"))
    print_pairs(pairs)


def _print_answers(settings: Settings, as_json: bool) -> None:
    with reading(settings) as store:
        kept = store.kept_replies() if store else []
    if as_json:
        print_json(list(kept))
        return
    if not kept:
        click.echo("no answer is kept")
    for one in kept:
        why = one["reason"] or "it says more than the memories hold"
        heading(f"session {one['session']}, turn {one['turn']}: {why}")
        click.echo(_UNPRINTABLE.sub("", str(one["reply"])).strip() + "\n")


def breaker_in_words(breaker: dict[str, Json]) -> str:
    if breaker["state"] == "closed":
        return "closed"
    until = datetime.fromtimestamp(int(str(breaker["until_epoch"])) / 1000, UTC)
    return f"{breaker['state']} until {until:%H:%M} UTC: {breaker['reason']}"


commands = [observer]
