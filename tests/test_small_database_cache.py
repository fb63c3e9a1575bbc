"""A small memory that is held in full never differs from what is in the database."""

import sqlite3
from collections.abc import Callable
from contextlib import closing

import pytest

from claude_mem.index import indexing, small_database_cache
from claude_mem.index.text.documents import MOST_PASSAGES
from claude_mem.index.text.filters import NO_FILTERS, Filters
from claude_mem.index.vectors.document_vectors import embed_some
from claude_mem.index.vectors.lazy_index import SemanticIndex
from claude_mem.recall.search import SearchResult
from claude_mem.store.forgetting import Selection
from claude_mem.types import Observation, Summary
from tests.embedders import new_index
from tests.remembering import look, remember, remember_turns, titles
from tests.story import Story

QUERIES = ("lamp", "why does the lamp blink again", "gull login", "the quay lantern is slow")


@pytest.fixture
def library(story: Story) -> Story:
    lamp = Observation("bugfix", title="The lamp blinks", narrative="A relay was loose.")
    summary = Summary(request="Find the fault of the lamp")
    remember(story, lamp, prompt="Why does the lamp blink?", summary=summary)
    remember_turns(story, "The login is slow", "Gulls sit on the lamp", "The table has a lantern")
    return story


def embed(story: Story, index: SemanticIndex) -> None:
    while embed_some(index, story.store):
        pass


FILTERS = (NO_FILTERS, Filters(with_wrong=True), Filters(kinds=("observation",)))


def results(story: Story, index: SemanticIndex) -> list[SearchResult]:
    return [look(story, query, f, semantic_index=index) for query in QUERIES for f in FILTERS]


def results_without(story: Story, monkeypatch: pytest.MonkeyPatch) -> list[SearchResult]:
    """Those of searches that hold nothing."""
    with monkeypatch.context() as patch:
        patch.setattr(small_database_cache, "MAX_PASSAGES", -1)
        return results(story, new_index())


def add_a_turn(story: Story) -> None:
    remember(story, "The quay has a lamp", session="s")


def edit_a_title(story: Story) -> None:
    title = {"title": "The lantern of the quay blinks"}
    story.store.edit_memory("observation", 1, title, "person").result()


def mark_as_wrong(story: Story) -> None:
    story.store.mark_wrong("observation", 1, True, "person").result()


def unmark_as_wrong(story: Story) -> None:
    story.store.mark_wrong("observation", 1, False, "person").result()


def mark_a_prompt_as_wrong(story: Story) -> None:
    story.store.mark_wrong("prompt", 1, True, "person").result()


def pin_a_memory(story: Story) -> None:
    story.store.pin_memory("observation", 1, True, "person").result()


def edit_a_summary(story: Story) -> None:
    story.store.edit_memory("summary", 1, {"completed": "The gull was fed"}, "person").result()


def rename_the_project(story: Story) -> None:
    with closing(sqlite3.connect(story.layout.database)) as connection, connection:
        connection.execute("UPDATE projects SET name = 'dock'")


def forget_a_memory(story: Story) -> None:
    selection = Selection(observations=(2,))
    story.store.forget(selection, story.store.preview_forgetting(selection).token).result()


def rebuild_the_index(story: Story) -> None:
    indexing.rebuild(story.store)


def change_without_indexing(story: Story) -> None:
    with closing(sqlite3.connect(story.layout.database)) as connection, connection:
        connection.execute("UPDATE observations SET title = 'A crane' WHERE id = 1")


CHANGES = (add_a_turn, edit_a_title, mark_as_wrong, mark_a_prompt_as_wrong, pin_a_memory,
           edit_a_summary, rename_the_project, forget_a_memory, rebuild_the_index,
           change_without_indexing)  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("embedded", [True, False])
