"""claude-mem status, sessions, show, stats and context: commands that only read."""

import os
from datetime import datetime
from pathlib import Path

import click

from claude_mem.cli.answers import show_answers
from claude_mem.cli.open_store import NO_MEMORIES, open_reader
from claude_mem.cli.output import (
    format_counts,
    json_option,
    pluralize,
    print_heading,
    print_json,
    print_pairs,
    print_table,
)
from claude_mem.config import Settings
from claude_mem.config.pausing import current_pause
from claude_mem.errors import BadInput, NotFound
from claude_mem.hook import trouble
from claude_mem.index.vectors.semantic import open_semantic_index
from claude_mem.intake import leftovers, spool
from claude_mem.intake.projects import Projects
from claude_mem.recall.context import build_context
from claude_mem.recall.tokens import estimate_tokens
from claude_mem.server.client import running_worker
from claude_mem.store import StoreReader
from claude_mem.store.clock import now_ms
from claude_mem.store.facts_json import fact_texts
from claude_mem.store.listing import Page, Record
from claude_mem.store.records import record_data
from claude_mem.text import without_controls
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


@click.command()
@click.option("--project", help="Only this project (name or key).")
@click.option(
    "--limit", default=20, type=click.IntRange(1, 1000), help="Maximum rows (default 20)."
)
@json_option
@click.pass_obj
def sessions(settings: Settings, project: str | None, limit: int, as_json: bool) -> None:
    """List sessions, latest first."""
    with open_reader(settings) as store:
        rows: list[Record] = []
        if store is not None:
            project_id = store.find_project(project) if project else None
            rows, _ = store.page("sessions", Page(limit=limit), project_id)
    if as_json:
        print_json(list(rows))
    elif not rows:
        click.echo(NO_MEMORIES)
    else:
        print_table(
            ("id", "when", "project", "status", "prompts", "title"),
            [(s["id"], local_time(s["updated_at_epoch"]), s["project"], s["status"],
              s["prompt_counter"], s["title"] or _first_line(s["user_prompt"])) for s in rows],
        )  # fmt: skip


@click.command()
@click.argument("ids", nargs=-1, required=True)
@click.option("--record", "with_record", is_flag=True, help="Add the full text of the turn.")
@click.option("--words", default="", help="Only the passages of their turns about this question.")
@json_option
@click.pass_obj
def show(
    settings: Settings, ids: tuple[str, ...], with_record: bool, words: str, as_json: bool
) -> None:
    """Show memories in full.

    \b
    claude-mem show 12           an observation
    claude-mem show S3           a summary
    claude-mem show P4           a prompt
    claude-mem show session 5    a session with all its memories; the id is that of
                                 `claude-mem sessions` or the agent's session id
    """
    with open_reader(settings) as store:
        if store is None:
            raise NotFound(NO_MEMORIES)
        if ids == ("session",):
            raise BadInput("session id missing: `claude-mem sessions` lists them")
        if words.strip():
            if with_record:
                raise BadInput("set only one of --record and --words")
            show_answers(store, settings, ids, words.strip(), as_json)
            return
        if ids[0] == "session":
            matches = {text: _session_records(store, text, with_record) for text in ids[1:]}
        else:
            matches = {text: _find(store, text) for text in ids}
            if with_record:
                matches = {text: _with_records(store, rows) for text, rows in matches.items()}
    records = [record for match in matches.values() for record in match]
    if as_json:
        print_json([{"kind": kind, **record} for kind, record in records])
    else:
        for position, (kind, record) in enumerate(records):
            if position:
                click.echo()
            _print_record(kind, record)
    if missing := [text for text, match in matches.items() if not match]:
        raise NotFound(f"no memory with id {', '.join(missing)}")


_KINDS = {"": "observations", "#": "observations", "S": "summaries", "P": "prompts"}


def _find(store: StoreReader, text: str) -> list[tuple[str, Record]]:
    mark = "" if text[:1].isdecimal() else text[:1].upper()
    digits = text[1:] if mark else text
    if mark not in _KINDS or not _is_number(digits):
        raise BadInput(f"{text!r} is not an id such as 12, S3, P4 or `session 5`")
    return [(_KINDS[mark], record) for record in store.get_many(_KINDS[mark], [int(digits)])]


def _with_records(
    store: StoreReader, memories: list[tuple[str, Record]]
) -> list[tuple[str, Record]]:
    return [(noun, {**memory, **_record_of(store, noun, memory)}) for noun, memory in memories]


