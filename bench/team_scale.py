"""Fills a team database with the turns that `bench/turns.py` puts into a local one.

They are copied into its tables, as pushing so many would take hours: texts and words once each,
from the pool, and the index of words after that. What a search reads is the same.
"""

from collections.abc import Iterator

import psycopg

from bench.memories import moment
from bench.turns import CHUNK, TURNS_PER_SESSION, WORDS_PER_PASSAGE, DrawnTurn, Pool, draw_turns
from claude_mem.team.server.embedding import as_text
from claude_mem.team.server.lexemes import tsvector
from claude_mem.team.server.schema import DIMENSION, PARTITIONS, SCHEMA

_ODD, _ID_BITS = 0x9E3779B97F4A7C15, 48
_TABLES = f"""
CREATE TEMPORARY TABLE pool (place integer PRIMARY KEY, text text NOT NULL, terms bytea NOT NULL,
  pieces bytea NOT NULL, lexemes tsvector NOT NULL);
CREATE TEMPORARY TABLE drawn (turn_id bigint NOT NULL, number smallint NOT NULL,
  place integer NOT NULL, embedding halfvec({DIMENSION}) NOT NULL)
"""
_PASSAGES = f"""
INSERT INTO passages SELECT %s, d.turn_id, d.number,
  CASE d.number WHEN 0 THEN 'prompt' ELSE 'statement' END, {WORDS_PER_PASSAGE}, false, p.text,
  p.terms, p.pieces, p.lexemes, d.embedding FROM drawn d JOIN pool p USING (place)
"""
# As its trigger does it, which is off meanwhile.
_CODES = f"""
INSERT INTO codes SELECT project_id, turn_id, number, binary_quantize(embedding)::bit({DIMENSION})
  FROM passages
"""


def fill_team(url: str, pool: Pool, project: int, turns: int, passages: int) -> None:
    """Fills the team for the one person of the database, as its owner."""
    with psycopg.connect(url) as connection:
        connection.execute(f"SET search_path = {SCHEMA}, public")
        connection.execute("SET maintenance_work_mem = '1GB'")
        connection.execute("SET session_replication_role = replica")  # no triggers
        connection.execute("DROP INDEX passages_by_word")
        ((person,),) = connection.execute("SELECT id FROM people").fetchall()
        connection.execute(
            "INSERT INTO sessions (project_id, person_id, id, uid, title, content, version)"
            " SELECT %s, %s, n, n::text, 'Session', '{}', 1 FROM generate_series(0, %s) n",
            (project, person, turns // TURNS_PER_SESSION),
        )
        _copy_pool(connection, pool)
        for first in range(0, turns, CHUNK):
            drawn = draw_turns(pool, first, min(CHUNK, turns - first), passages)
            _copy(connection, "turns", (_turn(turn, project, person) for turn in drawn))
            connection.execute("TRUNCATE drawn")
            _copy(connection, "drawn", _passages(drawn))
            connection.execute(_PASSAGES, (project,))
        connection.execute(_CODES)
        connection.execute(
            "UPDATE projects SET turns = %s, passages = %s WHERE id = %s",
            (turns, turns * passages, project),
        )
        _index_words(connection)


def _copy_pool(connection: psycopg.Connection, pool: Pool) -> None:
    connection.execute(_TABLES)
    rows = (
        (place, passage.text, passage.terms, passage.pieces, tsvector(passage.text))
        for place, passage in enumerate(pool.passages)
    )
    _copy(connection, "pool", rows)
    connection.execute("ANALYZE pool")


def _copy(connection: psycopg.Connection, table: str, rows: Iterator[tuple[object, ...]]) -> None:
    with connection.cursor().copy(f"COPY {table} FROM STDIN") as copy:
        for row in rows:
            copy.write_row(row)


def _index_words(connection: psycopg.Connection) -> None:
    """Again, as the migrations have it."""
    connection.execute("CREATE INDEX passages_by_word ON passages USING gin (lexemes)")
    for number in range(PARTITIONS):
        connection.execute(
            f"ALTER INDEX passages_{number}_lexemes_idx SET (gin_pending_list_limit = 256)"
        )


def random_id(turn: int) -> int:
    """Each turn has another one."""
    return turn * _ODD % (1 << _ID_BITS)


def _turn(turn: DrawnTurn, project: int, person: str) -> tuple[object, ...]:
    first, count = turn.passages[0], len(turn.passages)
    session = (turn.id - 1) // TURNS_PER_SESSION
    return (
        project, random_id(turn.id), person, f"{turn.id:032x}", session, turn.number,
        moment(turn.id), 1, 0, f"{turn.id:064x}", "prompt", first.title, first.title_stems,
        WORDS_PER_PASSAGE * count, 400 * count, 400 * count, count, "[]",
    )  # fmt: skip


def _passages(turns: list[DrawnTurn]) -> Iterator[tuple[object, ...]]:
    for turn in turns:
        for number, (place, vector) in enumerate(zip(turn.drawn, turn.vectors, strict=True)):
            yield random_id(turn.id), number, place, as_text(vector)