def test_after_a_change_searches_find_what_is_in_the_database(
    library: Story,
    change: Callable[[Story], None],
    embedded: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    index = new_index()
    embed(library, index)
    before = results(library, index)
    assert results(library, index) == before == results_without(library, monkeypatch)
    change(library)
    if embedded:
        embed(library, index)
    after = results(library, index)
    assert after == results_without(library, monkeypatch)
    assert after != before or change is rebuild_the_index
    assert results(library, index) == after


def test_what_is_not_wrong_any_more_is_found_again(
    library: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = new_index()
    before = results(library, index)
    mark_as_wrong(library)
    assert results(library, index) == results_without(library, monkeypatch) != before
    unmark_as_wrong(library)
    assert results(library, index) == results_without(library, monkeypatch) == before


def test_links_between_duplicates_are_held_until_they_change(
    library: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = new_index()
    embed(library, index)
    results(library, index)
    remember(library, "The login is slow", session="t")
    embed(library, index)
    after = results(library, index)
    assert any(row.also for result in after for row in result.rows)
    assert after == results_without(library, monkeypatch)


def test_after_many_changes_searches_find_what_is_in_the_database(
    library: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(small_database_cache, "MAX_CHANGES", 2)
    index = new_index()
    results(library, index)
    remember_turns(library, *(f"Lamp {number}" for number in range(4)))
    assert results(library, index) == results_without(library, monkeypatch)


def test_more_is_read_in_the_background_while_searches_go_on(
    library: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(small_database_cache, "READ_AT_ONCE", 0)
    index = new_index()
    embed(library, index)
    expected = results_without(library, monkeypatch)
    assert results(library, index) == expected  # whether it is read already or not
    index.wait_until_loaded()
    assert library.store.read(index.load().small_database.current) is not None
    assert results(library, index) == expected
    add_a_turn(library)
    assert results(library, index) == results_without(library, monkeypatch)


def test_a_search_that_reads_an_earlier_state_is_not_given_a_later_one(library: Story) -> None:
    index = new_index()
    embed(library, index)
    results(library, index)
    with closing(sqlite3.connect(library.layout.database)) as earlier:
        earlier.execute("BEGIN")
        earlier.execute("SELECT * FROM observations").fetchall()
        add_a_turn(library)
        results(library, index)
        assert index.load().small_database.current(earlier) is None


def test_the_turn_after_a_full_one_stays_when_that_one_changes(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = "\n\n".join(" ".join(f"w{n}x{k}" for k in range(50)) for n in range(MOST_PASSAGES + 50))
    (full,) = remember(story, Observation("change", title="A log", narrative=log))
    remember(story, Observation("change", title="The gull nests on the crane"))
    assert MOST_PASSAGES in story.column("SELECT count(*) FROM passages GROUP BY id >> 10")
    index = new_index()
    embed(story, index)
    results(story, index)
    index.wait_until_loaded()
    assert story.store.read(index.load().small_database.current) is not None
    story.store.edit_memory("observation", full, {"title": "A long log"}, "person").result()
    embed(story, index)
    assert titles(story, "gull", semantic_index=index) == ["The gull nests on the crane"]
    assert results(story, index) == results_without(story, monkeypatch)


def test_the_newest_turn_is_dropped_when_it_is_forgotten(library: Story) -> None:
    index = new_index()  # without vectors: the newest row of the table is that of the newest turn
    assert titles(library, "lantern", semantic_index=index)
    newest = library.column("SELECT max(id) FROM observations")[0]
    selection = Selection(observations=(newest,))
    token = library.store.preview_forgetting(selection, hard=True).token
    library.store.forget(selection, token, hard=True).result()
    assert "The table has a lantern" not in titles(library, "lantern", semantic_index=index)
    held = library.store.read(index.load().small_database.current)
    assert held is not None and "lantern" not in repr(held._texts)


def test_a_large_memory_is_not_kept(library: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(small_database_cache, "MAX_PASSAGES", 2)
    index = new_index()
    assert titles(library, "lamp", semantic_index=index)
    assert library.store.read(index.load().small_database.current) is None


def test_a_search_of_a_small_memory_reads_the_words_and_the_marks_only(library: Story) -> None:
    index = new_index()
    embed(library, index)
    library.store.read_snapshot(index.load().small_database.current)
    statements: list[str] = []
    look(library, "gull login", semantic_index=index)
    library.store.read(lambda connection: connection.set_trace_callback(statements.append))
    look(library, "why does the lamp blink", semantic_index=index)
    tables = ("passages", "indexed_turns", "documents", "twins", "projects", "vectors",
              "index_version", "unindexed", "passage_count", "wrong_documents")  # fmt: skip
    read = [table for table in tables if any(f"FROM {table} " in s + " " for s in statements)]
    assert statements and read == []
