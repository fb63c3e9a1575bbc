"""Export: every row as a line, the same bytes for the same memory."""

import sqlite3
import stat
from base64 import b64decode
from contextlib import closing
from pathlib import Path

import pytest

from claude_mem.store.transfer.restore import is_export
from claude_mem.store.transfer.tables import CANONICAL
from tests.conftest import Home
from tests.exports import dump, lines, live, restored, rows_of
from tests.payloads import (
    edit,
    prompt,
    session_end,
    session_start,
    stop,
)
from tests.story import Story

# Export


# Derived from the others, about the file itself, or no longer memory: forgotten rows stay here.
NOT_EXPORTED = {
    "schema_migrations", "transcripts", "undistilled_transcripts", "unindexed", "unindexed_turns",
    "documents", "memory_text", "index_version",
    "vectors", "vector_models", "vector_losses", "twins",
    "forgotten", "forgotten_rows", "tombstones", "scrub_requests",
    "refinements", "observer_usage", "observer_breakers", "notices", "hints",
    "indexed_turns", "passages", "passage_count",
    # About directories of this machine.
    "project_overrides", "project_aliases", "project_claims", "project_checkouts",
    "team_projects", "team_outbox", "team_turns", "team_state", "team_recent",
    "team_facts", "team_recent_facts",
    "sqlite_sequence", "sqlite_stat1", "sqlite_stat4",
}  # fmt: skip


def test_every_table_of_the_schema_is_exported_or_listed_as_not_exported(story: Story) -> None:
    tables = set(
        story.column(
            "SELECT name FROM sqlite_master WHERE type = 'table'"
            # The tables of FTS5 and its shadow tables.
            " AND name NOT LIKE 'memory_text_%' AND name NOT LIKE 'passage_te%'"
        )
    )
    canonical = {table.name for table in CANONICAL}
    assert canonical <= tables
    assert tables - NOT_EXPORTED == canonical


def test_no_column_is_called_like_the_member_that_names_the_table(story: Story) -> None:
    assert not [
        c for columns in story.store.schema().values() for c in columns if c.name == "table"
    ]


def test_an_export_has_every_row_with_every_column_between_a_header_and_a_count(
    story: Story,
) -> None:
    header, *records, last = lines(dump(live(story).store))
    assert (header["format"], header["version"]) == ("claude-mem-export", 1)
    assert last == {"records": len(records)}
    for table in CANONICAL:
        mine = [{**record} for record in records if record["table"] == table.name]
        assert mine, table.name
        for record in mine:
            del record["table"]
            if table.name == "unstored_words":
                record["checksums"] = b64decode(record["checksums"]["base64"])
        ordered = sorted(
            story.rows(f"SELECT * FROM {table.name}"), key=lambda r: list(map(str, r.values()))
        )
        assert sorted(mine, key=lambda r: list(map(str, r.values()))) == ordered


def test_the_same_memory_gives_the_same_bytes(story: Story) -> None:
    first = dump(live(story).store)
    with closing(sqlite3.connect(story.layout.database)) as connection:
        connection.execute("VACUUM")
    assert dump(story.store) == first


def test_an_export_shows_one_moment_while_others_write(story: Story) -> None:
    live(story)
    before = dump(story.store)
    written: list[bytes] = []

    def write(line: bytes) -> None:
        if not written:
            story.tell(prompt("meanwhile", session_id="s3"), stop(session_id="s3"))
        written.append(line)

    story.store.export(write)
    assert b"".join(written) == before


def test_an_export_of_a_project_has_nothing_of_the_others(story: Story, other: Story) -> None:
    live(story)
    project_id = story.store.find_project("lighthouse")
    data = dump(story.store, project_id)
    assert [row["name"] for row in rows_of(data, "projects")] == ["lighthouse"]
    assert {row["content_session_id"] for row in rows_of(data, "sdk_sessions")} == {"s2"}
    assert b"Another harbour" in data and b"Make the harbour" not in data
    report = restored(other, data)
    assert (report.refused, report.is_complete) == (0, True)
    assert rows_of(dump(other.store), "user_prompts") == rows_of(data, "user_prompts")


def test_text_that_is_no_text_is_exported_all_the_same(story: Story) -> None:
    live(story)
    with closing(sqlite3.connect(story.layout.database)) as connection:
        connection.execute("UPDATE session_summaries SET notes = CAST(x'ff41' AS TEXT)")
        connection.commit()
    assert rows_of(dump(story.store), "session_summaries")[0]["notes"] == "\ufffdA"


# The command


@pytest.fixture
def remembering(home: Home) -> Home:
    home.start_worker()
    for payload in (session_start(), prompt(), edit(), stop(), session_end()):
        home.hook(payload)
    home.wait_settled()
    return home


def test_the_command_writes_a_file_for_its_owner_alone_beside_a_worker(
    remembering: Home, tmp_path: Path
) -> None:
    target = tmp_path / "memory.jsonl"
    done = remembering.command("export", str(target))
    assert done.returncode == 0, done.stderr
    assert "records to" in done.stdout
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert is_export(target) and rows_of(target.read_bytes(), "observations")
    printed = remembering.command("export")
    assert printed.stdout.encode() == target.read_bytes()
    assert remembering.command("export", "-", "--project", "harbor").stdout == printed.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home", "memory.jsonl"]


def test_the_command_replaces_a_file_only_when_told_to(remembering: Home, tmp_path: Path) -> None:
    target = tmp_path / "memory.jsonl"
    target.write_text("mine")
    refused = remembering.command("export", str(target))
    assert refused.returncode == 1 and "--force" in refused.stderr
    assert target.read_text() == "mine"
    assert remembering.command("export", str(target), "--force").returncode == 0
    assert is_export(target)
    assert stat.S_IMODE(target.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["here/memory.jsonl"], "does not exist"),
        (["."], "is a directory"),
        (["-", "--project", "nobody"], "no project"),
    ],
)
def test_what_cannot_be_exported_is_said_in_one_line(
    remembering: Home, arguments: list[str], message: str
) -> None:
    done = remembering.command("export", *arguments)
    assert (done.returncode, done.stdout) == (1, "")
    assert message in done.stderr and len(done.stderr.splitlines()) == 1


def test_without_memory_there_is_nothing_to_export_and_nothing_is_created(
    home: Home, tmp_path: Path
) -> None:
    done = home.command("export", str(tmp_path / "memory.jsonl"))
    assert done.returncode == 1 and "No memories yet" in done.stderr
    assert not home.layout.database.exists() and not (tmp_path / "memory.jsonl").exists()
