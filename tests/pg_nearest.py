"""Prints what the vector backend of the team server finds, as a process of its own:
`python -m tests.pg_nearest URL PERSON PROJECT TEXT COUNT`."""

import json
import sys

from claude_mem.index.embedders.static_model import StaticModel
from claude_mem.index.text.passage_queries import PASSAGE_BITS
from claude_mem.index.vectors.blocks import QueryVector, quantise
from claude_mem.index.vectors.vector_backend import VectorBackend
from claude_mem.team.server.database import Database, Person
from claude_mem.team.server.vectors import PgVectors


def main(url: str, person: str, project: str, text: str, count: str) -> None:
    database = Database(url, connections=1)
    database.open()
    (row,) = quantise(StaticModel.load().encode([text]))
    with database.transaction(Person(person, "", ("read",))) as connection:
        backend: VectorBackend = PgVectors(connection)
        best = backend.nearest(QueryVector(row), [int(project)], int(count)).best(int(count))
        texts = {
            turn << PASSAGE_BITS | number: body
            for turn, number, body in connection.execute(
                "SELECT turn_id, number, text FROM passages"
            )
        }
    database.close()
    print(json.dumps([(texts[passage], cosine) for passage, cosine in best]))


if __name__ == "__main__":
    main(*sys.argv[1:])
