"""claude-mem observer: which observer summarises sessions, why, and what it used today."""

import os
import sys
from contextlib import suppress
from datetime import UTC, datetime

import click

from claude_mem.cli.open_store import open_reader
from claude_mem.cli.output import json_option, print_heading, print_json, print_pairs
from claude_mem.cli.user_only import refuse_agents
from claude_mem.config import (
    OBSERVER,
    Settings,
    change_setting,
    has_consent,
    load_settings,
    record_consent,
    record_environment,
)
from claude_mem.errors import ClaudeMemError, NotRunning
from claude_mem.observer.models.active_observer import (
    address_of,
    missing_requirement,
)
from claude_mem.observer.models.consent_text import terms_of
from claude_mem.server import client
from claude_mem.store.clock import now_ms
from claude_mem.text import pluralize, without_controls
from claude_mem.types import Json
from claude_mem.worker.observer_status import describe, format_spending, has_spent


@click.command()
@click.argument("name", required=False, type=click.Choice(OBSERVER.choices))
@click.option("--yes", is_flag=True, help="Agree to what the observer sends, without asking.")
@click.option(
    "--replies",
    is_flag=True,
    help="Show stored model replies that contain text missing from the memories.",
)
@click.option("--answers", is_flag=True, hidden=True, help="The earlier name of --replies.")
@json_option
@click.pass_obj
def observer(
    settings: Settings, name: str | None, yes: bool, replies: bool, answers: bool, as_json: bool
) -> None:
    """Show the observer, or switch to another one.

    local uses no model. claude uses Claude Code with your login. anthropic and openai use an HTTP
    API; openai works with any OpenAI-compatible server (settings CLAUDE_MEM_API_URL,
    CLAUDE_MEM_MODEL and CLAUDE_MEM_API_KEY).
    """
    if name is not None:
        settings = switch(settings, name, yes)
    if replies or answers:
        _print_replies(settings, as_json)
        return
    with open_reader(settings) as store:
        state = describe(settings, os.environ, store, now_ms())
    if as_json:
        print_json(state)
    else:
        _print(state)


def switch(settings: Settings, name: str, yes: bool) -> Settings:
    """Change the setting, after asking for consent once; a running worker applies it."""
    if settings.source_of(OBSERVER) == "environment" and settings.observer.kind != name:
        raise ClaudeMemError(
            f"the environment sets {OBSERVER.name}={settings.observer.kind}, which overrides "
            "settings.json: unset it first"
        )
    changed = load_settings({**os.environ, OBSERVER.name: name})
    if missing := missing_requirement(changed, os.environ):
        raise ClaudeMemError(f"{name} cannot be used: {missing}")
    ask_consent(changed, name, yes)
    change_setting(settings.layout.settings, OBSERVER, name)
    record_environment(settings.layout, os.environ)
    with suppress(NotRunning):
        client.ask_worker(settings.layout, "/api/observer", {})
    return load_settings(os.environ)


def ask_consent(settings: Settings, name: str, yes: bool) -> None:
    """Ask once for each observer and address; --yes agrees."""
    address = address_of(settings)
    if name == "local" or has_consent(settings.layout, name, address):
        return
    refuse_agents()
    terms = terms_of(settings, name, address)
    if not yes:
        if not sys.stdin.isatty():
            raise ClaudeMemError(f"{terms} To agree: claude-mem observer {name} --yes")
        click.echo(terms)
        click.confirm("Use it?", default=False, abort=True)
    record_consent(settings.layout, name, address)


def _print(state: dict[str, Json]) -> None:
    pairs: list[tuple[str, object]] = [("observer", f"{state['used']} ({state['why']})")]
    if "model" in state:
        pairs += [("model", state["model"] or "none"), ("address", state["address"]),
                  ("key", state["key"])]  # fmt: skip
    if has_spent(state):
        pairs.append(("used", format_spending(state)))
    if "model" in state:
        breaker = state["breaker"]
        assert isinstance(breaker, dict)
        pairs.append(("breaker", format_breaker(breaker)))
    drafts = state["drafts"]
    assert isinstance(drafts, dict)
    if waiting := int(str(drafts.get("pending", 0))) + int(str(drafts.get("processing", 0))):
        pairs.append(("waiting", pluralize(waiting, "draft")))
    if unrefined := drafts.get("kept"):
        reason = f"; last reason: {state['last_reason']}" if "last_reason" in state else ""
        pairs.append(("unrefined", f"{pluralize(unrefined, 'draft')}{reason}"))
    print_pairs(pairs)


def _print_replies(settings: Settings, as_json: bool) -> None:
    with open_reader(settings) as store:
        replies = store.kept_replies() if store else []
    if as_json:
        print_json(list(replies))
        return
    if not replies:
        click.echo("no replies are stored")
    for row in replies:
        reason = row["reason"] or "contains more than was stored as memories"
        print_heading(f"session {row['session']}, turn {row['turn']}: {reason}")
        click.echo(without_controls(str(row["reply"])).strip() + "\n")


def format_breaker(breaker: dict[str, Json]) -> str:
    if breaker["state"] == "closed":
        return "closed"
    until = datetime.fromtimestamp(int(str(breaker["until_epoch"])) / 1000, UTC)
    return f"{breaker['state']} until {until:%H:%M} UTC: {breaker['reason']}"


commands = [observer]
