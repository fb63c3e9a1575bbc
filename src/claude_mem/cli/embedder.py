"""claude-mem embedder: which model semantic search uses, and consent to the address of one."""

import os
import sys
from contextlib import suppress

import click

from claude_mem.cli.output import json_option, print_json, print_pairs
from claude_mem.cli.user_only import refuse_agents
from claude_mem.config import (
    EMBEDDER,
    EMBEDDER_MODEL,
    EMBEDDER_URL,
    Setting,
    Settings,
    change_setting,
    has_consent,
    load_settings,
    record_consent,
    record_environment,
)
from claude_mem.errors import ClaudeMemError, NotRunning
from claude_mem.index.embedders.embedder import CONSENT, endpoint_problem, terms_of
from claude_mem.server import client
from claude_mem.types import Json

ENDPOINT = "endpoint"


@click.command()
@click.argument("name", required=False, type=click.Choice(EMBEDDER.choices))
@click.option("--url", help="Address of the endpoint.")
@click.option("--model", help="Name of the model, or for onnx its directory.")
@click.option("--yes", is_flag=True, help="Agree to sending text to the endpoint, without asking.")
@json_option
@click.pass_obj
def embedder(
    settings: Settings,
    name: str | None,
    url: str | None,
    model: str | None,
    yes: bool,
    as_json: bool,
) -> None:
    """Show the model for semantic search, or switch to another one.

    endpoint sends the text of memories and searches to a server; you must agree to its address
    once.
    """
    if name is not None:
        settings = _switch(settings, name, {EMBEDDER_URL: url, EMBEDDER_MODEL: model}, yes)
    elif url or model or yes:
        raise ClaudeMemError("NAME is missing: claude-mem embedder endpoint --url URL --model NAME")
    state = _state(settings)
    if as_json:
        print_json(state)
    else:
        print_pairs(list(state.items()))


def _switch(
    settings: Settings, name: str, options: dict[Setting, str | None], yes: bool
) -> Settings:
    values = {EMBEDDER: name, **{setting: text for setting, text in options.items() if text}}
    for setting, text in values.items():
        if settings.source_of(setting) == "environment" and settings.text_of(setting) != text:
            raise ClaudeMemError(
                f"the environment sets {setting.name}={settings.text_of(setting)}, which overrides "
                "settings.json: unset it first"
            )
    changed = load_settings(
        {**os.environ, **{setting.name: text for setting, text in values.items()}}
    )
    if name == ENDPOINT:
        has_address = bool(options[EMBEDDER_URL])
        _ask_consent(changed, yes, has_address or settings.source_of(EMBEDDER_URL) != "environment")
    for setting, text in values.items():
        change_setting(settings.layout.settings, setting, text)
    record_environment(settings.layout, os.environ)
    with suppress(NotRunning):
        client.ask_worker(settings.layout, "/api/settings/reload", {})
    return load_settings(os.environ)


def _ask_consent(settings: Settings, yes: bool, is_own_address: bool) -> None:
    """`is_own_address`: it does not come from the environment, which a project may have set."""
    if problem := endpoint_problem(settings.embedder):
        raise ClaudeMemError(problem)
    url = settings.embedder.url
    if has_consent(settings.layout, CONSENT, url):
        return
    refuse_agents()
    if not (yes and is_own_address):
        if not sys.stdin.isatty():
            command = f"claude-mem embedder {ENDPOINT} --url {url} --yes"
            raise ClaudeMemError(f"{terms_of(url)} To agree: {command}")
        click.echo(terms_of(url))
        click.confirm("Use it?", default=False, abort=True)
    record_consent(settings.layout, CONSENT, url)


def _state(settings: Settings) -> dict[str, Json]:
    chosen = settings.embedder
    state: dict[str, Json] = {"embedder": f"{chosen.kind} ({settings.source_of(EMBEDDER)})"}
    if chosen.model:
        state["model"] = chosen.model
    if chosen.kind == ENDPOINT:
        is_agreed = has_consent(settings.layout, CONSENT, chosen.url)
        state["address"] = chosen.url
        state["agreed"] = "yes" if is_agreed else f"no: claude-mem embedder {ENDPOINT}"
    return state


commands = [embedder]
