"""Connections to the team database, and transactions in the name of a person.

Everything is set for one transaction only, so that poolers in transaction mode can be used.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import psycopg
from psycopg.rows import TupleRow
from psycopg_pool import ConnectionPool

from claude_mem.team.server.schema import ROLE, SCHEMA

if TYPE_CHECKING:
    Connection: TypeAlias = psycopg.Connection[TupleRow]

POOL_SECONDS = 5.0  # until a request without a connection is refused
STATEMENT_SECONDS = 30
HNSW_CANDIDATES = 400
_SETTINGS = {
    "role": ROLE,
    "search_path": f"{SCHEMA}, public",
    "statement_timeout": f"{STATEMENT_SECONDS}s",
    "hnsw.iterative_scan": "relaxed_order",
    "hnsw.ef_search": str(HNSW_CANDIDATES),
}
_ENTER = "SELECT " + ", ".join(
    f"set_config('{name}', {value}, true)"
    for name, value in (
        ("claude_mem.person", "%s"), ("claude_mem.scopes", "%s"),
        *((name, f"'{value}'") for name, value in _SETTINGS.items()),
    )
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Person:
    """Who makes a request, and what their token allows."""

    id: str
    name: str
    scopes: tuple[str, ...]
    token_id: str = ""


class Database:
    def __init__(self, url: str, connections: int = 8) -> None:
        self.connections = connections
        self._pool = ConnectionPool(
            url,
            min_size=1,
            max_size=connections,
            timeout=POOL_SECONDS,
            kwargs={"prepare_threshold": None, "autocommit": True},
            check=ConnectionPool.check_connection,
            open=False,
        )

    def open(self) -> None:
        self._pool.open()

    def close(self) -> None:
        self._pool.close()

    def state(self) -> dict[str, int]:
        stats = self._pool.get_stats()
        size, idle = stats.get("pool_size", 0), stats.get("pool_available", 0)
        return {"idle": idle, "used": size - idle, "waiting": stats.get("requests_waiting", 0)}

    @contextmanager
    def connection(self) -> "Iterator[Connection]":
        """Connects as the role that the server logs in with: for /ready and for tokens alone."""
        with self._pool.connection() as connection:
            yield connection

    @contextmanager
    def transaction(
        self, person: Person | None = None, *, is_snapshot: bool = False
    ) -> "Iterator[Connection]":
        """Begins a transaction as the server's role, for this person; for nobody it reads nothing.
        `is_snapshot`: all statements read the same state, and none writes."""
        with self._pool.connection() as connection, connection.transaction():
            if is_snapshot:
                connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            enter(connection, person)
            yield connection


def enter(connection: "Connection", person: Person | None) -> None:
    """Enters the role and the person in one statement: each costs the time of a message to the
    database and back."""
    scopes = ",".join(person.scopes) if person else ""
    connection.execute(_ENTER, (person.id if person else "", scopes))
