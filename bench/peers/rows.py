"""The same memories for both products, straight into their tables.

Words are as frequent as words of a language are (Zipf). Nine tenths of the memories belong to the
project `harbor`, the others to `quay`; four observations and a summary a turn, five turns a
session. A record is what was said in the turn: the npm package has nothing like it. They are of
the current version of the observer: a worker would look for those that it can distil again.
"""

import json
import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from itertools import accumulate
from pathlib import Path

from bench.memories import OBSERVATIONS_PER_TURN, TURNS_PER_SESSION, Row, insert, session_row
from bench.turns import vocabulary
from claude_mem.index import indexing
from claude_mem.index.vectors.document_vectors import embed_some
from claude_mem.index.vectors.lazy_index import SemanticIndex
from claude_mem.observer.local.version import VERSION
from claude_mem.store import Store
from claude_mem.store.clock import iso
from claude_mem.store.database import connect
from claude_mem.store.turn_records import dump_parts
from claude_mem.types import OBSERVATION_TYPES, RecordPart

PROJECT, OTHER = "harbor", "quay"
OTHER_SHARE = 10  # every tenth session
STATEMENTS = 4  # of the agent, in the record of a turn
_FIRST_MS, _TURN_MS = 1_770_000_000_000, 60_000


def zipf_text(seed: int) -> Callable[[int], str]:
    """A function that returns a text of so many words."""
    words, rng = vocabulary(), random.Random(seed)
    weights = list(accumulate(1 / (rank + 10) for rank in range(len(words))))
    return lambda count: " ".join(rng.choices(words, cum_weights=weights, k=count)).capitalize()


