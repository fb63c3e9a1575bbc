"""The index follows the memories, whichever process writes them, and can be rebuilt."""

import sqlite3
import sys
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claude_mem.index import indexing
from claude_mem.index.text.term_hashes import holds_term
from claude_mem.index.text.words import grams, parts_of, searchable
from claude_mem.recall.search import Query, search
from claude_mem.store import Store, file_scrubbing
from claude_mem.store.index_tables import INDEX_TABLES
from claude_mem.types import Observation, Summary
from tests.conftest import Home
from tests.live_files import unpacked
from tests.payloads import edit, private_prompt, prompt, stop
from tests.remembering import distil_as, ids_of_turns, look, remember, titles, words_of_memories
from tests.story import Story


def contents(story: Story) -> list[list[dict[str, Any]]]:
    """Everything in the index."""
    tables = [
        story.rows(f"SELECT {key} AS id, * FROM {table} ORDER BY {key}")
        for table, key in (("documents", "id"), ("unindexed", "id"), ("indexed_turns", "id"),
                           ("passages", "id"), ("passage_terms", "term"),
                           ("passage_count", "number"), ("unindexed_turns", "turn_id"))
    ]  # fmt: skip
    return [*tables, words_of_memories(story)]


def outside(story: Story, *statements: str) -> None:
    """Writes as another program would."""
    with closing(sqlite3.connect(story.layout.database, timeout=10)) as connection, connection:
        connection.execute("PRAGMA foreign_keys = ON")
        for statement in statements:
            connection.execute(statement)


def test_an_observation_a_summary_and_a_prompt_are_found_as_soon_as_they_are_stored(
    story: Story,
) -> None:
    remember(
        story,
        "The beacon flickers",
        prompt="Look at the beacon please",
        summary=Summary(request="Beacon duty", learned="Salt in the lamp"),
    )
    assert ids_of_turns(story, "beacon") == [{"1", "S1", "P1"}]
    assert ids_of_turns(story, "salt") == [{"1", "S1", "P1"}]


def test_a_revised_turn_is_found_by_its_new_words_alone(story: Story) -> None:
    remember(story, "The relay clicks", "The fuse is bent", session="s")
    story.tell(stop("again", session_id="s", prompt_id=f"s-{story.now}"))
    distil_as(story, ["The anchor drags"])
    assert titles(story, "anchor") == ["The anchor drags"]
    assert not titles(story, "relay")
    assert not titles(story, "fuse")


def test_what_is_deleted_with_its_session_is_not_found(story: Story) -> None:
    remember(story, "The relay clicks", session="gone", prompt="Mend the relay")
    remember(story, "The relay hums", session="stays")
    story.delete_session(story.session_db_id("gone"))
    assert titles(story, "relay") == ["The relay hums"]
    assert len({word["doc"] for word in words_of_memories(story)}) == 1


def test_a_prompt_that_turns_out_to_be_private_takes_its_memories_out_of_the_index(
    story: Story,
) -> None:
    story.tell(edit(), stop())
    story.distil()
    assert story.rows("SELECT 1 FROM documents")
    story.tell(private_prompt(" "))
    assert not story.rows("SELECT 1 FROM documents")


