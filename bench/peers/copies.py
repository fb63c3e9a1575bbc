"""A database with several times the memories of another: its rows, copied with their index.

To make the index of a million memories takes hours; to copy the rows of one takes minutes, and what
a search reads is the same. Vectors get a little noise: equal ones would be candidates together.
"""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import numpy as np

from claude_mem.index import indexing
from claude_mem.index.text import passage_queries, passage_writing
from claude_mem.index.text.documents import KINDS, NOTES_SOURCE, TURN, document_id, text_id
from claude_mem.index.text.passage_queries import PASSAGE_BITS
from claude_mem.index.text.words import searchable
from claude_mem.store.database import connect

CHUNK = 20_000
NOISE = 6  # of a component, of at most 127
_TURN_MS = 60_000
_DIRECT = ("user_prompts", "session_summaries", "observations", "turn_records", "indexed_turns",
           "documents", "passages")  # fmt: skip


class Sizes(NamedTuple):
    """The highest ids of what is copied, and the name of the copy."""

    sessions: int
    turns: int
    summaries: int
    observations: int
    copy: int

    def shifts(self) -> dict[str, int]:
        counts = {"observation": self.observations, "summary": self.summaries,
                  "prompt": self.turns, TURN: self.turns}  # fmt: skip
        return {kind: count * self.copy for kind, count in counts.items()}


