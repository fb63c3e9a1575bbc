"""Back to the version before: what it does with a newer database, and how to return to a backup."""

import json
import sqlite3
from contextlib import closing

import pytest

from claude_mem.store.recovery import delete_copies
from claude_mem.worker.lock import is_held
from tests.conftest import Home, wait_until
from tests.payloads import prompt, session_start, stop, tool


@pytest.fixture
def newer(installed: Home) -> Home:
    """A turn was recorded; then a newer version made a backup and migrated the database."""
    for payload in (prompt(), stop()):
        installed.hook(payload)
    installed.wait_settled()
    assert installed.command("worker", "stop").returncode == 0
    database = installed.layout.database
    with closing(sqlite3.connect(database)) as connection, connection:
        backup = installed.layout.backups / "memory-20990101T000000000000-before-migration.db"
        connection.execute("VACUUM INTO ?", (str(backup),))
        connection.execute("CREATE TABLE newer (x)")
        connection.execute(
            "INSERT INTO schema_migrations (name, applied_at) VALUES ('9999_of_the_newer', '')"
        )
    return installed


def backup_name(home: Home) -> str:
    (path,) = home.layout.backups.glob("*before-migration.db")
    return path.name


def test_an_older_version_records_on_and_says_how_to_go_back(newer: Home) -> None:
    before = newer.layout.database.read_bytes()
    assert json.loads(newer.hook(tool()).stdout)["continue"]
    wait_until(lambda: (newer.layout.root / "trouble").exists(), "the report")
    wait_until(lambda: not is_held(newer.layout), "the end of the worker")
    message = json.loads(newer.hook(session_start()).stdout)["systemMessage"]
    assert "newer claude-mem" in message and "nothing is lost" in message
    assert "claude-mem worker restore" in message
    wait_until(lambda: not is_held(newer.layout), "the end of the worker")
    assert len(list(newer.layout.spool.glob("*.event"))) == 2
    assert newer.layout.database.read_bytes() == before
    rows = json.loads(newer.command("doctor", "--json").stdout)
    (check,) = [row for row in rows if "newer claude-mem" in row["found"]]
    assert (check["check"], check["verdict"]) == ("database", "wrong")
    assert check["mend"] == f"claude-mem worker restore {backup_name(newer)}"


def test_restoring_the_backup_keeps_what_waited_and_the_newer_database(newer: Home) -> None:
    newer.hook(prompt("Paint the buoy red", session_id="later", prompt_id="later"))
    newer.hook(stop("The buoy is red.", session_id="later", prompt_id="later"))
    wait_until(lambda: not is_held(newer.layout), "the end of the worker")
    name = backup_name(newer)
    assert name in newer.command("worker", "restore").stdout
    refused = newer.command("worker", "restore", name, "--yes", CLAUDECODE="1")
    assert refused.returncode == 1 and "agent" in refused.stderr
    done = newer.command("worker", "restore", name, "--yes")
    assert done.returncode == 0, done.stderr
    newer.wait_settled()
    assert newer.rows("SELECT count(*) AS n FROM session_summaries") == [{"n": 2}]
    (replaced,) = newer.layout.root.glob("memory.db.replaced-*")
    with closing(sqlite3.connect(replaced)) as connection:
        assert connection.execute("SELECT count(*) FROM newer").fetchone() == (0,)
    delete_copies(newer.layout.database)  # as forgetting for good does
    assert not replaced.exists()
    assert "newer claude-mem" not in newer.command("doctor").stdout
    rows = json.loads(newer.command("doctor", "--json").stdout)
    (check,) = [row for row in rows if row["check"] == "backups"]
    assert check["verdict"] == "ok"


def test_a_backup_that_is_newer_itself_or_does_not_exist_changes_nothing(newer: Home) -> None:
    before = newer.layout.database.read_bytes()
    backup = newer.layout.backups / "memory-20990102T000000000000.db"
    backup.write_bytes(before)
    for name, reason in ((backup.name, "newer claude-mem"), ("memory-x.db.gz", "no backup")):
        done = newer.command("worker", "restore", name, "--yes")
        assert done.returncode == 1 and reason in done.stderr
    assert newer.layout.database.read_bytes() == before
    assert not list(newer.layout.root.glob("memory.db.re*"))
