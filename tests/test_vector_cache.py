"""Vectors in memory: what is held, what is dropped, and that reading them holds up nobody."""

import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from claude_mem.index.text.filters import Filters
from claude_mem.index.vectors import blocks, vector_search
from claude_mem.index.vectors.document_vectors import embed_some
from claude_mem.index.vectors.lazy_index import SemanticIndex
from claude_mem.recall.memory_ids import MemoryId
from claude_mem.recall.related import RelatedQuery, related
from claude_mem.recall.search import SearchResult
from claude_mem.store.database import open_reader
from claude_mem.store.forgetting import Selection
from claude_mem.types import Project
from tests.embedders import new_index
from tests.remembering import look, remember, titles
from tests.story import Story

REDIRECT, TABLE, GULLS = "redirect after login", "the sqlite table is slow", "gulls were counted"
TIMEOUT = 60


@pytest.fixture
def library(story: Story) -> Story:
    for number, title in enumerate((REDIRECT, TABLE, GULLS)):
        remember(story, title, session=f"s{number}")
    return story


def fill(story: Story, index: SemanticIndex) -> None:
    while embed_some(index, story.store):
        pass


def held(index: SemanticIndex, kind: str = "turn") -> dict[int, blocks.VectorBlocks]:
    """Returns what is held by project, least recently used first."""
    projects = index.load().cache._projects
    return {project: vectors.blocks for (project, of), vectors in projects.items() if of == kind}


# Codes in memory, vectors on the disk


@pytest.mark.parametrize("filled", [True, False])
def test_codes_select_candidates_and_the_disk_decides(
    library: Story, monkeypatch: pytest.MonkeyPatch, filled: bool
) -> None:
    index = new_index()
    if filled:
        fill(library, index)
    exact = look(library, "a slow login loop", semantic_index=index)
    nearest = related(library.store, RelatedQuery(MemoryId("observation", 1)), index)
    assert held(index)[1].has_rows
    monkeypatch.setattr(vector_search, "MAX_ROWS", 0)
    codes = new_index()
    assert look(library, "a slow login loop", semantic_index=codes) == exact
    assert related(library.store, RelatedQuery(MemoryId("observation", 1)), codes) == nearest
    assert not held(codes)[1].has_rows


def test_vectors_can_be_dropped_while_others_are_added() -> None:
    ids = np.arange(4 * blocks.BLOCK, dtype=np.int64)
    rows = np.ones((len(ids), 64), np.int8)
    for _ in range(10):
        vectors = blocks.VectorBlocks(64)
        with ThreadPoolExecutor(2) as threads:
            added = threads.submit(vectors.add, ids, rows)
            while not len(vectors):
                pass
            threads.submit(vectors.drop_rows).result()
            added.result()
        assert len(vectors) == len(ids) and not vectors.has_rows


