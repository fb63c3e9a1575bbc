"""The team database of the version before the schema was frozen (`tests/fixtures`)."""

import gzip
from collections.abc import Iterator
from pathlib import Path

import pytest

from claude_mem.team.server import schema
from claude_mem.team.server.schema import DIMENSION, PARTITIONS, ROLE, SCHEMA
from claude_mem.team.wire import FACT_KINDS
from tests.postgres import Postgres, running_postgres
from tests.team import TeamServer
from tests.test_conversion import COMMIT, FIXTURES

KINDS = ", ".join(f"'{kind}'" for kind in FACT_KINDS)


def test_the_schema_has_the_names_and_sizes_that_the_server_uses() -> None:
    text = Path(str(schema.__file__)).with_name("schema.sql").read_text("utf-8")
    for part in (f"halfvec({DIMENSION})", f"bit({DIMENSION})", f"TO {ROLE};", f"IN ({KINDS})",
                 f"codes_{PARTITIONS - 1} PARTITION", f"search_path = {SCHEMA}"):  # fmt: skip
        assert part in text
    assert f"codes_{PARTITIONS} PARTITION" not in text


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    with running_postgres() as postgres:
        postgres.sql("postgres", f"CREATE ROLE {ROLE} NOLOGIN")
        yield postgres


@pytest.fixture
def old(postgres: Postgres, tmp_path: Path) -> TeamServer:
    """A team database of that version: Alice's turn about a beacon, and Bob's about its lamp."""
    name = f"old_{tmp_path.name}"
    postgres.create_database(name)
    postgres.load(name, gzip.decompress((FIXTURES / "team.sql.gz").read_bytes()))
    return TeamServer(postgres, name, tmp_path)


def dump(server: TeamServer) -> list[str]:
    """Dumps the schema without white space: that of the bodies of functions may differ."""
    statements = server.postgres.dump_schema(server.database).split(";\n")
    return sorted("".join(line.split()) for line in statements if "restrict" not in line)


@pytest.mark.extra
@pytest.mark.parametrize("has_makers", [False, True])
def test_a_converted_team_database_has_the_schema_of_a_new_one(
    old: TeamServer, tmp_path: Path, has_makers: bool
) -> None:
    if has_makers:
        old.sql(
            "SET search_path = claude_mem",
            "ALTER TABLE tokens ADD COLUMN made_by uuid REFERENCES tokens(id) ON DELETE SET NULL",
            "INSERT INTO schema_migrations (name) VALUES ('0008_token_makers')",
        )
    before = old.content()
    assert "0100_schema" in old.command("migrate")
    new = TeamServer(old.postgres, f"new_{old.database}", tmp_path)
    old.postgres.create_database(new.database)
    new.command("migrate")
    assert dump(old) == dump(new)
    names = "SELECT name FROM claude_mem.schema_migrations"
    assert old.sql(names) == new.sql(names) == [["0100_schema"]]
    assert old.content() == before
    assert old.command("migrate") == "The database is up to date."


@pytest.mark.extra
def test_what_a_team_shared_is_found_after_the_conversion(old: TeamServer) -> None:
    try:
        old.start()
        member = old.join("Carol")
        old.sql(
            "INSERT INTO claude_mem.memberships SELECT p.id, m.id, 'reader'"
            " FROM claude_mem.projects p, claude_mem.people m WHERE m.name = 'Carol'"
        )
        assert member.titles("spare lamp")[0] == "The beacon has a spare lamp"
        assert "beacon flickers" in member.titles("why does the beacon flicker")[0]
    finally:
        old.kill()


@pytest.mark.extra
def test_a_team_database_that_is_too_old_is_refused_and_not_changed(old: TeamServer) -> None:
    old.sql("DELETE FROM claude_mem.schema_migrations WHERE name = '0007_matching'")
    before = dump(old), old.sql("SELECT name FROM claude_mem.schema_migrations")
    with pytest.raises(AssertionError, match=COMMIT):
        old.command("migrate")
    assert (dump(old), old.sql("SELECT name FROM claude_mem.schema_migrations")) == before