def test_what_another_program_deletes_or_changes_is_not_found_before_it_is_indexed_anew(
    story: Story,
) -> None:
    first, second = remember(story, "The relay clicks", "The relay hums")
    outside(
        story,
        f"DELETE FROM observations WHERE id = {first}",
        f"UPDATE observations SET title = 'The rope' WHERE id = {second}",
    )
    assert not titles(story, "relay")
    story.store.write(indexing.refresh).result()
    assert titles(story, "rope") == ["The rope"]
    assert not titles(story, "relay")


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE observations SET title = 'The rope' WHERE id = 1",
        "UPDATE observations SET wrong = 1 WHERE id = 2",
        "UPDATE observations SET turn_id = 2, ordinal = 9 WHERE id = 1",
        "DELETE FROM observations WHERE id = 2",
        "UPDATE session_summaries SET learned = 'Salt', commands = '[]'",
        'UPDATE turn_records SET parts = \'[["statement", "agent", "Salt"]]\'',
        "DELETE FROM turn_records",
        "UPDATE user_prompts SET prompt_text = 'Look up' WHERE id = 1",
        "UPDATE user_prompts SET private = 1 WHERE id = 1",
        "DELETE FROM user_prompts WHERE id = 1",
        "DELETE FROM sdk_sessions",
        "INSERT INTO unindexed (document) SELECT id * 4 + 3 FROM user_prompts",
    ],
)
def test_whatever_another_program_changes_leaves_no_word_of_the_old_text_in_the_index(
    story: Story, change: str
) -> None:
    for session in ("s", "t"):
        remember(story, "The relay clicks", "The relay hums", session=session, prompt="Mend it",
                 summary=Summary(request="Mend", learned="A fuse was bent"))  # fmt: skip
    story.store.run_before_commit(lambda connection: None)
    outside(story, change, "UPDATE observations SET narrative = 'Twice' WHERE id = 1")
    story.store.write(indexing.refresh).result()
    changed = contents(story)
    indexing.rebuild(story.store)
    assert contents(story) == changed


def test_an_index_that_has_other_passages_than_its_rows_gave_it_is_rebuilt(
    story: Story, caplog: pytest.LogCaptureFixture
) -> None:
    remember(story, "The relay clicks", "The relay hums")
    outside(story, "UPDATE passages SET words = words + 1")
    remember(story, "The anchor drags", session="t")
    assert "rebuilding" not in caplog.text
    outside(story, "DELETE FROM observations WHERE id = 2")
    story.store.write(indexing.refresh).result()
    assert "rebuilding the index" in caplog.text
    changed = contents(story)
    indexing.rebuild(story.store)
    assert contents(story) == changed
    assert titles(story, "relay") == ["The relay clicks"]


@pytest.mark.parametrize("table", ["memory_text", "documents", "index_version"])
def test_a_dropped_index_costs_no_memory_and_comes_back_with_the_next_write(
    story: Story, table: str
) -> None:
    remember(story, "The relay clicks")
    outside(story, f"DROP TABLE {table}")
    assert not titles(story, "relay")
    remember(story, "The fuse is bent")
    assert titles(story, "relay") == ["The relay clicks"]
    assert titles(story, "fuse") == ["The fuse is bent"]


def test_an_index_that_cannot_be_written_is_built_again(story: Story) -> None:
    remember(story, "The relay clicks")
    outside(story, "DROP TABLE memory_text", "CREATE TABLE memory_text (x)")
    remember(story, "The fuse is bent")
    assert story.column("SELECT count(*) FROM observations") == [2]
    assert titles(story, "relay") == ["The relay clicks"]
    assert titles(story, "fuse") == ["The fuse is bent"]


def test_a_rebuilt_index_is_the_one_that_grew(story: Story) -> None:
    remember(story, "One", Observation("bugfix", narrative="Two", facts=("three",)), prompt="Four")
    remember(story, "Five", session="t", summary=Summary(request="Six", files_read=("a.py",)))
    story.tell(stop("again", session_id="t", prompt_id=f"t-{story.now}"))
    distil_as(story, ["Seven", "Eight"], Summary(completed="Nine"))
    grown = contents(story)
    assert indexing.rebuild(story.store) == len(grown[0]) == 6
    assert contents(story) == grown


