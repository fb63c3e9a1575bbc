"""Duplicates: observations of one project that say the same, linked so that search shows one.

None is deleted: each belongs to its turn, so forgetting one keeps the other, and a turn that is
distilled again replaces its own. Vectors find the pairs, then their words are compared.
"""

import json
import sqlite3
from collections.abc import Iterable

from claude_mem.index.text.documents import Document, kind_of
from claude_mem.index.text.words import pieces, plain_text, stem
from claude_mem.title_rules import without_topics

# Links in both directions. The table keeps the name that it has in existing databases.
TABLES = """
CREATE TABLE twins (
  document INTEGER NOT NULL,
  twin INTEGER NOT NULL,
  PRIMARY KEY (document, twin)
) WITHOUT ROWID;
CREATE INDEX twins_of ON twins(twin)
"""
NAMES = ("twins",)

MIN_COSINE = 0.85  # to compare the words
MIN_SHARED_WORDS = 0.4  # of all words of both
MAX_CANDIDATES = 8  # for each document


def may_have_duplicates(document: int) -> bool:
    return kind_of(document) == "observation"


def are_duplicates(first: Document, second: Document) -> bool:
    """Whether most words are in both, and so is every word with a digit: pier 12 is not pier 13."""
    if first.project_id != second.project_id:
        return False
    first_words, second_words = _words(first), _words(second)
    if any(any(map(str.isdigit, word)) for word in first_words ^ second_words):
        return False
    shared = len(first_words & second_words)
    return shared >= MIN_SHARED_WORDS * len(first_words | second_words)


def _words(document: Document) -> frozenset[str]:
    text = document.text
    joined = f"{without_topics(text.title)} {text.subtitle} {text.body} {text.facts}"
    return frozenset(stem(word.lower()) for word in pieces(plain_text(joined)))


def link(connection: sqlite3.Connection, pairs: Iterable[tuple[int, int]]) -> None:
    """Links the pairs in both directions."""
    connection.executemany(
        "INSERT OR IGNORE INTO twins VALUES (?, ?)",
        [link for first, second in pairs for link in ((first, second), (second, first))],
    )


def unlink(connection: sqlite3.Connection, documents: Iterable[int]) -> None:
    ids = json.dumps(list(documents))
    for column in ("document", "twin"):
        connection.execute(
            f"DELETE FROM twins WHERE {column} IN (SELECT value FROM json_each(?))", (ids,)
        )
