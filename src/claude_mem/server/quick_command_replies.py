"""What search, context and status print: in the worker that is asked, or in the command itself."""

import json
import os
from collections.abc import Mapping
from datetime import datetime

from claude_mem import params
from claude_mem.config import Settings
from claude_mem.config.pausing import current_pause
from claude_mem.hook import trouble
from claude_mem.index.vectors.lazy_index import SemanticIndex
from claude_mem.intake import rejected_events, spool, undeletable
from claude_mem.recall.formatting import next_offset, search_json, search_text
from claude_mem.recall.highlighting import highlighter
from claude_mem.recall.search import SearchResult, search
from claude_mem.recall.tokens import estimate_tokens
from claude_mem.store import StoreReader
from claude_mem.store.memory_rows import JsonRow
from claude_mem.text import (
    NO_MEMORIES,
    format_counts,
    format_pairs,
    local_time,
    one_line,
    pluralize,
    without_controls,
)
from claude_mem.types import Json
from claude_mem.worker.disk_space import full_disk
from claude_mem.worker.observer_status import format_spending, has_spent


def json_text(value: Json, for_terminal: bool = False) -> str:
    return json.dumps(value, ensure_ascii=for_terminal, indent=2)


def search_reply(
    store: StoreReader,
    values: Mapping[str, Json],
    now: datetime,
    semantic_index: SemanticIndex | None,
    as_json: bool,
    for_terminal: bool,
    verbose: bool,
) -> str:
    result = search(store, params.search_query(store, values, now), now, semantic_index)
    return result_reply(result, values, now, as_json, for_terminal, verbose)


def result_reply(
    result: SearchResult,
    values: Mapping[str, Json],
    now: datetime,
    as_json: bool,
    for_terminal: bool,
    verbose: bool,
) -> str:
    if as_json:
        return json_text(search_json(result), for_terminal)
    show = highlighter(str(values["query"]), now) if for_terminal else without_controls
    more = f"--offset {next_offset(values, result)}"
    return search_text(result, now.tzinfo, show, more=more, plain=not verbose)


def context_reply(text: str, settings: Settings, as_json: bool) -> str:
    if as_json:
        return json_text({"context": text, "tokens": estimate_tokens(text)})
    if text:
        return without_controls(text)
    if settings.context.tokens == 0:
        return "Sessions get no context: CLAUDE_MEM_CONTEXT_TOKENS is 0."
    return "No memories of this project yet."


def status_report(
    settings: Settings,
    store: StoreReader | None,
    worker: Json,
    observer: dict[str, Json],
    semantic_index: SemanticIndex | None,
    obstacle: Json = "",
) -> dict[str, Json]:
    """`obstacle`: what the last cycle of the worker failed with."""
    layout = settings.layout
    paused = current_pause(layout)
    return {
        "worker": worker,
        "obstacle": obstacle or full_disk(layout),
        "data_dir": str(layout.root),
        "spool": {
            "waiting": len(spool.waiting(layout)),
            "rejected": len(rejected_events.rejected(layout)),
            "set_aside": len(rejected_events.records_set_aside(layout))
            + len(undeletable.entries(layout)),
            "lost": trouble.lost_events(os.fsencode(layout.root)),
        },
        "capture": {
            "paused": paused is not None,
            "until_epoch": paused.until_epoch if paused else None,
            "excluded": list(settings.capture.excluded_projects),
        },
        "queue": dict(store.queue_state()) if store else {},
        "imported": _imported_state(store) if store else {},
        "observer": observer,
        "database": dict(store.counts()) if store else {},
        "meaning": _vector_state(store, semantic_index) if store else None,
        "dead_letters": list(store.dead_letters()) if store else [],
    }


def _imported_state(store: StoreReader) -> dict[str, Json]:
    waiting, lost = store.count_undistilled()
    return {"waiting": waiting, "without_summary": lost}


