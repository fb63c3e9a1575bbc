"""Deleted text leaves the database file, its journal and its backups."""

import sqlite3
from contextlib import closing

import pytest

from claude_mem.errors import DatabaseInUse
from claude_mem.store import file_scrubbing
from claude_mem.store.database import connect
from tests.live_files import contents_below, unpacked
from tests.payloads import edit, prompt, session_end, stop
from tests.story import Story

WORDS = "quartz-4711-heron"


def tell_turn(story: Story, session: str, text: str) -> None:
    about = {"session_id": session, "prompt_id": f"prompt-of-{session}-{'0' * 32}"}
    story.tell(prompt(f"Fix {text}", **about), edit(**about), stop(f"Fixed {text}.", **about))
    story.tell(session_end(**about))
    story.distil()


def files_with(story: Story, text: str) -> list[str]:
    files = contents_below(story.layout.root).items()
    return sorted(path.name for path, content in files if text.encode() in content)


def delete_session(story: Story, session: str) -> None:
    def work(connection: sqlite3.Connection) -> None:
        connection.execute("DELETE FROM sdk_sessions WHERE content_session_id = ?", (session,))
        file_scrubbing.request(connection, story.now)

    story.store.write(work).result()


@pytest.fixture
def deleted(story: Story) -> Story:
    """A session that is deleted from the tables; backups and a damaged copy were made before."""
    tell_turn(story, "other", "the pier lamp")
    tell_turn(story, "deleted", WORDS)
    story.store.back_up(story.layout.backups, 3)
    story.store.back_up(story.layout.backups, 3)
    damaged = story.layout.database.with_name("memory.db.damaged-20260101T000000000000")
    damaged.write_bytes(b"half a page with " + WORDS.encode())
    delete_session(story, "deleted")
    return story


def test_a_scrub_leaves_the_text_in_no_file_and_keeps_every_other_row(deleted: Story) -> None:
    assert len(files_with(deleted, WORDS)) >= 4, "journal, two backups, damaged copy"
    before = deleted.rows("SELECT * FROM user_prompts"), deleted.rows("SELECT * FROM observations")
    assert deleted.store.needs_scrub()

    deleted.store.scrub(deleted.layout.backups)

    assert files_with(deleted, WORDS) == []
    assert not deleted.store.needs_scrub()
    after = deleted.rows("SELECT * FROM user_prompts"), deleted.rows("SELECT * FROM observations")
    assert after == before and before[0]
    (backup,) = deleted.layout.backups.iterdir()
    with closing(connect(unpacked(backup), readonly=True)) as connection:
        assert connection.execute("SELECT count(*) FROM user_prompts").fetchone()[0] == 1


def test_a_scrub_while_the_journal_is_read_remains_requested(deleted: Story) -> None:
    with closing(connect(deleted.layout.database, readonly=True)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM user_prompts").fetchone()
        tell_turn(deleted, "later", "the bell")
        with pytest.raises(DatabaseInUse):
            deleted.store.scrub(deleted.layout.backups)
        assert deleted.store.needs_scrub()
    tell_turn(deleted, "last", "the rope")  # writing goes on
    deleted.store.scrub(deleted.layout.backups)
    assert files_with(deleted, WORDS) == [] and not deleted.store.needs_scrub()


def test_without_backups_none_is_made(story: Story) -> None:
    tell_turn(story, "deleted", WORDS)
    delete_session(story, "deleted")
    story.store.scrub(story.layout.backups)
    assert files_with(story, WORDS) == [] and not list(story.layout.backups.iterdir())


def test_a_request_during_a_scrub_is_not_lost(story: Story) -> None:
    def work(connection: sqlite3.Connection) -> None:
        file_scrubbing.request(connection, 1)
        last = file_scrubbing.last_request(connection)
        file_scrubbing.request(connection, 2)
        file_scrubbing.finish(connection, last)

    story.store.write(work).result()
    assert story.store.needs_scrub()
