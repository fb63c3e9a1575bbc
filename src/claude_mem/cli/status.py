"""claude-mem status."""

import os

import click

from claude_mem.cli.open_store import NO_MEMORIES, open_reader
from claude_mem.cli.output import (
    format_counts,
    json_option,
    local_time,
    pluralize,
    print_heading,
    print_json,
    print_pairs,
)
from claude_mem.config import Settings
from claude_mem.config.pausing import current_pause
from claude_mem.hook import trouble
from claude_mem.index.vectors.semantic import open_semantic_index
from claude_mem.intake import leftovers, spool
from claude_mem.server.client import running_worker
from claude_mem.store import StoreReader
from claude_mem.store.clock import now_ms
from claude_mem.store.listing import Record
from claude_mem.types import Json
from claude_mem.worker.observer_status import describe, format_spending, has_spent


@click.command()
@json_option
@click.pass_obj
def status(settings: Settings, as_json: bool) -> None:
    """Show the state of the worker, the queue, the observer and the index."""
    layout = settings.layout
    running, paused = running_worker(layout), current_pause(layout)
    with open_reader(settings) as store:
        queue = store.queue_state() if store else {}
        counts = store.counts() if store else {}
        dead = store.dead_letters() if store else []
        observer = describe(settings, os.environ, store, now_ms())
        vectors = _vector_state(settings, store) if store else None
    report: dict[str, Json] = {
        "worker": running["worker"] if running else None,
        "data_dir": str(layout.root),
        "spool": {
            "waiting": len(spool.waiting(layout)),
            "rejected": len(leftovers.rejected(layout)),
            "set_aside": len(leftovers.records_set_aside(layout)),
            "lost": trouble.lost_events(os.fsencode(layout.root)),
        },
        "capture": {
            "paused": paused is not None,
            "until_epoch": paused.until_epoch if paused else None,
            "excluded": list(settings.capture.excluded_projects),
        },
        "queue": dict(queue),
        "observer": observer,
        "database": dict(counts),
        "meaning": vectors,
        "dead_letters": list(dead),
    }
    if as_json:
        print_json(report)
    else:
        _print_status(report)


def _vector_state(settings: Settings, store: StoreReader) -> dict[str, Json] | None:
    index = open_semantic_index(settings.embedder)
    if index is None:
        return None
    done, total = index.progress(store)
    return {"embedder": index.id, "read": done, "memories": total}


def _print_status(report: dict[str, Json]) -> None:
    worker, waiting = report["worker"], report["spool"]
    queue, counts = report["queue"], report["database"]
    assert isinstance(waiting, dict) and isinstance(queue, dict) and isinstance(counts, dict)
    running = "not running (the next hook starts it)"
    if isinstance(worker, dict):
        port = f", http://127.0.0.1:{worker['port']}" if worker.get("port") else ""
        running = f"running, version {worker['version']}, pid {worker['pid']}{port}"
    pairs: list[tuple[str, object]] = [("worker", running), ("data", report["data_dir"])]
    if counts:
        observations = pluralize(counts["observations"], "observation")
        summaries = pluralize(counts["summaries"], "summary")
        sessions = pluralize(counts["sessions"], "session")
        projects = pluralize(counts["projects"], "project")
        pairs.append(("memory", f"{observations}, {summaries}, {sessions}, {projects}"))
        pairs.append(("queue", format_counts(queue)))
        pairs.append(("vectors", _vector_line(report["meaning"])))
    else:
        pairs.append(("memory", NO_MEMORIES))
    observer = report["observer"]
    assert isinstance(observer, dict)
    spent = f"; {format_spending(observer)}" if has_spent(observer) else ""
    pairs.append(("observer", f"{observer['used']}, {observer['why']}{spent}"))
    aside = f", {waiting['set_aside']} set aside" if waiting["set_aside"] else ""
    spooled = f"{waiting['waiting']} events waiting, {waiting['rejected']} rejected{aside}"
    if waiting["lost"]:
        spooled += f", {waiting['lost']} lost: the disk was full"
    pairs.append(("spool", spooled))
    capture = report["capture"]
    assert isinstance(capture, dict)
    pairs.append(("recording", _capture_line(capture)))
    print_pairs(pairs)
    dead = report["dead_letters"]
    if isinstance(dead, list) and dead:
        print_heading("\nTurns that could not be summarised (claude-mem retry tries again):")
        for letter in dead:
            assert isinstance(letter, dict)
            click.echo(letter_line(letter))


def _capture_line(capture: dict[str, Json]) -> str:
    until = f" until {time}" if (time := local_time(capture["until_epoch"])) else ""
    state = f"paused{until} (claude-mem resume)" if capture["paused"] else "on"
    excluded = capture["excluded"]
    assert isinstance(excluded, list)
    return f"{state}; excluded: {', '.join(map(str, excluded))}" if excluded else state


def _vector_line(state: Json) -> str:
    if not isinstance(state, dict):
        return "none: search matches only words"
    return f"{state['read']} of {state['memories']} memories, embedder {state['embedder']}"


def letter_line(letter: Record) -> str:
    return (
        f"  {letter['content_session_id']} prompt {letter['prompt_number']}: {letter['last_error']}"
    )


commands = [status]
