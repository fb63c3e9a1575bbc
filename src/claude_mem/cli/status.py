"""status, sessions, show, stats and the person's view of context. They only read."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import click

from claude_mem.cli.output import (
    as_json_option,
    counted,
    heading,
    in_words,
    print_json,
    print_pairs,
    print_table,
)
from claude_mem.config import Settings
from claude_mem.errors import BadInput, NotFound
from claude_mem.index.vectors.semantic import open_semantic_index
from claude_mem.intake import spool
from claude_mem.intake.projects import Projects
from claude_mem.recall.context import build_context
from claude_mem.recall.tokens import estimate_tokens
from claude_mem.server.client import running_worker
from claude_mem.store import StoreReader
from claude_mem.store.clock import now_ms
from claude_mem.store.pages import Page, Record
from claude_mem.store.summary_facts import fact_texts
from claude_mem.text import without_controls
from claude_mem.types import Json
from claude_mem.worker.observer_status import describe, format_spending, has_spent

NOTHING_YET = "Nothing is remembered yet. Memory begins with the first session after install."


@contextmanager
def reading(settings: Settings) -> Iterator[StoreReader | None]:
    """The store, or None where there is none yet: looking must not create one."""
    if not settings.layout.database.exists():
        yield None
        return
    with StoreReader.open_existing(settings.layout.database) as store:
        yield store


@click.command()
@as_json_option
@click.pass_obj
def status(settings: Settings, as_json: bool) -> None:
    """Is it running, and is anything stuck."""
    layout = settings.layout
    running = running_worker(layout)
    with reading(settings) as store:
        queue = store.queue_state() if store else {}
        counts = store.counts() if store else {}
        dead = store.dead_letters() if store else []
        observer = describe(settings, os.environ, store, now_ms())
        read = _read_by_meaning(settings, store) if store else None
    report: dict[str, Json] = {
        "worker": running["worker"] if running else None,
        "data_dir": str(layout.root),
        "spool": {"waiting": len(spool.waiting(layout)), "rejected": len(spool.rejected(layout))},
        "queue": dict(queue),
        "observer": observer,
        "database": dict(counts),
        "meaning": read,
        "dead_letters": list(dead),
    }
    if as_json:
        print_json(report)
    else:
        _print_status(report)


def _read_by_meaning(settings: Settings, store: StoreReader) -> dict[str, Json] | None:
    semantic_index = open_semantic_index(settings.embedder)
    if semantic_index is None:
        return None
    done, every = semantic_index.progress(store)
    return {"embedder": semantic_index.id, "read": done, "memories": every}


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
        observations = counted(counts["observations"], "observation")
        summaries = counted(counts["summaries"], "summary")
        sessions = counted(counts["sessions"], "session")
        projects = counted(counts["projects"], "project")
        pairs.append(("memory", f"{observations}, {summaries} of {sessions} in {projects}"))
        pairs.append(("queue", in_words(queue)))
        pairs.append(("meaning", _meaning_line(report["meaning"])))
    else:
        pairs.append(("memory", NOTHING_YET))
    observer = report["observer"]
    assert isinstance(observer, dict)
    spent = f"; {format_spending(observer)}" if has_spent(observer) else ""
    pairs.append(("observer", f"{observer['used']}, {observer['why']}{spent}"))
    pairs.append(("spool", f"{waiting['waiting']} events waiting, {waiting['rejected']} rejected"))
    print_pairs(pairs)
    dead = report["dead_letters"]
    if isinstance(dead, list) and dead:
        heading("\nTurns that could not be distilled; they are kept, claude-mem retry tries again:")
        for letter in dead:
            assert isinstance(letter, dict)
            click.echo(letter_line(letter))


def _meaning_line(read: Json) -> str:
    if not isinstance(read, dict):
        return "none: search goes by words alone"
    return f"{read['read']} of {read['memories']} memories read by {read['embedder']}"


def letter_line(letter: Record) -> str:
    return (
        f"  {letter['content_session_id']} prompt {letter['prompt_number']}: {letter['last_error']}"
    )


@click.command()
@click.option("--project", help="Only this project, by name or key.")
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1, 1000))
@as_json_option
@click.pass_obj
def sessions(settings: Settings, project: str | None, limit: int, as_json: bool) -> None:
    """Sessions, the latest first."""
    with reading(settings) as store:
        found: list[Record] = []
        if store is not None:
            project_id = store.find_project(project) if project else None
            found, _ = store.page("sessions", Page(limit=limit), project_id)
    if as_json:
        print_json(list(found))
    elif not found:
        click.echo(NOTHING_YET)
    else:
        print_table(
            ("id", "when", "project", "status", "prompts", "title"),
            [(s["id"], local_time(s["updated_at_epoch"]), s["project"], s["status"],
              s["prompt_counter"], s["title"] or _first_line(s["user_prompt"])) for s in found],
        )  # fmt: skip


@click.command()
@click.argument("ids", nargs=-1, required=True)
@as_json_option
@click.pass_obj
def show(settings: Settings, ids: tuple[str, ...], as_json: bool) -> None:
    """Memories in full, by id.

    \b
    12           an observation
    S3           a summary
    P4           a prompt
    session 5    everything of a session, by the id that `claude-mem sessions` shows,
                 or by the agent's own session id
    """
    with reading(settings) as store:
        if store is None:
            raise NotFound(NOTHING_YET)
        if ids == ("session",):
            raise BadInput("say which session: `claude-mem sessions` lists them")
        if ids[0] == "session":
            looked_up = {text: _whole_session(store, text) for text in ids[1:]}
        else:
            looked_up = {text: _find(store, text) for text in ids}
    records = [record for found in looked_up.values() for record in found]
    if as_json:
        print_json([{"kind": kind, **record} for kind, record in records])
    else:
        for position, (kind, record) in enumerate(records):
            if position:
                click.echo()
            _print_record(kind, record)
    if missing := [text for text, found in looked_up.items() if not found]:
        raise NotFound(f"there is nothing with the id {', '.join(missing)}")


_KINDS = {"": "observations", "#": "observations", "S": "summaries", "P": "prompts"}


def _find(store: StoreReader, text: str) -> list[tuple[str, Record]]:
    mark = "" if text[:1].isdecimal() else text[:1].upper()
    digits = text[1:] if mark else text
    if mark not in _KINDS or not _is_number(digits):
        raise BadInput(f"{text!r} is not an id: 12, S3, P4, or `session 5`")
    return [(_KINDS[mark], record) for record in store.get_many(_KINDS[mark], [int(digits)])]


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 19


def _whole_session(store: StoreReader, text: str) -> list[tuple[str, Record]]:
    session = store.session_by_content_id(text)
    if session is None and _is_number(text):
        session = store.session(int(text))
    if session is None:
        raise NotFound(f"there is no session {text!r}: `claude-mem sessions` lists them")
    identity = session["id"]
    assert isinstance(identity, int)
    found: list[tuple[str, Record]] = [("sessions", session)]
    for kind, records in store.memories_of_session(identity).items():
        assert isinstance(records, list)
        found += [(kind, record) for record in records if isinstance(record, dict)]
    return found


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
    what = f" {record['type']}" if kind == "observations" else ""
    heading(f"{_MARKS[kind]}{record['id']}{what}  {record['project']}  {when}")
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


@click.command()
@as_json_option
@click.pass_obj
def stats(settings: Settings, as_json: bool) -> None:
    """How much is remembered, by project."""
    with reading(settings) as store:
        counts = store.counts() if store else {}
        projects = store.projects() if store else []
    if as_json:
        print_json({"database": dict(counts), "projects": list(projects)})
    elif not counts:
        click.echo(NOTHING_YET)
    else:
        print_pairs(list(counts.items()))
        click.echo()
        print_table(
            ("project", "sessions", "observations", "last", "key"),
            [(p["name"], p["sessions"], p["observations"], local_time(p["updated_at_epoch"]),
              p["key"]) for p in projects],
        )  # fmt: skip


def show_context(settings: Settings, project: str | None, as_json: bool) -> None:
    budget = settings.context.tokens
    with reading(settings) as store:
        text = ""
        if store is not None:
            project_id = store.find_project(project) if project else _project_here(store)
            text = build_context(store, project_id, budget) if project_id is not None else ""
    if as_json:
        print_json({"context": text, "tokens": estimate_tokens(text)})
    elif text:
        click.echo(without_controls(text))
    elif budget == 0:
        click.echo("Sessions are given nothing: CLAUDE_MEM_CONTEXT_TOKENS is 0.")
    else:
        click.echo("Nothing is remembered of this project yet.")


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
