"""Observations of one project that say the same: linked, so that they are shown once.

Each stays with the turn that it was made of: forgetting one does not take the words of the other,
and a turn that is distilled again meets its own. Vectors find the pairs, words have to agree.
"""

import json
import sqlite3
from collections.abc import Iterable

from claude_mem.index.text.documents import Document, kind_of
from claude_mem.index.text.words import pieces, plain_text, stem

TABLES = """
CREATE TABLE twins (
  document INTEGER NOT NULL,
  twin INTEGER NOT NULL,
  PRIMARY KEY (document, twin)
) WITHOUT ROWID;
CREATE INDEX twins_of ON twins(twin)
"""
NAMES = ("twins",)

ALIKE = 0.85  # the cosine from which on words are compared
SHARED = 0.4  # of the words of both
MOST = 8  # that are compared with one


def may_have_duplicates(document: int) -> bool:
    return kind_of(document) == "observation"


def are_duplicates(one: Document, other: Document) -> bool:
    """Most words are in both, and so is every number and name with one: pier 12 is not pier 13."""
    if one.project_id != other.project_id:
        return False
    ours, theirs = _words(one), _words(other)
    if any(any(map(str.isdigit, word)) for word in ours ^ theirs):
        return False
    return len(ours & theirs) >= SHARED * len(ours | theirs)


def _words(document: Document) -> frozenset[str]:
    text = document.text
    told = f"{text.title} {text.subtitle} {text.body} {text.facts}"
    return frozenset(stem(word.lower()) for word in pieces(plain_text(told)))


def link(connection: sqlite3.Connection, pairs: Iterable[tuple[int, int]]) -> None:
    """Both ways."""
    connection.executemany(
        "INSERT OR IGNORE INTO twins VALUES (?, ?)",
        [pair for one, other in pairs for pair in ((one, other), (other, one))],
    )


def unlink(connection: sqlite3.Connection, documents: Iterable[int]) -> None:
    chosen = json.dumps(list(documents))
    for column in ("document", "twin"):
        connection.execute(
            f"DELETE FROM twins WHERE {column} IN (SELECT value FROM json_each(?))", (chosen,)
        )


def of(connection: sqlite3.Connection, documents: Iterable[int]) -> dict[int, list[int]]:
    """Who says the same as each of these."""
    found: dict[int, list[int]] = {}
    for document, twin in connection.execute(
        "SELECT document, twin FROM twins"
        " WHERE document IN (SELECT value FROM json_each(?)) ORDER BY document, twin",
        (json.dumps(list(documents)),),
    ):
        found.setdefault(document, []).append(twin)
    return found
