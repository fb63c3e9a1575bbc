"""The index: derived from the memories in the same database, and kept in step with them.

Triggers of the store mark every memory that is inserted, changed or deleted (`unindexed`); the
marked memories are indexed in the same transaction. Until then search does not return them, so
that no old text is ever found, whichever process wrote. Writing a memory needs none of these
tables: they may be dropped at any time and are rebuilt.
"""

import json
import logging
import sqlite3

from claude_mem.index.text import passage_writing, previous_passages
from claude_mem.index.text.documents import (
    KINDS,
    TURN,
    Document,
    document_id,
    kind_of,
    load,
    memory_id_of,
    text_id,
)
from claude_mem.index.text.passage_writing import PassagesDiffer
from claude_mem.index.text.words import TOKENIZER, searchable
from claude_mem.index.vectors import duplicates, vector_table
from claude_mem.store import Store, index_tables
from claude_mem.store.stored_json import parse_stored

log = logging.getLogger("claude_mem.index")

VERSION = 11  # a new one rebuilds the index at the next write: raise it when tokenisation changes
CHUNK = 500  # documents: a transaction of a few tenths of a second at most

EMBEDDED = ("observation", TURN)  # duplicates are found among observations
COLUMNS = ("title", "files", "concepts")  # all other text is in the passages of its turn
_TABLES = f"""
CREATE TABLE documents (
  id INTEGER PRIMARY KEY,
  project_id INTEGER NOT NULL,
  session_id INTEGER NOT NULL,
  place INTEGER NOT NULL,
  created_at_epoch INTEGER NOT NULL,
  type TEXT NOT NULL,
  title TEXT NOT NULL,
  named TEXT,
  files TEXT NOT NULL,
  concepts TEXT NOT NULL,
  size INTEGER NOT NULL
);
CREATE INDEX documents_by_place ON documents(session_id, place);
CREATE INDEX documents_by_time ON documents(created_at_epoch);
CREATE INDEX documents_by_project ON documents(project_id, created_at_epoch);
CREATE VIRTUAL TABLE memory_text USING fts5({", ".join(COLUMNS)}, content='', columnsize=0,
  tokenize="{TOKENIZER}");
CREATE TABLE index_version (
  version INTEGER NOT NULL, generation INTEGER NOT NULL, is_packed INTEGER NOT NULL
);
INSERT INTO index_version
  SELECT {VERSION}, random(), NOT EXISTS (SELECT 1 FROM user_prompts);
{passage_writing.TABLES.strip()};
{vector_table.TABLES.strip()};
{duplicates.TABLES.strip()}
"""
_NAMES = ("memory_text", "documents", "index_version", *passage_writing.NAMES, *vector_table.NAMES,
          *duplicates.NAMES)  # fmt: skip
# Names all tables, so that it fails where any of them is missing.
_SELECT_VERSION = "SELECT version FROM index_version" + "".join(
    f" UNION ALL SELECT NULL FROM {name} WHERE FALSE" for name in _NAMES
)
# Of full text that is damaged, or without a table of its own; a damaged page has another code.
_BROKEN = (sqlite3.SQLITE_CORRUPT_VTAB, sqlite3.SQLITE_ERROR)
_SOURCES = {
    "observation": "observations",
    "summary": "session_summaries",
    "prompt": "user_prompts",
    TURN: "user_prompts",
}


def rebuild(store: Store) -> int:
    """Builds the index from scratch, in chunks between which others may write; returns the number
    of documents."""
    store.write(_recreate).result()
    while store.write(refresh).result():
        pass
    return store.read(count)


def refresh(connection: sqlite3.Connection) -> int:
    """Indexes the newest marked documents; how many are still marked.

    With `store.run_before_commit(refresh)` each write of a store is indexed as it is committed.
    An index that is broken is built again.
    """
    connection.execute("SAVEPOINT refreshing")
    try:
        remaining = _refresh(connection)
    except (PassagesDiffer, sqlite3.DatabaseError) as error:
        connection.execute("ROLLBACK TO refreshing")
        if isinstance(error, sqlite3.DatabaseError) and not _is_broken(error):
            raise
        log.warning("rebuilding the index: %s", error)
        _recreate(connection)
        remaining = _refresh(connection)
    finally:
        connection.execute("RELEASE refreshing")
    return remaining


def _is_broken(error: sqlite3.DatabaseError) -> bool:
    """Whether the index is broken: only its rows are written here, so what they contradict is its
    own damage."""
    return isinstance(error, sqlite3.IntegrityError) or (
        getattr(error, "sqlite_errorcode", None) in _BROKEN  # none: a text that is not UTF-8
    )


def _refresh(connection: sqlite3.Connection) -> int:
    if not is_current(connection):
        _recreate(connection)
    marked = connection.execute(
        "SELECT document FROM unindexed GROUP BY document ORDER BY max(id) DESC LIMIT ?", (CHUNK,)
    ).fetchall()
    if not marked:
        return 0
    documents = [row[0] for row in marked]
    _delete(connection, documents)
    # In ascending order: FTS5 flushes its buffer whenever a rowid is less than the previous one.
    present = load(connection, documents)
    present.sort(key=lambda document: text_id(document.project_id, document.id))
    for document in present:
        if kind_of(document.id) == TURN:
            passage_writing.insert(connection, document)
        else:
            _insert(connection, document)
    vector_table.mark(connection, documents, [d for d in present if kind_of(d.id) in EMBEDDED])
    duplicates.unlink(connection, documents)
    return waiting(connection) if len(marked) == CHUNK else 0


