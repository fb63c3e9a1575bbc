"""The full-text tables, kept beside the memories that they are made of.

Triggers of the store mark every memory that comes, changes or goes (`unindexed`); the marks are
worked off in the transaction that made them. A marked memory is never found, so that what is
revised or deleted is gone at once, whoever wrote. Writing a memory needs none of these tables:
they may be dropped, and come back.
"""

import json
import logging
import sqlite3

from claude_mem.index.text.documents import (
    DOCUMENT_BITS,
    KINDS,
    Document,
    document_id,
    load,
    text_id,
)
from claude_mem.index.text.words import TOKENIZER
from claude_mem.index.vectors import duplicates, storage
from claude_mem.store import Store

log = logging.getLogger("claude_mem.index")

VERSION = 5  # another one rebuilds the index at the next write: raise it when words are split anew
CHUNK = 500  # a transaction of some tenths of a second at most

COLUMNS = ("title", "subtitle", "body", "facts", "files", "concepts")
_TABLES = f"""
CREATE TABLE documents (
  id INTEGER PRIMARY KEY,
  project_id INTEGER NOT NULL,
  session_id INTEGER NOT NULL,
  place INTEGER NOT NULL,
  created_at_epoch INTEGER NOT NULL,
  type TEXT NOT NULL,
  title TEXT NOT NULL,
  title_stems TEXT NOT NULL,
  file TEXT,
  files TEXT NOT NULL,
  concepts TEXT NOT NULL,
  words INTEGER NOT NULL,
  size INTEGER NOT NULL,
  tells_time INTEGER NOT NULL
);
CREATE INDEX documents_by_place ON documents(session_id, place);
CREATE INDEX documents_by_time ON documents(created_at_epoch, session_id, place);
CREATE INDEX documents_by_project ON documents(project_id, created_at_epoch, session_id, place);
CREATE VIRTUAL TABLE memory_text USING fts5({", ".join(COLUMNS)}, tokenize="{TOKENIZER}");
CREATE TABLE index_version (version INTEGER NOT NULL, generation INTEGER NOT NULL);
INSERT INTO index_version VALUES ({VERSION}, random());
{storage.TABLES.strip()};
{duplicates.TABLES.strip()}
"""
_NAMES = ("memory_text", "documents", "index_version", *storage.NAMES, *duplicates.NAMES)
_SOURCES = {
    "observation": "observations",
    "summary": "session_summaries",
    "prompt": "user_prompts",
}


def keep(store: Store) -> None:
    """From now on every write of this store is indexed as it is committed."""
    store.derive(refresh)


def rebuild(store: Store) -> int:
    """Everything anew, in pieces between which others may write; how many documents there are."""
    store.write(_start_anew).result()
    while store.write(refresh).result():
        pass
    return store.read(count)


def refresh(connection: sqlite3.Connection) -> int:
    """Works off the newest marks; how many are left."""
    if not is_current(connection):
        _start_anew(connection)
    marked = connection.execute(
        "SELECT document FROM unindexed ORDER BY id DESC LIMIT ?", (CHUNK,)
    ).fetchall()
    if not marked:
        return 0
    documents = list(dict.fromkeys(row[0] for row in marked))
    chosen = json.dumps(documents)
    connection.execute(
        f"DELETE FROM memory_text WHERE rowid IN (SELECT project_id << {DOCUMENT_BITS} | id"
        " FROM documents WHERE id IN (SELECT value FROM json_each(?)))",
        (chosen,),
    )
    for table, column in (("documents", "id"), ("unindexed", "document")):
        connection.execute(
            f"DELETE FROM {table} WHERE {column} IN (SELECT value FROM json_each(?))", (chosen,)
        )
    # Upwards: FTS5 writes out what it has gathered whenever a rowid is less than the one before.
    present = load(connection, documents)
    present.sort(key=lambda document: text_id(document.project_id, document.id))
    for document in present:
        _insert(connection, document)
    storage.mark(connection, documents, present)
    duplicates.unlink(connection, documents)
    return waiting(connection) if len(marked) == CHUNK else 0


def tidy(connection: sqlite3.Connection) -> None:
    """Merges what was gathered, so that words of what is gone are no longer in the file."""
    if is_current(connection):
        connection.execute("INSERT INTO memory_text (memory_text) VALUES ('optimize')")


def is_current(connection: sqlite3.Connection) -> bool:
    """Whether there is an index, made by these rules."""
    names = {
        row[0]
        for row in connection.execute(
            "SELECT name FROM sqlite_master WHERE name IN (SELECT value FROM json_each(?))",
            (json.dumps(_NAMES),),
        )
    }
    if len(names) < len(_NAMES):
        return False
    row = connection.execute("SELECT version FROM index_version").fetchone()
    return row is not None and row[0] == VERSION


def generation(connection: sqlite3.Connection) -> int:
    """Another one after every rebuild."""
    found: int = connection.execute("SELECT generation FROM index_version").fetchone()[0]
    return found


def waiting(connection: sqlite3.Connection) -> int:
    """How many marks there are; without a current index, how many there will be."""
    if not is_current(connection):
        tables = " UNION ALL ".join(f"SELECT id FROM {table}" for table in _SOURCES.values())
        return int(connection.execute(f"SELECT count(*) FROM ({tables})").fetchone()[0])
    return int(connection.execute("SELECT count(*) FROM unindexed").fetchone()[0])


def count(connection: sqlite3.Connection, project_id: int | None = None) -> int:
    """Of a project, or of all."""
    condition = "" if project_id is None else " WHERE project_id = :project"
    row = connection.execute(
        f"SELECT count(*) FROM documents{condition}", {"project": project_id}
    ).fetchone()
    return int(row[0])


def _start_anew(connection: sqlite3.Connection) -> None:
    for table in _NAMES:
        connection.execute(f"DROP TABLE IF EXISTS {table}")
    for statement in _TABLES.split(";\n"):
        connection.execute(statement)
    connection.execute("DELETE FROM unindexed")
    for kind in KINDS:
        connection.execute(
            f"INSERT INTO unindexed (document) SELECT id * 4 + ? FROM {_SOURCES[kind]} ORDER BY id",
            (document_id(kind, 0),),
        )


def _insert(connection: sqlite3.Connection, document: Document) -> None:
    connection.execute(
        "INSERT INTO documents VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (document.id, document.project_id, document.session_id, document.place,
         document.created_at_epoch, document.type, document.title, document.title_stems,
         document.files[0] if document.files else None, _json(document.files),
         _json(document.concepts), document.words, document.size, document.tells_time),
    )  # fmt: skip
    connection.execute(
        f"INSERT INTO memory_text (rowid, {', '.join(COLUMNS)}) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (text_id(document.project_id, document.id), *document.indexed()),
    )


def _json(values: tuple[str, ...]) -> str:
    return json.dumps(values, ensure_ascii=False)