def add_copies(database: Path, copies: int) -> None:
    """Adds so many more of every row there is."""
    with closing(connect(database)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("PRAGMA foreign_keys = OFF")
        originals = _sizes(connection)
        for copy in range(1, copies + 1):
            connection.execute("BEGIN")
            _copy_rows(connection, originals._replace(copy=copy))
            _copy_vectors(connection, originals._replace(copy=copy))
            connection.execute("COMMIT")
        _copy_texts(connection, originals, copies)
        connection.execute("BEGIN")
        connection.execute("DELETE FROM unindexed")
        connection.execute("DELETE FROM unindexed_turns")
        indexing.tidy(connection)
        connection.execute("COMMIT")
        connection.execute("VACUUM")  # as the worker does once after it has made an index
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _sizes(connection: sqlite3.Connection) -> Sizes:
    def highest(table: str) -> int:
        return int(connection.execute(f"SELECT max(id) FROM {table}").fetchone()[0])

    return Sizes(
        highest("sdk_sessions"),
        highest("user_prompts"),
        highest("session_summaries"),
        highest("observations"),
        copy=0,
    )


def _copy_rows(connection: sqlite3.Connection, sizes: Sizes) -> None:
    copy, session, turn = sizes.copy, sizes.sessions * sizes.copy, sizes.turns * sizes.copy
    changed: dict[str, dict[str, str]] = {
        "sdk_sessions": {"id": f"id + {session}"}
        | {name: f"{name} || '-{copy}'" for name in ("content_session_id", "memory_session_id")}
    }
    for table in _DIRECT:
        changed[table] = {
            "memory_session_id": f"memory_session_id || '-{copy}'",
            "session_id": f"session_id + {session}",
            "turn_id": f"turn_id + {turn}",
            "created_at_epoch": f"created_at_epoch + {turn * _TURN_MS}",
        }
    changed["user_prompts"]["parent_turn"] = f"parent_turn + {turn}"
    changed["user_prompts"]["id"] = changed["indexed_turns"]["id"] = f"id + {turn}"
    changed["session_summaries"]["id"] = f"id + {sizes.summaries * copy}"
    changed["observations"]["id"] = f"id + {sizes.observations * copy}"
    changed["documents"]["id"] = _shifted_document("id", sizes)
    changed["indexed_turns"]["shown"] = _shifted_document("shown", sizes)
    changed["passages"]["id"] = f"id + {turn << PASSAGE_BITS}"
    changed["passages"]["source"] = (
        f"CASE WHEN source <= {NOTES_SOURCE} THEN source"
        f" ELSE ({_shifted_document('(source >> 1)', sizes)}) << 1 | (source & 1) END"
    )
    highest = {
        "sdk_sessions": f"id <= {sizes.sessions}",
        "user_prompts": f"id <= {sizes.turns}",
        "session_summaries": f"id <= {sizes.summaries}",
        "observations": f"id <= {sizes.observations}",
        "turn_records": f"turn_id <= {sizes.turns}",
        "indexed_turns": f"id <= {sizes.turns}",
        "documents": f"session_id <= {sizes.sessions}",
        "passages": f"id < {sizes.turns + 1 << PASSAGE_BITS}",
    }
    for table, condition in highest.items():
        names = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
        values = ", ".join(changed[table].get(name, name) for name in names)
        connection.execute(
            f"INSERT INTO {table} ({', '.join(names)}) SELECT {values} FROM {table} t"
            f" WHERE t.{condition}"
        )


def _shifted_document(name: str, sizes: Sizes) -> str:
    shifts = sizes.shifts()
    cases = " ".join(
        f"WHEN {document_id(kind, 0)} THEN {document_id('observation', shifts[kind])}"
        for kind in (*KINDS, TURN)
    )
    return f"{name} + CASE {name} % 4 {cases} END"


def _copy_vectors(connection: sqlite3.Connection, sizes: Sizes) -> None:
    numbers = np.random.default_rng(sizes.copy)
    shifted = _shifted_document("document", sizes)
    rows = connection.execute(
        f"SELECT {shifted}, project_id, model, vector FROM vectors v JOIN"
        f" (SELECT id AS original FROM documents WHERE session_id <= {sizes.sessions} UNION ALL"
        f" SELECT id * 4 + {document_id(TURN, 0)} FROM indexed_turns WHERE id <= {sizes.turns})"
        " ON v.document = original"
    ).fetchall()
    copied = [(*row, None if vector is None else _noisy(vector, numbers)) for *row, vector in rows]
    connection.executemany(
        "INSERT INTO vectors (document, project_id, model, vector) VALUES (?, ?, ?, ?)", copied
    )


def _noisy(vector: bytes, numbers: np.random.Generator) -> bytes:
    values = np.frombuffer(vector, np.int8).astype(np.int16)
    values += numbers.integers(-NOISE, NOISE + 1, values.shape, np.int16)
    return np.clip(values, -127, 127).astype(np.int8).tobytes()


def _copy_texts(connection: sqlite3.Connection, originals: Sizes, copies: int) -> None:
    """The full text of both tables, which have no rows that could be copied."""
    turns = "CROSS JOIN indexed_turns t ON t.id = p.id >> ? WHERE t.project_id = ? AND t.id <= ?"
    for (project,) in connection.execute("SELECT id FROM projects").fetchall():
        ids = [row[0] for row in connection.execute(
            f"SELECT p.id FROM passages p {turns} ORDER BY p.id",
            (PASSAGE_BITS, project, originals.turns),
        )]  # fmt: skip
        for first in range(0, len(ids), CHUNK):
            texts = passage_queries.texts_of_passages(connection, ids[first : first + CHUNK])
            indexed = [(id_, searchable(text)) for id_, text in sorted(texts.items())]
            connection.execute("BEGIN")
            for copy in range(1, copies + 1):
                shift = originals.turns * copy << PASSAGE_BITS
                passage_writing.add_texts(connection, project, [(i + shift, t) for i, t in indexed])
            connection.execute("COMMIT")
        _copy_titles(connection, originals, project, copies)


def _copy_titles(
    connection: sqlite3.Connection, originals: Sizes, project: int, copies: int
) -> None:
    rows = connection.execute(
        "SELECT id, title, named, files, concepts FROM documents WHERE project_id = ?"
        " AND session_id <= ? ORDER BY id",
        (project, originals.sessions),
    ).fetchall()
    indexed = [(row[0], indexing._indexed(*row[1:])) for row in rows]
    columns = ", ".join(indexing.COLUMNS)
    connection.execute("BEGIN")
    for copy in range(1, copies + 1):
        shifts = originals._replace(copy=copy).shifts()
        connection.executemany(
            f"INSERT INTO memory_text (rowid, {columns}) VALUES (?, ?, ?, ?)",
            _title_rows(indexed, project, [4 * shifts[kind] for kind in (*KINDS, TURN)]),
        )
    connection.execute("COMMIT")


def _title_rows(
    indexed: Sequence[tuple[int, tuple[str, ...]]], project: int, shifts: Sequence[int]
) -> list[tuple[object, ...]]:
    return sorted((text_id(project, id_ + shifts[id_ % 4]), *texts) for id_, texts in indexed)
