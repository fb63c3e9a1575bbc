"""The state of the table of vectors: what a copy of it is compared with."""

import sqlite3
from typing import NamedTuple

from claude_mem.index import indexing
from claude_mem.index.vectors import vector_table


class TableState(NamedTuple):
    """Which index and model, and the latest change and loss."""

    generation: int
    model: int
    revision: int
    loss: int


def read_state(
    connection: sqlite3.Connection, model: str, dimension: int | None = None
) -> TableState:
    return TableState(
        indexing.generation(connection),
        vector_table.number_of(connection, model, dimension),
        vector_table.revision(connection),
        vector_table.last_loss(connection),
    )