def _delete(connection: sqlite3.Connection, documents: list[int]) -> None:
    """Deletes documents from all tables but those of vectors, with their marks."""
    ids = json.dumps(documents)
    rows = connection.execute(
        "DELETE FROM documents WHERE id IN (SELECT value FROM json_each(?))"
        " RETURNING id, project_id, title, named, files, concepts",
        (ids,),
    ).fetchall()
    connection.executemany(
        f"INSERT INTO memory_text (memory_text, rowid, {', '.join(COLUMNS)})"
        " VALUES ('delete', ?, ?, ?, ?)",
        sorted((text_id(project, document), *_indexed(title, named, files, concepts))
               for document, project, title, named, files, concepts in rows),
    )  # fmt: skip
    turns = [memory_id_of(document) for document in documents if kind_of(document) == TURN]
    passages = previous_passages.load_previous(connection, turns)
    for turn in sorted(turns):
        passage_writing.delete(connection, turn, passages.get(turn, ()))
    previous_passages.drop(connection, turns)
    connection.execute(
        "DELETE FROM unindexed WHERE document IN (SELECT value FROM json_each(?))", (ids,)
    )


def tidy(connection: sqlite3.Connection) -> None:
    """Merges FTS5's segments, so that words of deleted memories leave the file."""
    if is_current(connection):
        for table in ("memory_text", "passage_text"):
            connection.execute(f"INSERT INTO {table} ({table}) VALUES ('optimize')")


def pack(store: Store) -> bool:
    """Rewrites the file once after a rebuild, which indexes the newest memories first: pages that
    are not filled in ascending order stay half empty. Whether it was due."""
    is_due = store.read(_is_packing_due) and store.compact()
    if is_due:
        store.write(lambda c: c.execute("UPDATE index_version SET is_packed = 1")).result()
    return is_due


def _is_packing_due(connection: sqlite3.Connection) -> bool:
    if not is_current(connection) or marked(connection):
        return False
    return not connection.execute("SELECT is_packed FROM index_version").fetchone()[0]


def is_current(connection: sqlite3.Connection) -> bool:
    """Whether the index exists and is of this version."""
    try:
        row = connection.execute(_SELECT_VERSION).fetchone()
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode in _BROKEN:  # a table is missing
            return False
        raise
    return row is not None and row[0] == VERSION


def generation(connection: sqlite3.Connection) -> int:
    """A new number after every rebuild."""
    return int(connection.execute("SELECT generation FROM index_version").fetchone()[0])


def waiting(connection: sqlite3.Connection) -> int:
    """How many documents are marked; without a current index, how many would be."""
    if not is_current(connection):
        return _all_documents(connection)
    return marked(connection)


def marked(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT count(*) FROM unindexed").fetchone()[0])


def _all_documents(connection: sqlite3.Connection) -> int:
    tables = " UNION ALL ".join(f"SELECT id FROM {table}" for table in _SOURCES.values())
    return int(connection.execute(f"SELECT count(*) FROM ({tables})").fetchone()[0])


def count(connection: sqlite3.Connection, project_id: int | None = None) -> int:
    """Counts the documents of a project, or of all."""
    condition = "" if project_id is None else " WHERE project_id = :project"
    row = connection.execute(
        f"SELECT count(*) FROM documents{condition}", {"project": project_id}
    ).fetchone()
    return int(row[0])


def _recreate(connection: sqlite3.Connection) -> None:
    index_tables.drop(connection)
    for statement in _TABLES.split(";\n"):
        connection.execute(statement)
    connection.execute("DELETE FROM unindexed")
    connection.execute("DELETE FROM unindexed_turns")
    for kind in (*KINDS, TURN):
        connection.execute(
            f"INSERT INTO unindexed (document) SELECT id * 4 + ? FROM {_SOURCES[kind]} ORDER BY id",
            (document_id(kind, 0),),
        )


def _insert(connection: sqlite3.Connection, document: Document) -> None:
    named = document.text.title if document.text.title != document.title else None
    files, concepts = _json(document.files), _json(document.concepts)
    connection.execute(
        "INSERT INTO documents VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (document.id, document.project_id, document.session_id, document.place,
         document.created_at_epoch, document.type, document.title, named,
         files, concepts, document.size),
    )  # fmt: skip
    connection.execute(
        f"INSERT INTO memory_text (rowid, {', '.join(COLUMNS)}) VALUES (?, ?, ?, ?)",
        (text_id(document.project_id, document.id),
         *_indexed(document.title, named, files, concepts)),
    )  # fmt: skip


def _indexed(title: str, named: str | None, files: str, concepts: str) -> tuple[str, ...]:
    """The columns of full text, from those of `documents`: it has no content of its own. `named`:
    the title of the memory itself, where another one is shown."""
    return (
        searchable(title if named is None else named),
        *(searchable("\n".join(parse_stored(names, []))) for names in (files, concepts)),
    )


def _json(values: tuple[str, ...]) -> str:
    return json.dumps(values, ensure_ascii=False)


def find_damage(connection: sqlite3.Connection) -> str | None:
    """Looks for damage in all words of the full text, which SQLite's checks do not look into."""
    if not is_current(connection):
        return None  # it is being built
    for table, rows in (("memory_text", "documents"), ("passage_text", "passages")):
        try:
            connection.execute(
                f"CREATE VIRTUAL TABLE temp.all_words USING fts5vocab(main, {table}, instance)"
            )
            words = connection.execute("SELECT count(*), max(doc) FROM temp.all_words").fetchone()
            connection.execute("DROP TABLE temp.all_words")
        except sqlite3.DatabaseError as error:
            return str(error)
        if not words[0] and connection.execute(f"SELECT 1 FROM {rows} LIMIT 1").fetchone():
            return f"{table} has no words"
    return None
