"""What operators do with the database, as its owner: invitations, quotas and indexes."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import psycopg

from claude_mem.errors import NotFound
from claude_mem.team.server import access
from claude_mem.team.server.schema import PARTITIONS, SCHEMA

if TYPE_CHECKING:
    from claude_mem.team.server.database import Connection

BUILD_MEMORY = "1GB"  # for 3 million passages; a graph that does not fit takes much longer


@contextmanager
def _owner(url: str) -> "Iterator[Connection]":
    with psycopg.connect(url) as connection:
        connection.execute(f"SET LOCAL search_path = {SCHEMA}, public")
        yield connection


def invite(url: str, name: str, *, is_admin: bool, days: int) -> str:
    scopes = ("read", "write", "admin") if is_admin else ("read", "write")
    with _owner(url) as connection:
        return access.invite(connection, access.Invitation(name, scopes, days=days), None)


def set_quota(url: str, project_id: int, turns: int | None, size: int | None) -> None:
    with _owner(url) as connection:
        cursor = connection.execute(
            "UPDATE projects SET max_turns = %s, max_bytes = %s WHERE id = %s",
            (turns, size, project_id),
        )
        if not cursor.rowcount:
            raise NotFound(f"there is no project {project_id}: claude-mem team status lists them")


def build_vector_indexes(url: str, above: int) -> list[str]:
    """Builds the indexes of the partitions with more passages than that; returns the partitions. In
    others all codes are compared, which is faster up to about this size. Nobody has to wait for
    it."""
    built: list[str] = []
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"SET search_path = {SCHEMA}, public")
        connection.execute(f"SET maintenance_work_mem = '{BUILD_MEMORY}'")
        for number in range(PARTITIONS):
            table = f"codes_{number}"
            row = connection.execute(
                f"SELECT count(*) > %s, to_regclass('{table}_by_code') IS NULL FROM {table}",
                (above,),
            ).fetchone()
            if row == (True, True):
                connection.execute(
                    f"CREATE INDEX CONCURRENTLY {table}_by_code ON {table}"
                    " USING hnsw (code bit_hamming_ops)"
                )
                built.append(table)
            connection.execute(f"ANALYZE {table}, passages_{number}, turns_{number}")
    return built
