"""What searches keep of a small memory never differs from what is in it."""

import sqlite3
from collections.abc import Callable
from contextlib import closing

import pytest

from claude_mem.index import indexing, passage_cache
from claude_mem.index.vectors.semantic import SemanticIndex
from claude_mem.recall.search import SearchResult
from claude_mem.store.forgetting import Selection
from claude_mem.types import Observation
from tests.embedders import new_index
from tests.remembering import look, remember, remember_turns, titles
from tests.story import Story

QUERIES = ("lamp", "why does the lamp blink again", "gull login", "the quay lantern is slow")


@pytest.fixture
def library(story: Story) -> Story:
    lamp = Observation("bugfix", title="The lamp blinks", narrative="A relay was loose.")
    remember(story, lamp, prompt="Why does the lamp blink?")
    remember_turns(story, "The login is slow", "Gulls sit on the lamp", "The table has a lantern")
    return story


def embed(story: Story, index: SemanticIndex) -> None:
    while index.embed_some(story.store):
        pass


def results(story: Story, index: SemanticIndex) -> list[SearchResult]:
    return [look(story, query, semantic_index=index) for query in QUERIES]


def add_a_turn(story: Story) -> None:
    remember(story, "The quay has a lamp", session="s")


def edit_a_title(story: Story) -> None:
    title = {"title": "The lantern of the quay blinks"}
    story.store.edit_memory("observation", 1, title, "person").result()


def mark_as_wrong(story: Story) -> None:
    story.store.mark_wrong("observation", 1, True, "person").result()


def forget_a_memory(story: Story) -> None:
    selection = Selection(observations=(2,))
    story.store.forget(selection, story.store.preview_forgetting(selection).token).result()


def rebuild_the_index(story: Story) -> None:
    indexing.rebuild(story.store)


def change_without_indexing(story: Story) -> None:
    with closing(sqlite3.connect(story.layout.database)) as connection, connection:
        connection.execute("UPDATE observations SET title = 'A crane' WHERE id = 1")


CHANGES = (add_a_turn, edit_a_title, mark_as_wrong, forget_a_memory, rebuild_the_index,
           change_without_indexing)  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("embedded", [True, False])
def test_after_a_change_searches_find_what_a_new_worker_would(
    library: Story, change: Callable[[Story], None], embedded: bool
) -> None:
    index = new_index()
    embed(library, index)
    before = results(library, index)
    assert results(library, index) == before == results(library, new_index())
    change(library)
    if embedded:
        embed(library, index)
    assert results(library, index) == results(library, new_index())


def test_after_many_changes_searches_find_what_a_new_worker_would(
    library: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passage_cache, "MAX_CHANGES", 2)
    index = new_index()
    results(library, index)
    remember_turns(library, *(f"Lamp {number}" for number in range(4)))
    assert results(library, index) == results(library, new_index())


def test_a_search_that_reads_an_earlier_state_is_not_given_a_later_one(library: Story) -> None:
    index = new_index()
    embed(library, index)
    results(library, index)
    with closing(sqlite3.connect(library.layout.database)) as earlier:
        earlier.execute("BEGIN")
        earlier.execute("SELECT * FROM observations").fetchall()
        add_a_turn(library)
        results(library, index)
        assert index.cached_passages(earlier) is None


def test_a_large_memory_is_not_kept(library: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passage_cache, "MAX_PASSAGES", 2)
    index = new_index()
    assert titles(library, "lamp", semantic_index=index)
    assert library.store.read(index.cached_passages) is None


def test_the_second_search_for_the_same_reads_no_passage(library: Story) -> None:
    index = new_index()
    embed(library, index)
    statements: list[str] = []

    def traced(connection: sqlite3.Connection) -> None:
        connection.set_trace_callback(statements.append)

    library.store.read(traced)
    look(library, "lamp", semantic_index=index)
    assert any("FROM passages" in s or "passages p" in s for s in statements)
    statements.clear()
    look(library, "lamp", semantic_index=index)
    assert statements and not any("passages p" in statement for statement in statements)
