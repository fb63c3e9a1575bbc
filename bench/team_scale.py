"""Fills a team database with the turns that `bench/turns.py` puts into a local one.

They are copied into its tables: pushing so many would take hours. What a search reads is the same.
"""

from collections.abc import Iterator

import numpy as np
import psycopg

from bench.memories import moment
from bench.turns import CHUNK, TURNS_PER_SESSION, WORDS_PER_PASSAGE, DrawnTurn, Pool, draw_turns
from claude_mem.index.text import passage_index
from claude_mem.team.server.embedding import as_text
from claude_mem.team.server.lexemes import tsvector
from claude_mem.team.server.schema import PARTITIONS, SCHEMA

_ODD, _ID_BITS = 0x9E3779B97F4A7C15, 48


def fill_team(url: str, pool: Pool, project: int, turns: int, passages: int) -> None:
    """For the one person of the database."""
    lexemes = {passage.text: tsvector(passage.text) for passage in pool.passages}
    with psycopg.connect(url) as connection:
        connection.execute(f"SET search_path = {SCHEMA}, public")
        connection.execute("SET maintenance_work_mem = '512MB'")
        for number in range(PARTITIONS):
            connection.execute(f"ALTER INDEX passages_{number}_lexemes_idx SET (fastupdate = off)")
        ((person,),) = connection.execute("SELECT id FROM people").fetchall()
        connection.execute(
            "INSERT INTO sessions (project_id, person_id, id, uid, title, content, version)"
            " SELECT %s, %s, n, n::text, 'Session', '{}', 1 FROM generate_series(0, %s) n",
            (project, person, turns // TURNS_PER_SESSION),
        )
        for first in range(0, turns, CHUNK):
            drawn = list(draw_turns(pool, first, min(CHUNK, turns - first), passages))
            with connection.cursor().copy("COPY turns FROM STDIN") as copy:
                for turn in drawn:
                    copy.write_row(_turn(turn, project, person))
            with connection.cursor().copy("COPY passages FROM STDIN") as copy:
                for row in _passages(drawn, project, lexemes):
                    copy.write_row(row)
        connection.execute(
            "UPDATE projects SET turns = %s, passages = %s WHERE id = %s",
            (turns, turns * passages, project),
        )


def random_id(turn: int) -> int:
    """Each turn has another one."""
    return turn * _ODD % (1 << _ID_BITS)


def _turn(turn: DrawnTurn, project: int, person: str) -> tuple[object, ...]:
    title = turn.passages[0].text[:60]
    stems = " ".join(sorted(passage_index.terms_of(title)))
    session = (turn.id - 1) // TURNS_PER_SESSION
    count = len(turn.passages)
    return (
        project, random_id(turn.id), person, f"{turn.id:032x}", session, turn.number,
        moment(turn.id), 1, 0, f"{turn.id:064x}", "prompt", title, stems,
        WORDS_PER_PASSAGE * count, 400 * count, 400 * count, count, "[]",
    )  # fmt: skip


def _passages(
    turns: list[DrawnTurn], project: int, lexemes: dict[str, str]
) -> Iterator[tuple[object, ...]]:
    for turn in turns:
        vectors = np.frombuffer(turn.vectors, np.int8).reshape(len(turn.passages), -1)
        for number, (passage, vector) in enumerate(zip(turn.passages, vectors, strict=True)):
            yield (
                project, random_id(turn.id), number, "statement" if number else "prompt",
                WORDS_PER_PASSAGE, False, passage.text, passage.terms, passage.pieces,
                lexemes[passage.text], as_text(vector),
            )  # fmt: skip
