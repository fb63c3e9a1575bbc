"""Connections to the team database, and transactions in the name of a person.

Everything is set for one transaction only, so that poolers in transaction mode can be used.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import psycopg
from psycopg import sql
from psycopg.rows import TupleRow
from psycopg_pool import ConnectionPool

from claude_mem.team.server.schema import ROLE, SCHEMA

if TYPE_CHECKING:
    Connection: TypeAlias = psycopg.Connection[TupleRow]

POOL_SECONDS = 5.0  # until a request without a connection is refused
STATEMENT_SECONDS = 30
_ENTER = sql.SQL(
    "SET LOCAL ROLE {role}; SET LOCAL search_path = {schema}, public;"
    " SET LOCAL statement_timeout = {limit}; SET LOCAL hnsw.iterative_scan = relaxed_order"
).format(role=sql.Identifier(ROLE), schema=sql.Identifier(SCHEMA), limit=f"{STATEMENT_SECONDS}s")


@dataclass(frozen=True, slots=True)
class Person:
    """Who makes a request, and what their token allows."""

    id: str
    name: str
    scopes: tuple[str, ...]
    token_id: str = ""


class Database:
    def __init__(self, url: str, connections: int = 8) -> None:
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
        """As the role that the server logs in with: for /ready alone."""
        with self._pool.connection() as connection:
            yield connection

    @contextmanager
    def transaction(self, person: Person | None = None) -> "Iterator[Connection]":
        """As the server's role, for this person; for nobody it reads nothing."""
        with self._pool.connection() as connection, connection.transaction():
            enter(connection, person)
            yield connection


def enter(connection: "Connection", person: Person | None) -> None:
    connection.execute(_ENTER)
    connection.execute(
        "SELECT set_config('claude_mem.person', %s, true),"
        " set_config('claude_mem.scopes', %s, true)",
        (person.id if person else "", ",".join(person.scopes) if person else ""),
    )
