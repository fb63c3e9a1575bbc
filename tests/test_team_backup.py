"""A backup of the team database, restored as the documentation says it."""

from pathlib import Path

import pytest

from tests.postgres import Postgres, running_postgres
from tests.team import Member, TeamServer, turn_item

pytestmark = pytest.mark.extra

OWNER = "claude_mem"
TITLE = "The harbour light blinks twice"


def create_owned_database(postgres: Postgres) -> None:
    """Creates a database by an owner without other rights, as a provider of databases gives one."""
    postgres.sql("postgres", f"CREATE ROLE {OWNER} LOGIN CREATEROLE")
    postgres.sql("postgres", f"CREATE DATABASE team OWNER {OWNER}")
    postgres.sql("team", "CREATE EXTENSION IF NOT EXISTS vector")


def test_a_restored_backup_has_everything_and_the_same_rights(tmp_path: Path) -> None:
    with running_postgres() as first:
        create_owned_database(first)
        server = TeamServer(first, "team", tmp_path, user=OWNER)
        try:
            server.start()
            alice = server.join("Alice")
            alice.push(alice.share("harbor"), turn_item(title=TITLE))
            dump = first.root / "team.dump"
            first.run("pg_dump", "--format=custom", f"--file={dump}", first.url_of("team", OWNER))
            content = dump.read_bytes()
        finally:
            server.kill()
    with running_postgres() as second:
        create_owned_database(second)
        role = ("CREATE ROLE claude_mem_server", f"GRANT claude_mem_server TO {OWNER}")
        second.sql("team", *role, user=OWNER)
        dump = second.root / "team.dump"
        dump.write_bytes(content)
        target = ("--no-owner", "--no-comments", "--dbname", second.url_of("team", OWNER))
        second.run("pg_restore", *target, str(dump))
        server = TeamServer(second, "team", tmp_path, user=OWNER)
        try:
            server.start()
            assert Member(server, alice.token).titles("harbour light") == [TITLE]
            rows = server.sql("SET ROLE claude_mem_server", "SELECT * FROM claude_mem.turns")
            assert rows == []
        finally:
            server.kill()