def test_a_rebuild_takes_more_than_one_piece_when_there_is_more(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    remember(story, *(f"Pier {number}" for number in range(12)))
    grown = contents(story)
    monkeypatch.setattr(indexing, "CHUNK", 5)
    assert indexing.rebuild(story.store) == 12
    assert contents(story) == grown


def test_the_file_is_packed_once_after_a_rebuild(story: Story) -> None:
    remember(story, "The relay clicks")
    indexing.rebuild(story.store)
    assert indexing.pack(story.store)
    assert not indexing.pack(story.store)
    assert titles(story, "relay") == ["The relay clicks"]


def test_the_file_is_not_packed_while_memories_wait_for_the_index(story: Story) -> None:
    remember(story, "The relay clicks")
    indexing.rebuild(story.store)
    outside(story, "INSERT INTO unindexed (document) VALUES (4)")
    assert not indexing.pack(story.store)


def test_a_file_that_is_too_large_is_not_packed(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    remember(story, "The relay clicks")
    indexing.rebuild(story.store)
    monkeypatch.setattr(file_scrubbing, "MAX_COMPACTED_BYTES", 0)
    assert not indexing.pack(story.store)


def test_an_index_of_another_version_finds_nothing_until_it_is_rebuilt(story: Story) -> None:
    remember(story, "The relay clicks")
    outside(story, "UPDATE index_version SET version = version - 1")
    result = look(story, "relay")
    assert not result.rows
    assert result.waiting
    story.store.write(indexing.refresh).result()
    assert titles(story, "relay") == ["The relay clicks"]


def test_an_empty_summary_is_no_document(story: Story) -> None:
    remember(story, "The relay clicks")
    assert story.column("SELECT type FROM documents") == ["change"]


@pytest.mark.parametrize(
    ("word", "parts"),
    [
        ("useEvaluationApi", ["use", "Evaluation", "Api"]),
        ("HTTPServer", ["HTTP", "Server"]),
        ("TS2345", ["TS", "2345"]),
        ("sha256", ["sha", "256"]),
        ("harbor", []),
        ("ENOENT", []),
        ("9f86d081884c7d65", []),
        ("2024", []),
    ],
)
def test_identifiers_are_taken_apart_and_hashes_are_not(word: str, parts: list[str]) -> None:
    assert parts_of(word) == parts


def test_every_character_of_an_unspaced_script_begins_a_word() -> None:
    assert grams("数据库") == ["数据", "据库", "库"]


@given(st.text(max_size=200))
def test_any_text_can_be_indexed(text: str) -> None:
    indexed = searchable(text)
    assert "\0" not in indexed
    indexed.encode()


def test_reindex_repairs_the_index_while_the_worker_runs(home: Home) -> None:
    home.start_worker()
    home.hook(prompt("Mend the northern lantern"))
    home.hook(stop("It glows"))
    home.wait_settled()
    with closing(sqlite3.connect(home.layout.database, timeout=10)) as connection, connection:
        connection.execute("DELETE FROM documents")
    done = home.command("reindex")
    assert done.stdout == "Indexed 2 memories.\n"
    assert len(home.rows("SELECT 1 FROM documents")) == 2


def test_reindex_without_a_memory_says_so_and_creates_nothing(home: Home) -> None:
    done = home.command("reindex")
    assert done.returncode == 1
    assert "No memories yet" in done.stderr
    assert not home.layout.database.exists()


# Backups


def test_a_backup_leaves_out_the_index_and_is_searched_after_a_rebuild(
    story: Story, tmp_path: Path
) -> None:
    remember(story, "The relay clicks twice", session="s")
    backup = unpacked(story.store.back_up(tmp_path / "backups", 1))
    with closing(sqlite3.connect(backup)) as connection:
        tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master")}
    assert set(INDEX_TABLES) == set(indexing._NAMES)
    assert tables.isdisjoint(INDEX_TABLES)
    with Store.open(backup, tmp_path / "none") as restored:
        restored.run_before_commit(indexing.refresh)
        indexing.rebuild(restored)
        (row,) = search(restored, Query("relay"), datetime.now(UTC)).rows
    assert row.title == "The relay clicks twice"


@given(st.lists(st.lists(st.sampled_from([0x0101, 0x0102, 0x0201, 0x2001]), max_size=5)))
def test_a_term_is_found_only_where_a_whole_hash_is_its_own(passages: list[list[int]]) -> None:
    for numbers in passages:
        hashes = b"".join(n.to_bytes(2, sys.byteorder) for n in numbers)
        for number in (0x0101, 0x0102, 0x0201, 0x2001):
            assert holds_term(hashes, number.to_bytes(2, sys.byteorder)) == (number in numbers)