def test_of_a_project_with_very_many_passages_the_latest_turns_are_found_by_meaning(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(6):
        remember(story, f"{REDIRECT} {number}", session=f"s{number}")
    index = new_index()
    fill(story, index)
    monkeypatch.setattr(vector_search, "MAX_OF_PROJECT", 2)
    newest = titles(story, "signin circle", semantic_index=index)
    assert set(newest) <= {f"{REDIRECT} {number}" for number in range(3, 6)} and newest
    assert len(titles(story, "redirect", semantic_index=index)) == 6


def test_duplicates_are_linked_where_only_codes_are_held(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_search, "MAX_ROWS", 0)
    index = new_index()
    remember(story, "The login redirects in a loop", session="a")
    fill(story, index)
    remember(story, "Login redirect loop!", session="b")
    remember(story, "slow gulls", session="c")
    fill(story, index)
    assert story.column("SELECT document / 4 FROM twins ORDER BY 1") == [1, 2]


def test_projects_that_were_not_searched_lately_make_room(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("dock", "pier", "quay"):
        remember(story, REDIRECT, "lamp", session=name, project=Project(name, name))
    projects = [story.store.find_project(name) for name in ("dock", "pier", "quay")]
    fill(story, new_index())
    index = new_index()
    titles(story, "signin circle", Filters(project_id=projects[0]), index)
    monkeypatch.setattr(vector_search, "MAX_CODES", 2 * len(held(index)[projects[0]]))
    for project in (*projects, projects[1]):
        assert titles(story, "signin circle", Filters(project_id=project), index) == [REDIRECT]
    assert list(held(index)) == [projects[2], projects[1]]
    assert len(titles(story, "signin circle", semantic_index=index)) == 3


def test_searches_in_a_project_and_in_all_in_turn_read_nothing_again(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("dock", "pier"):
        remember(story, REDIRECT, session=name, project=Project(name, name))
    project = story.store.find_project("dock")
    index = new_index()
    fill(story, index)
    monkeypatch.setattr(vector_search, "MAX_ROWS", 1)
    titles(story, "signin circle", semantic_index=index)
    before = held(index)
    for filters in (Filters(project_id=project), None, Filters(project_id=project)):
        titles(story, "signin circle", filters, index)
    assert {number: id(of) for number, of in held(index).items()} == {
        number: id(of) for number, of in before.items()
    }


def test_a_turn_that_moves_to_another_project_is_found_there_alone(library: Story) -> None:
    index = new_index()
    fill(library, index)
    remember(library, "lamp", session="d", project=Project("dock", "dock"))
    harbor, dock = (library.store.find_project(name) for name in ("harbor", "dock"))
    for project in (harbor, dock):
        titles(library, "signin circle", Filters(project_id=project), index)

    def move(connection: sqlite3.Connection) -> None:
        for table in ("user_prompts", "observations", "session_summaries"):
            column = "id" if table == "user_prompts" else "turn_id"
            connection.execute(f"UPDATE {table} SET project_id = ? WHERE {column} = 1", (dock,))

    library.store.write(move).result()
    assert titles(library, "signin circle", Filters(project_id=dock), index) == [REDIRECT]
    assert titles(library, "signin circle", Filters(project_id=harbor), index) == []


def test_an_observation_that_is_forgotten_takes_no_other_turn_with_it(story: Story) -> None:
    _, second = remember(story, "The lamp blinks", "The table has a crack", session="a")
    remember(story, REDIRECT, session="b")  # the second turn
    index = new_index()
    fill(story, index)
    assert titles(story, "signin circle", semantic_index=index) == [REDIRECT]
    selection = Selection(observations=(second,))
    story.store.forget(selection, story.store.preview_forgetting(selection).token).result()
    assert titles(story, "signin circle", semantic_index=index) == [REDIRECT]


# Large projects are read by a thread of their own


class Gate:
    """Holds up the thread that reads vectors until it is opened."""

    def __init__(self) -> None:
        self.reached, self.opened = threading.Event(), threading.Event()

    def open_database(self, path: Path) -> sqlite3.Connection:
        self.reached.set()
        assert self.opened.wait(TIMEOUT)
        return open_reader(path)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    gate = Gate()
    monkeypatch.setattr(vector_search, "MAX_READ_AT_ONCE", 1)
    yield gate
    gate.opened.set()


def test_a_search_is_answered_by_words_while_vectors_are_being_read(
    library: Story, gate: Gate
) -> None:
    fill(library, new_index())
    index = new_index(open_connection=gate.open_database)
    with ThreadPoolExecutor(3) as threads:
        searches = [
            threads.submit(look, library, text, semantic_index=index)
            for text in ("login", "counted", "login")
        ]
        # All of them are done before a single vector could be read.
        found: list[SearchResult] = [search.result(TIMEOUT) for search in searches]
    assert gate.reached.wait(TIMEOUT)
    assert [[row.title for row in result.rows] for result in found] == [
        [REDIRECT], [GULLS], [REDIRECT],
    ]  # fmt: skip
    assert titles(library, "signin circle", semantic_index=index) == []
    gate.opened.set()
    index.wait_until_loaded()
    assert titles(library, "signin circle", semantic_index=index) == [REDIRECT]


def test_what_changes_while_vectors_are_being_read_is_not_missed(
    library: Story, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(library, new_index())
    index = new_index(open_connection=gate.open_database)
    assert titles(library, "signin circle", semantic_index=index) == []
    assert gate.reached.wait(TIMEOUT)
    library.delete_session(library.session_db_id("s0"))
    remember(library, "password again", session="later")
    gate.opened.set()
    index.wait_until_loaded()
    assert titles(library, "signin circle", semantic_index=index) == ["password again"]


def test_reading_the_vectors_of_one_project_does_not_hold_up_another(
    library: Story, gate: Gate
) -> None:
    remember(library, "password again", session="dock", project=Project("dock", "dock"))
    fill(library, new_index())
    index = new_index(open_connection=gate.open_database)
    harbor, dock = (library.store.find_project(name) for name in ("harbor", "dock"))
    assert titles(library, "signin circle", Filters(project_id=harbor), index) == []
    assert gate.reached.wait(TIMEOUT)
    vector_search.MAX_READ_AT_ONCE = 100  # the fixture restores it
    assert titles(library, "signin circle", Filters(project_id=dock), index) == ["password again"]


# Blocks


small = st.lists(st.integers(-127, 127), min_size=3, max_size=3)


@given(
    steps=st.lists(st.tuples(st.integers(0, 12), st.none() | small), max_size=40),
    question=small,
    count=st.integers(1, 15),
)
def test_vector_blocks_hold_what_was_added_last_and_compare_it_exactly(
    steps: list[tuple[int, list[int] | None]], question: list[int], count: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "BLOCK", 4)
        vectors = blocks.VectorBlocks(3)
        added: dict[int, list[int]] = {}
        for document, row in steps:
            vectors.remove([document])
            added.pop(document, None)
            if row is not None:
                vectors.add(np.array([document]), np.array([row], np.int8))
                added[document] = row
        similarities = vectors.compare(blocks.QueryVector(np.array(question, np.int8)))
    expected = {document: cosine(row, question) for document, row in added.items()}
    best = similarities.best(count)
    assert len(best) == min(count, len(added))
    everything = similarities.best(len(added) + len(steps))
    assert similarities.of(list(added)) == dict(everything)
    for document, value in best:
        assert value == pytest.approx(expected[document], abs=1e-6)
    assert best == sorted(best, key=lambda pair: (-pair[1], pair[0]))


def cosine(row: list[int], other: list[int]) -> float:
    length = (sum(x * x for x in row) * sum(x * x for x in other)) ** 0.5
    return sum(x * y for x, y in zip(row, other, strict=True)) / length if length else 0.0


@given(
    rows=st.lists(small, min_size=1, max_size=30),
    removed=st.sets(st.integers(0, 29)),
    question=small,
    count=st.integers(1, 40),
)
def test_candidates_by_code_are_those_whose_signs_agree_best_with_the_numbers_of_the_query(
    rows: list[list[int]], removed: set[int], question: list[int], count: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "BLOCK", 4)
        vectors = blocks.VectorBlocks(3, has_rows=False)
        vectors.add(np.arange(len(rows)), np.array(rows, np.int8))
        vectors.remove(removed)
        query = blocks.QueryVector(np.array(question, np.int8))
        candidates = vectors.candidates(query, count)
    scores = {
        number: sum(q for q, value in zip(question, row, strict=True) if value > 0)
        for number, row in enumerate(rows)
        if number not in removed
    }
    assert len(candidates.ids) == min(count, len(scores))
    assert dict(zip(candidates.ids.tolist(), candidates.scores.tolist(), strict=True)).items() <= (
        scores.items()
    )
    best = sorted(scores.values(), reverse=True)[:count]
    assert sorted(candidates.scores.tolist(), reverse=True) == best


def test_candidates_by_code_are_not_kept_out_by_rows_that_were_replaced() -> None:
    vectors = blocks.VectorBlocks(3, has_rows=False)
    near, far = np.array([[9, 9, 9]], np.int8), np.array([[9, 9, -9]], np.int8)
    vectors.add(np.arange(1, 5), np.repeat(far, 4, axis=0))
    for _ in range(5 * blocks.CODES_FOR_EACH):
        vectors.remove([0])
        vectors.add(np.array([0]), near)
    candidates = vectors.candidates(blocks.QueryVector(near[0]), 3)
    assert len(candidates.ids) == 3
    assert 0 in candidates.ids


def test_vectors_of_documents_are_read_by_document_and_not_by_model(library: Story) -> None:
    fill(library, new_index())

    def plan(connection: sqlite3.Connection) -> str:
        statements: list[str] = []
        connection.set_trace_callback(statements.append)
        vector_search.stored_vectors(connection, 1, [4])
        connection.set_trace_callback(None)
        rows = connection.execute(f"EXPLAIN QUERY PLAN {statements[0]}")
        return " ".join(row["detail"] for row in rows)

    used = library.store.read(plan)
    assert "document=?" in used and "vectors_by_model" not in used