def fill(database: Path, directory: str, observations: int, record: bool) -> None:
    """Our tables; the index is made by `index_all`."""
    text = zipf_text(observations)
    with closing(connect(database)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("BEGIN")
        projects = [insert(connection, "projects", {"key": k, "name": k}) for k in (PROJECT, OTHER)]
        insert(connection, "project_dirs", {
            "directory": directory, "project_id": projects[0], "seen_at_epoch": _FIRST_MS,
        })  # fmt: skip
        turns = observations // OBSERVATIONS_PER_TURN
        for number, first in enumerate(range(1, turns + 1, TURNS_PER_SESSION)):
            project = projects[number % OTHER_SHARE == OTHER_SHARE - 1]
            row = session_row(project, directory, first, TURNS_PER_SESSION)
            times = {"started_at": _ms(first), "updated_at": _ms(first), "completed_at": _ms(first)}
            for name, ms in times.items():
                row |= {name: iso(ms), f"{name}_epoch": ms}
            session = insert(connection, "sdk_sessions", row)
            for turn in range(first, min(first + TURNS_PER_SESSION, turns + 1)):
                _add_turn(connection, text, project, session, first, turn, record)
        connection.execute("COMMIT")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _ms(turn: int) -> int:
    return _FIRST_MS + turn * _TURN_MS


def _add_turn(
    connection: sqlite3.Connection,
    text: Callable[[int], str],
    project: int,
    session: int,
    first: int,
    turn: int,
    record: bool,
) -> None:
    origin: Row = {
        "project_id": project,
        "prompt_number": turn - first + 1,
        "created_at": iso(_ms(turn)),
        "created_at_epoch": _ms(turn),
    }
    prompt = text(20)
    insert(connection, "user_prompts", origin | {
        "id": turn, "session_id": session, "prompt_id": f"prompt-{turn}", "prompt_text": prompt,
        "closed": 1, "updated_at_epoch": _ms(turn), "observer_version": VERSION,
    })  # fmt: skip
    memory = {"memory_session_id": f"memory-{first}", "turn_id": turn, "observer": "bench"}
    insert(connection, "session_summaries", origin | memory | {
        "request": prompt, "investigated": text(15), "learned": text(30), "completed": text(30),
        "next_steps": text(8), "files_read": json.dumps([f"src/pier_{turn}.py"]),
        "files_edited": json.dumps([f"src/lamp_{turn % 900}.py"]),
    })  # fmt: skip
    for ordinal in range(OBSERVATIONS_PER_TURN):
        number = turn * OBSERVATIONS_PER_TURN + ordinal
        insert(connection, "observations", origin | memory | {
            "ordinal": ordinal, "type": OBSERVATION_TYPES[number % len(OBSERVATION_TYPES)],
            "title": text(8), "subtitle": text(10), "narrative": text(50),
            "facts": json.dumps([text(10) for _ in range(3)]),
            "concepts": json.dumps(["how-it-works", "gotcha"]),
            "files_read": json.dumps([f"src/pier_{number % 900}.py"]),
            "files_modified": json.dumps([f"src/lamp_{number % 90}.py"]),
        })  # fmt: skip
    if record:
        said = [RecordPart("statement", "agent", text(60)) for _ in range(STATEMENTS)]
        parts = dump_parts([RecordPart("prompt", "user", prompt), *said])
        insert(connection, "turn_records", {
            "turn_id": turn, "parts": parts, "bytes": len(parts), "created_at_epoch": _ms(turn),
        })  # fmt: skip


def index_all(store: Store, semantic_index: SemanticIndex | None) -> None:
    """Indexes all rows as the worker does in the background, merged as after its housekeeping."""
    indexing.rebuild(store)
    while semantic_index is not None and embed_some(semantic_index, store):
        pass
    store.write(indexing.tidy).result()
    if not indexing.pack(store):
        store.compact_if_sparse()


_SESSIONS = """
INSERT INTO sdk_sessions (id, content_session_id, memory_session_id, project, platform_source,
  user_prompt, started_at, started_at_epoch, completed_at, completed_at_epoch, status,
  prompt_counter)
SELECT s.id, content_session_id, coalesce(memory_session_id, 'memory-' || s.id), p.name, 'claude',
  user_prompt, started_at, started_at_epoch, completed_at, completed_at_epoch, 'completed',
  prompt_counter
FROM ours.sdk_sessions s JOIN ours.projects p ON p.id = s.project_id
"""
_PROMPTS = """
INSERT INTO user_prompts (id, session_db_id, content_session_id, prompt_number, prompt_text,
  created_at, created_at_epoch)
SELECT t.id, t.session_id, s.content_session_id, t.prompt_number, coalesce(t.prompt_text, ''),
  t.created_at, t.created_at_epoch
FROM ours.user_prompts t JOIN ours.sdk_sessions s ON s.id = t.session_id ORDER BY t.id
"""
_OBSERVATIONS = """
INSERT INTO observations (id, memory_session_id, project, type, title, subtitle, facts, narrative,
  concepts, files_read, files_modified, prompt_number, created_at, created_at_epoch, content_hash)
SELECT o.id, o.memory_session_id, p.name, type, title, subtitle, facts, narrative, concepts,
  files_read, files_modified, prompt_number, o.created_at, o.created_at_epoch, printf('%016x', o.id)
FROM ours.observations o JOIN ours.projects p ON p.id = o.project_id ORDER BY o.id
"""
_SUMMARIES = """
INSERT INTO session_summaries (id, memory_session_id, project, request, investigated, learned,
  completed, next_steps, files_read, files_edited, notes, prompt_number, created_at,
  created_at_epoch)
SELECT m.id, m.memory_session_id, p.name, request, investigated, learned, completed, next_steps,
  files_read, files_edited, notes, prompt_number, m.created_at, m.created_at_epoch
FROM ours.session_summaries m JOIN ours.projects p ON p.id = m.project_id ORDER BY m.id
"""


def copy_to_peer(ours: Path, theirs: Path) -> None:
    """Into a database that the npm package has created; its triggers fill its full text index."""
    with closing(sqlite3.connect(theirs, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("ATTACH ? AS ours", (str(ours),))
        connection.execute("BEGIN")
        for statement in (_SESSIONS, _PROMPTS, _OBSERVATIONS, _SUMMARIES):
            connection.execute(statement)
        connection.execute("COMMIT")
        for table in ("observations_fts", "session_summaries_fts", "user_prompts_fts"):
            connection.execute(f"INSERT INTO {table} ({table}) VALUES ('optimize')")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
