"""claude-mem refine: a model revises memories of earlier turns."""

import os
import sys
import time

import click

from claude_mem.cli.imports import day_ms
from claude_mem.cli.open_store import open_reader
from claude_mem.cli.output import json_option, print_json
from claude_mem.config import Settings
from claude_mem.errors import ClaudeMemError
from claude_mem.observer.models.active_observer import select_observer
from claude_mem.observer.models.estimates import Estimate, estimate
from claude_mem.server import client
from claude_mem.store import StoreReader
from claude_mem.store.refine_requests import RefineSelection
from claude_mem.text import pluralize
from claude_mem.types import Json
from claude_mem.worker.refiner import OLDER_TURNS, caps_of

ROUTE = "/api/observer/refine"
POLL_SECONDS = 1.0
STALLED_POLLS = 180


@click.command()
@click.option("--project", default="", help="Only turns of this project (name or key).")
@click.option("--since", default="", help="Only turns since this day (UTC), such as 2026-01-31.")
@click.option("--limit", default=200, type=click.IntRange(1, 100_000),
              help="Maximum turns (default 200).")  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Show the estimate without queueing turns.")
@click.option("--cancel", is_flag=True, help="Remove waiting turns from the queue.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@json_option
@click.pass_obj
def refine(
    settings: Settings,
    project: str,
    since: str,
    limit: int,
    dry_run: bool,
    cancel: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Have a model revise memories of earlier and imported turns.

    The most valuable turns come first: those with commits, observations and changed files. They
    are revised after today's turns and use at most 80% of the daily limits; turns beyond a
    limit wait for the next day. Memories that a model wrote or that you changed stay as they are.
    """
    if cancel:
        _cancel(settings, as_json)
        return
    observer = select_observer(settings, os.environ)
    if not observer.has_model:
        raise ClaudeMemError(
            f"no model is in use ({observer.reason}). To choose one: claude-mem observer claude"
        )
    with open_reader(settings) as store:
        if store is None:
            raise ClaudeMemError("there are no memories yet")
        project_id = store.find_project(project) if project else None
        selection = RefineSelection(project_id, day_ms(since), limit)
        preview = _estimate(settings, store, selection, observer.model_name)
    body: dict[str, Json] = {"project": project, "since_ms": selection.since_ms, "limit": limit}
    if as_json and (dry_run or not preview.turns):
        print_json({**_as_json(preview), "queued": 0})
        return
    if not as_json:
        click.echo(describe(preview, observer.model_name, observer.active))
    if dry_run or not preview.turns:
        return
    _confirm(yes)
    queued = client.request(settings.layout, os.environ, ROUTE, body)["queued"]
    if as_json:
        print_json({**_as_json(preview), "queued": queued})
        return
    click.echo(f"{pluralize(queued, 'turn')} queued. To stop: claude-mem refine --cancel")
    if sys.stderr.isatty():
        _watch(settings, int(str(queued)))


def _estimate(
    settings: Settings, store: StoreReader, selection: RefineSelection, model: str
) -> Estimate:
    return estimate(
        store.refinable_turns(selection),
        store.drafted_turn,
        settings.observer.verbosity,
        caps_of(settings).share(OLDER_TURNS),
        model,
    )


def describe(preview: Estimate, model: str, observer: str) -> str:
    if not preview.turns:
        return "Nothing to refine: no such turn has memories without a model."
    lines = [f"{pluralize(preview.turns, 'turn')}, about {preview.tokens:,} tokens with {model}."]
    if preview.dollars is not None:
        billing = "; a subscription counts them against its limits" if observer == "claude" else ""
        lines.append(f"At list prices about ${preview.dollars:,.2f}{billing}.")
    if preview.days < 0:
        lines.append("The daily limits do not allow any request.")
    else:
        lines.append(f"Under the daily limits it takes {pluralize(preview.days, 'day')}.")
    return "\n".join(lines)


def _confirm(yes: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise ClaudeMemError("to refine these turns without a question, add --yes")
    click.confirm("Refine them?", default=False, abort=True)


def _cancel(settings: Settings, as_json: bool) -> None:
    answer = client.request(settings.layout, os.environ, ROUTE, {"cancel": True})
    if as_json:
        print_json(answer)
    else:
        count = pluralize(answer["cancelled"], "turn")
        click.echo(f"{count} taken out of the queue; revised memories stay.")


def _watch(settings: Settings, queued: int) -> None:
    """Waits until all is done or waits for another day; the worker goes on without this command."""
    waiting, unchanged = queued, 0
    try:
        with click.progressbar(length=queued, label="revised", file=sys.stderr) as bar:
            while waiting and unchanged < STALLED_POLLS:
                time.sleep(POLL_SECONDS)
                previous, waiting = waiting, _waiting(settings)
                bar.update(max(0, previous - waiting))
                unchanged = 0 if waiting != previous else unchanged + 1
    except KeyboardInterrupt:
        click.echo("\nIt goes on in the background. To stop: claude-mem refine --cancel", err=True)
        return
    if waiting:
        click.echo(f"{pluralize(waiting, 'turn')} still wait: claude-mem observer says why.")


def _waiting(settings: Settings) -> int:
    with open_reader(settings) as store:
        return store.requested_refinements() if store else 0


def _as_json(preview: Estimate) -> dict[str, Json]:
    dollars = None if preview.dollars is None else round(preview.dollars, 2)
    return {
        "turns": preview.turns,
        "input_tokens": preview.input_tokens,
        "output_tokens": preview.output_tokens,
        "days": preview.days,
        "dollars": dollars,
    }


commands = [refine]