def _vector_state(store: StoreReader, index: SemanticIndex | None) -> dict[str, Json] | None:
    if index is None:
        return None
    done, total = index.progress(store)
    return {"embedder": index.id, "read": done, "memories": total}


def status_text(report: dict[str, Json], for_terminal: bool) -> str:
    worker, waiting = report["worker"], report["spool"]
    queue, counts = report["queue"], report["database"]
    assert isinstance(waiting, dict) and isinstance(queue, dict) and isinstance(counts, dict)
    running = "not running (the next hook starts it)"
    if isinstance(worker, dict):
        port = f", http://127.0.0.1:{worker['port']}" if worker.get("port") else ""
        running = f"running, version {worker['version']}, pid {worker['pid']}{port}"
    pairs: list[tuple[str, object]] = [("worker", running), ("data", report["data_dir"])]
    if report["obstacle"]:
        pairs.append(("problem", one_line(without_controls(str(report["obstacle"])))))
    pairs.append(("viewer", "claude-mem open"))
    if counts:
        observations = pluralize(counts["observations"], "observation")
        summaries = pluralize(counts["summaries"], "summary")
        sessions = pluralize(counts["sessions"], "session")
        projects = pluralize(counts["projects"], "project")
        pairs.append(("memory", f"{observations}, {summaries}, {sessions}, {projects}"))
        pairs.append(("queue", format_counts(queue)))
        if imported := _imported_line(report["imported"]):
            pairs.append(("imported", imported))
        pairs.append(("vectors", _vector_line(report["meaning"])))
    else:
        pairs.append(("memory", NO_MEMORIES))
    observer = report["observer"]
    assert isinstance(observer, dict)
    spent = f"; {format_spending(observer)}" if has_spent(observer) else ""
    pairs.append(("observer", f"{observer['used']}, {observer['why']}{spent}"))
    aside = f", {waiting['set_aside']} set aside" if waiting["set_aside"] else ""
    spooled = (
        f"{pluralize(waiting['waiting'], 'event')} waiting, {waiting['rejected']} rejected{aside}"
    )
    if waiting["lost"]:
        spooled += f", {waiting['lost']} lost: the disk was full"
    pairs.append(("spool", spooled))
    capture = report["capture"]
    assert isinstance(capture, dict)
    pairs.append(("recording", _capture_line(capture)))
    lines = format_pairs(pairs)
    dead = report["dead_letters"]
    if isinstance(dead, list) and dead:
        heading = "\nTurns that could not be summarised (claude-mem retry tries again):"
        lines.append(f"\x1b[1m{heading}\x1b[0m" if for_terminal else heading)
        for letter in dead:
            assert isinstance(letter, dict)
            lines.append(dead_letter_line(letter))
    return "\n".join(lines)


def _capture_line(capture: dict[str, Json]) -> str:
    until = f" until {time}" if (time := local_time(capture["until_epoch"])) else ""
    state = f"paused{until} (claude-mem resume)" if capture["paused"] else "on"
    excluded = capture["excluded"]
    assert isinstance(excluded, list)
    return f"{state}; excluded: {', '.join(map(str, excluded))}" if excluded else state


def _imported_line(state: Json) -> str:
    """Writes the line about imported turns; empty where all have their summaries."""
    assert isinstance(state, dict)
    parts = []
    if waiting := state.get("waiting"):
        parts.append(f"{pluralize(waiting, 'turn')} to summarise, in the background")
    if lost := state.get("without_summary"):
        parts.append(f"{pluralize(lost, 'turn')} without summary: their transcripts are gone")
    return "; ".join(parts)


def _vector_line(state: Json) -> str:
    if not isinstance(state, dict):
        return "none: search uses full text only"
    memories = pluralize(state["memories"], "memory")
    return f"{state['read']} of {memories}, embedder {state['embedder']}"


def dead_letter_line(letter: JsonRow) -> str:
    session, error = letter["content_session_id"], letter["last_error"]
    text = one_line(without_controls(f"{session} prompt {letter['prompt_number']}: {error}"))
    return f"  {text}"