def _record_of(store: StoreReader, noun: str, memory: Record) -> Record:
    identity = memory["id"]
    if noun == "sessions" or not isinstance(identity, int):
        return {}
    return {"record": record_data(store.records_of(noun, [identity]).get(identity, ()))}


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 19


def _session_records(store: StoreReader, text: str, with_record: bool) -> list[tuple[str, Record]]:
    session = store.session_by_content_id(text)
    if session is None and _is_number(text):
        session = store.session(int(text))
    if session is None:
        raise NotFound(f"no session {text!r}: `claude-mem sessions` lists them")
    session_id = session["id"]
    assert isinstance(session_id, int)
    result: list[tuple[str, Record]] = [("sessions", session)]
    for kind, records in store.memories_of_session(session_id).items():
        assert isinstance(records, list)
        memories = [(kind, record) for record in records if isinstance(record, dict)]
        # Once for each turn, with its prompt.
        result += _with_records(store, memories) if with_record and kind == "prompts" else memories
    return result


_LABELS = {
    "observations": ("title", "subtitle", "narrative", "facts", "concepts", "files_read",
                     "files_modified"),
    "summaries": ("request", "investigated", "learned", "completed", "next_steps", "files_read",
                  "files_edited", "commands", "faults", "notes"),
    "prompts": ("prompt_text",),
    "sessions": ("title", "subtitle", "status", "content_session_id", "project_dir",
                 "prompt_counter"),
}  # fmt: skip
_MARKS = {"observations": "#", "summaries": "S", "prompts": "P", "sessions": "session "}


def _print_record(kind: str, record: Record) -> None:
    when = local_time(record.get("created_at_epoch") or record.get("updated_at_epoch"))
    type_ = f" {record['type']}" if kind == "observations" else ""
    print_heading(f"{_MARKS[kind]}{record['id']}{type_}  {record['project']}  {when}")
    for name in _LABELS[kind]:
        value = fact_texts(record, name) or record[name]
        if isinstance(value, list):
            single = len(value) == 1
            value = str(value[0]) if single else "\n".join(f"- {item}" for item in value)
        if value is None or value == "":
            continue
        text = without_controls(str(value))
        label = name.replace("_", " ")
        click.echo(f"{label}:\n{text}" if "\n" in text else f"{label}: {text}")
    parts = record.get("record")
    for part in parts if isinstance(parts, list) else ():
        assert isinstance(part, dict)
        click.echo()
        print_heading(f"{part['speaker']}, {str(part['kind']).replace('_', ' ')}")
        click.echo(without_controls(str(part["text"])))


@click.command()
@json_option
@click.pass_obj
def stats(settings: Settings, as_json: bool) -> None:
    """Count memories by project."""
    with open_reader(settings) as store:
        counts = store.counts() if store else {}
        projects = store.projects() if store else []
    if as_json:
        print_json({"database": dict(counts), "projects": list(projects)})
    elif not counts:
        click.echo(NO_MEMORIES)
    else:
        print_pairs(list(counts.items()))
        click.echo()
        print_table(
            ("project", "sessions", "observations", "last active", "key"),
            [(p["name"], p["sessions"], p["observations"], local_time(p["updated_at_epoch"]),
              p["key"]) for p in projects],
        )  # fmt: skip


def show_context(settings: Settings, project: str | None, as_json: bool) -> None:
    budget = settings.context.tokens
    with open_reader(settings) as store:
        text = ""
        if store is not None:
            project_id = store.find_project(project) if project else _project_here(store)
            text = build_context(store, project_id, budget) if project_id is not None else ""
    if as_json:
        print_json({"context": text, "tokens": estimate_tokens(text)})
    elif text:
        click.echo(without_controls(text))
    elif budget == 0:
        click.echo("Sessions get no context: CLAUDE_MEM_CONTEXT_TOKENS is 0.")
    else:
        click.echo("No memories of this project yet.")


def _project_here(store: StoreReader) -> int | None:
    home = os.environ.get("HOME")
    directory = os.environ.get("CLAUDE_PROJECT_DIR") or str(Path.cwd())
    return store.project_by_key(Projects(Path(home) if home else None).of(directory).key)


def local_time(ms: Json) -> str:
    if not isinstance(ms, int):
        return ""
    return datetime.fromtimestamp(ms / 1000).astimezone().strftime("%Y-%m-%d %H:%M")


def _first_line(text: Json) -> str:
    return text.strip().splitlines()[0][:80] if isinstance(text, str) and text.strip() else ""


commands = [status, sessions, show, stats]
