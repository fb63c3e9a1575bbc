"""What is found by meaning, what is not, and how vectors follow the memories."""

import asyncio
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from claude_mem.errors import BadInput, EmbedderError, NotFound
from claude_mem.index.text import full_text
from claude_mem.index.text.matches import NO_FILTERS, Filters
from claude_mem.index.vectors import blocks, cache
from claude_mem.index.vectors.semantic import SemanticIndex
from claude_mem.recall.memory_ids import MemoryId, parse_memory_id
from claude_mem.recall.related import RelatedQuery, related
from claude_mem.recall.search import SearchResult
from claude_mem.server import client
from claude_mem.store import Store
from claude_mem.types import Observation, Project
from claude_mem.worker.embedding import IDLE_MS, MANY, RETRY_MS, Embedding
from tests.conftest import Home
from tests.embedders import Concepts, broken, meaning_by
from tests.payloads import prompt, stop
from tests.remembering import distil_as, look, remember, titles
from tests.story import Story

REDIRECT, TABLE, GULLS = "redirect after login", "the sqlite table is slow", "gulls were counted"


@pytest.fixture
def library(story: Story) -> Story:
    for number, title in enumerate((REDIRECT, TABLE, GULLS)):
        remember(story, title, session=f"s{number}")
    return story


def fill(story: Story, semantic_index: SemanticIndex) -> None:
    while semantic_index.embed_some(story.store):
        pass


def models(story: Story) -> list[str | None]:
    """Whose vector each document has, in the order of the documents."""
    return story.column(
        "SELECT m.id FROM vectors v LEFT JOIN vector_models m ON m.number = v.model"
        " ORDER BY v.document"
    )


# What is found


def test_a_memory_is_found_by_what_it_means_where_no_word_is_shared(library: Story) -> None:
    assert titles(library, "signin circle") == []
    assert titles(library, "signin circle", semantic_index=meaning_by()) == [REDIRECT]


def test_what_shares_words_and_meaning_comes_before_what_shares_only_one(story: Story) -> None:
    for number, title in enumerate(
        ("latency of storage", "the slow database", "slow gull", "the rope")
    ):
        remember(story, title, session=f"s{number}")
    best, *others = titles(story, "slow database", semantic_index=meaning_by())
    assert best == "the slow database"
    assert sorted(others) == ["latency of storage", "slow gull"]


def test_nothing_is_found_where_nothing_means_the_like(library: Story) -> None:
    for query in ("kubernetes", "lantern", "why is the lantern dark"):
        assert titles(library, query, semantic_index=meaning_by()) == []


def test_a_question_whose_words_mean_nothing_to_the_model_is_asked_by_words(
    library: Story,
) -> None:
    assert titles(library, "counted", semantic_index=meaning_by()) == [GULLS]


def test_a_phrase_and_an_exclusion_find_nothing_by_meaning_alone(library: Story) -> None:
    assert titles(library, '"signin circle"', semantic_index=meaning_by()) == []
    assert titles(library, "signin circle -gulls", semantic_index=meaning_by()) == []


def test_a_filter_holds_back_what_is_alike(story: Story) -> None:
    remember(story, Observation("bugfix", REDIRECT), session="a")
    remember(story, Observation("decision", "password again"), session="b")
    remember(story, REDIRECT, session="c", project=Project("dock", "dock"))
    by = meaning_by()
    dock = Filters(project_id=story.store.find_project("dock"))
    assert titles(story, "signin circle", Filters(types=("decision",)), by) == ["password again"]
    assert titles(story, "signin circle", dock, by) == [REDIRECT]
    assert len(titles(story, "signin circle", semantic_index=by)) == 3


def test_few_that_pass_a_filter_are_found_behind_many_that_do_not(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("claude_mem.recall.ranking.CANDIDATES", 4)
    remember(story, Observation("decision", "password again"), session="first")
    remember(story, *(Observation("change", REDIRECT) for _ in range(40)), session="second")
    only = Filters(types=("decision",))
    assert titles(story, "signin circle", only, meaning_by()) == ["password again"]


def test_equally_good_memories_stand_in_the_order_of_their_age(story: Story) -> None:
    """The newer first; of one moment, the one with the lower id."""
    moment = datetime(2025, 10, 10, tzinfo=UTC)
    for session, at in (("a", moment), ("b", moment), ("c", moment + timedelta(days=1))):
        remember(story, REDIRECT, session=session, at=at)
    found = look(story, "signin circle", semantic_index=meaning_by())
    assert [str(row.id) for row in found.rows] == ["3", "1", "2"]
    assert len({row.score for row in found.rows}) == 1


def test_what_stands_beside_what_is_near_is_nearer_than_what_stands_alone(story: Story) -> None:
    remember(story, "password again", session="a")
    remember(story, "password again", REDIRECT, session="b")
    found = look(story, "signin circle", semantic_index=meaning_by())
    assert [str(row.id) for row in found.rows][-1] == "1"


def test_the_order_is_that_of_the_scores_and_stays(library: Story) -> None:
    remember(library, "login", "slow", session="more")
    by = meaning_by()
    fill(library, by)
    first = look(library, "a slow login loop", semantic_index=by)
    assert [row.score for row in first.rows] == sorted((r.score for r in first.rows), reverse=True)
    assert look(library, "a slow login loop", semantic_index=meaning_by()) == first


# What says the same


def same(story: Story) -> list[tuple[int, int]]:
    rows = story.rows(
        "SELECT document / 4 AS a, twin / 4 AS b FROM twins WHERE document < twin ORDER BY a, b"
    )
    return [(row["a"], row["b"]) for row in rows]


def test_observations_that_say_the_same_are_linked_and_shown_once(story: Story) -> None:
    remember(story, "The login redirects in a loop", session="a")
    remember(story, "Login redirect loop!", session="b")
    remember(story, "The login is slow", session="c")
    by = meaning_by()
    fill(story, by)
    assert same(story) == [(1, 2)]
    for semantic_index in (by, None):
        rows = look(story, "login redirect", semantic_index=semantic_index).rows
        assert [(str(row.id), [str(other) for other in row.also]) for row in rows] in (
            [("2", ["1"]), ("3", [])],
            [("1", ["2"]), ("3", [])],
        )
    assert story.column("SELECT count(*) FROM observations") == [3]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The login of pier 12 loops", "The login of pier 13 loops"),
        ("The login loops", "The login of every customer of the dock in the north loops"),
    ],
)
def test_what_differs_in_a_number_or_in_most_words_is_not_the_same(
    story: Story, one: str, other: str
) -> None:
    remember(story, one, session="a")
    remember(story, other, session="b")
    fill(story, meaning_by())
    assert same(story) == []


def test_neither_another_project_nor_a_prompt_is_a_twin(story: Story) -> None:
    remember(story, "The login loops", session="a", prompt="The login loops")
    remember(story, "The login loops", session="b", project=Project("dock", "dock"))
    fill(story, meaning_by())
    assert same(story) == []


@pytest.mark.parametrize("chunk", [1, 2, 10])
def test_twins_are_the_same_in_whatever_order_they_are_read(story: Story, chunk: int) -> None:
    for number in range(4):
        remember(story, "The login loops", session=f"s{number}")
    by = meaning_by()
    while by.embed_some(story.store, chunk):
        pass
    assert same(story) == [(a, b) for a in range(1, 5) for b in range(a + 1, 5)]
    (row,) = look(story, "login", semantic_index=by).rows
    assert len(row.also) == 3


def test_a_revised_or_deleted_observation_loses_its_twins_and_the_other_stays(
    story: Story,
) -> None:
    for name in ("a", "b", "c"):
        remember(story, "The login loops", session=name)
    by = meaning_by()
    fill(story, by)
    story.tell(stop("again", session_id="c", prompt_id=f"c-{story.now}"))
    distil_as(story, ["The lantern is dark"])
    story.delete_session(story.session_db_id("a"))
    assert same(story) == []
    assert titles(story, "login", semantic_index=by) == ["The login loops"]


def test_a_filter_that_holds_back_the_one_shows_the_other(story: Story) -> None:
    for name in ("a", "b"):
        remember(story, "The login loops", session=name)
    fill(story, meaning_by())
    only = Filters(session_id=story.session_db_id("a"))
    assert [(str(row.id), row.also) for row in look(story, "login", only).rows] == [("1", ())]


# More like this


def nearest(
    story: Story, anchor: str, filters: Filters = NO_FILTERS, limit: int = 10
) -> SearchResult:
    memory_id = parse_memory_id(anchor)
    assert memory_id is not None
    return related(story.store, RelatedQuery(memory_id, filters, limit), meaning_by())


def test_related_memories_are_those_that_mean_the_like(library: Story) -> None:
    remember(library, "password again", session="more")
    result = nearest(library, "1")
    assert [row.title for row in result.rows] == ["password again"]
    assert result.rows[0].score == pytest.approx(1, abs=0.01)
    assert [str(row.id) for row in nearest(library, "4").rows] == ["1"]


def test_related_memories_stay_within_the_project_and_pass_the_filters(story: Story) -> None:
    remember(story, REDIRECT, session="a", prompt="login loop")
    remember(story, REDIRECT, session="b", project=Project("dock", "dock"))
    dock = story.store.find_project("dock")
    assert [str(row.id) for row in nearest(story, "1").rows] == ["P1"]
    assert [str(row.id) for row in nearest(story, "P1").rows] == ["1"]
    assert nearest(story, "1", Filters(kinds=("observation",))).rows == ()
    in_dock = nearest(story, "1", Filters(project_id=dock)).rows
    assert [str(row.id) for row in in_dock] == ["2"]


def test_related_says_when_there_is_more_and_when_there_is_no_such_memory(story: Story) -> None:
    remember(story, *(f"login {number}" for number in range(4)))
    assert nearest(story, "1", limit=2).has_more
    assert not nearest(story, "1", limit=3).has_more
    with pytest.raises(NotFound):
        nearest(story, "77")


def test_without_a_semantic_index_nothing_is_related(story: Story) -> None:
    remember(story, "login")
    with pytest.raises(BadInput, match="CLAUDE_MEM_EMBEDDER"):
        related(story.store, RelatedQuery(MemoryId("observation", 1)), None)


# Vectors follow the memories


def test_a_memory_is_found_by_meaning_before_its_vector_is_stored(library: Story) -> None:
    by = meaning_by()
    assert titles(library, "signin circle", semantic_index=by) == [REDIRECT]
    remember(library, "password", session="new")
    assert "password" in titles(library, "signin circle", semantic_index=by)
    assert models(library) == [None] * 4


def test_too_many_new_memories_wait_for_their_vectors(library: Story) -> None:
    by = meaning_by(read_ahead=0)
    assert titles(library, "signin circle", semantic_index=by) == []
    fill(library, by)
    assert titles(library, "signin circle", semantic_index=by) == [REDIRECT]


def test_every_document_gets_a_vector_and_no_second_one(library: Story) -> None:
    embedder = Concepts()
    by = meaning_by(embedder)
    fill(library, by)
    assert models(library) == ["concepts"] * 3
    assert [embedder.encoded.count(title) for title in (REDIRECT, TABLE, GULLS)] == [1, 1, 1]
    assert by.progress(library.store) == (3, 3)
    assert by.embed_some(library.store) == 0


@pytest.mark.parametrize("filled", [True, False])
def test_a_revised_memory_is_not_found_by_what_it_meant_before(story: Story, filled: bool) -> None:
    by = meaning_by()
    remember(story, REDIRECT, session="s")
    assert titles(story, "signin circle", semantic_index=by) == [REDIRECT]
    if filled:
        fill(story, by)
    story.tell(stop("again", session_id="s", prompt_id=f"s-{story.now}"))
    distil_as(story, ["latency of storage"])
    assert titles(story, "signin circle", semantic_index=by) == []
    assert titles(story, "sluggish database", semantic_index=by) == ["latency of storage"]


@pytest.mark.parametrize("filled", [True, False])
def test_a_deleted_memory_takes_its_vector_with_it(library: Story, filled: bool) -> None:
    by = meaning_by()
    if filled:
        fill(library, by)
    assert titles(library, "signin circle", semantic_index=by) == [REDIRECT]
    library.delete_session(library.session_db_id("s0"))
    assert titles(library, "signin circle", semantic_index=by) == []
    assert len(models(library)) == 2
    assert len(by._load().cache._projects[1].compare(asked(by, "login")).best(10)) == 2


def asked(by: SemanticIndex, text: str) -> blocks.QueryVector:
    return blocks.QueryVector(by._load().cache.encode([text])[0])


def test_what_another_process_writes_is_found(library: Story) -> None:
    by = meaning_by()
    fill(library, by)
    assert titles(library, "signin circle", semantic_index=by) == [REDIRECT]
    with Store(library.layout.database) as other:
        full_text.keep_current(other)
        session = library.session_db_id("s0")
        other.write(
            lambda c: c.execute("DELETE FROM sdk_sessions WHERE id = ?", [session])
        ).result()
        while meaning_by().embed_some(other):
            pass
    assert titles(library, "signin circle", semantic_index=by) == []


def test_a_memory_that_changes_while_it_is_read_keeps_no_vector_of_its_old_text(
    library: Story,
) -> None:
    class Slow(Concepts):
        def encode(self, texts: Any) -> Any:
            made = super().encode(texts)
            with closing(sqlite3.connect(library.layout.database, timeout=10)) as c, c:
                c.execute("UPDATE observations SET title = 'gull' WHERE id = 1")
            library.store.write(full_text.refresh).result()
            return made

    by = meaning_by(Slow())
    assert by.embed_some(library.store, chunk=10) == 3
    assert models(library) == [None, "concepts", "concepts"]


def test_a_rebuilt_index_has_its_vectors_made_anew(library: Story) -> None:
    by = meaning_by()
    fill(library, by)
    full_text.rebuild(library.store)
    assert models(library) == [None] * 3
    fill(library, by)
    assert models(library) == ["concepts"] * 3
    assert titles(library, "signin circle", semantic_index=by) == [REDIRECT]


def test_vectors_that_were_made_for_an_index_that_is_gone_are_dropped(library: Story) -> None:
    class Rebuilding(Concepts):
        def encode(self, texts: Any) -> Any:
            full_text.rebuild(library.store)
            return super().encode(texts)

    meaning_by(Rebuilding()).embed_some(library.store)
    assert models(library) == [None] * 3


# Another model


def test_with_another_model_only_its_own_vectors_count(library: Story) -> None:
    old, new = meaning_by(), meaning_by(Concepts("other", shift=20), read_ahead=0)
    fill(library, old)
    assert titles(library, "signin circle", semantic_index=new) == []
    assert new.progress(library.store) == (0, 3)
    assert new.embed_some(library.store, chunk=2) == 2
    assert new.progress(library.store) == (2, 3)
    assert old.progress(library.store) == (1, 3)
    fill(library, new)
    assert models(library) == ["other"] * 3
    assert titles(library, "signin circle", semantic_index=new) == [REDIRECT]
    assert titles(library, "login", semantic_index=old) == [REDIRECT]


def test_a_model_whose_vectors_became_longer_reads_everything_again(library: Story) -> None:
    class Longer(Concepts):
        dimension = 96

    fill(library, meaning_by())
    longer = meaning_by(Longer())
    fill(library, longer)
    assert titles(library, "signin circle", semantic_index=longer) == [REDIRECT]
    assert set(library.column("SELECT length(vector) FROM vectors")) == {96}


def test_a_model_that_cannot_be_had_leaves_the_search_by_words_and_says_why(
    library: Story,
) -> None:
    found = look(library, "login", semantic_index=broken())
    assert [row.title for row in found.rows] == [REDIRECT]
    assert found.embedder_error == "the model is not there"


def test_an_idle_model_is_given_back_and_comes_again(library: Story) -> None:
    now = 1_000
    by = meaning_by(clock=lambda: now)
    assert titles(library, "signin circle", semantic_index=by) == [REDIRECT]
    assert [by.release_if_idle(since_ms=since) for since in (1_000, 1_001, 1_002)] == [
        False, True, False,
    ]  # fmt: skip
    assert titles(library, "signin circle", semantic_index=by) == [REDIRECT]


# Many vectors


def test_of_many_vectors_the_signs_choose_and_the_table_decides(
    library: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    by = meaning_by()
    fill(library, by)
    exact = look(library, "a slow login loop", semantic_index=by)
    monkeypatch.setattr(cache, "MAX_DOCUMENTS", 2)
    few = meaning_by()
    assert look(library, "a slow login loop", semantic_index=few) == exact
    assert few._load().cache._projects[1].signs_only


def test_projects_that_nobody_asked_about_lately_make_room(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("dock", "pier", "quay"):
        remember(story, REDIRECT, "lamp", session=name, project=Project(name, name))
    projects = [story.store.find_project(name) for name in ("dock", "pier", "quay")]
    monkeypatch.setattr(cache, "MAX_DOCUMENTS", 4)
    by = meaning_by()
    fill(story, by)
    for project in (*projects, projects[1]):
        assert titles(story, "signin circle", Filters(project_id=project), by) == [REDIRECT]
    assert list(by._load().cache._projects) == [projects[2], projects[1]]
    assert len(titles(story, "signin circle", semantic_index=by)) == 3


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


# In the background


def background(story: Story, by: SemanticIndex | None) -> Embedding:
    return Embedding(story.layout, story.store, by, lambda: story.now)


def run(embedding: Embedding) -> None:
    async def once() -> None:
        embedding.start_if_due()
        await embedding.settle()

    asyncio.run(once())


def test_few_memories_do_not_load_a_model_and_many_do(story: Story) -> None:
    by = meaning_by()
    embedding = background(story, by)
    remember(story, *("lamp" for _ in range(MANY - 1)))
    run(embedding)
    assert not by.is_loaded
    remember(story, "gull")
    run(embedding)
    assert by.progress(story.store) == (MANY, MANY)


def test_a_model_that_is_loaded_reads_every_memory_at_once(library: Story) -> None:
    by = meaning_by()
    titles(library, "login", semantic_index=by)
    run(background(library, by))
    assert models(library) == ["concepts"] * 3


def test_a_changed_model_reads_everything_in_the_background(story: Story) -> None:
    remember(story, *("lamp" for _ in range(MANY)))
    fill(story, meaning_by())
    run(background(story, meaning_by(Concepts("other"))))
    assert set(models(story)) == {"other"}


def test_a_model_that_fails_is_told_once_and_tried_again_later(story: Story) -> None:
    remember(story, *("lamp" for _ in range(MANY)))
    tries = 0

    def load() -> Concepts:
        nonlocal tries
        tries += 1
        raise EmbedderError("no model today")

    embedding = background(story, SemanticIndex("broken", load))
    run(embedding)
    run(embedding)
    assert tries == 1
    assert "no model today" in story.trouble()
    story.now += RETRY_MS
    run(embedding)
    assert tries == 2
    assert story.trouble() == ""


def test_an_idle_worker_gives_the_model_back(library: Story) -> None:
    by = meaning_by(clock=lambda: library.now)
    embedding = background(library, by)
    titles(library, "login", semantic_index=by)
    library.now += IDLE_MS
    embedding.release_if_idle()
    assert by.is_loaded
    library.now += 1
    embedding.release_if_idle()
    assert not by.is_loaded


def test_without_an_embedder_nothing_happens(library: Story) -> None:
    embedding = background(library, None)
    run(embedding)
    embedding.release_if_idle()
    embedding.stop()
    assert models(library) == [None] * 3


# The whole


def test_a_worker_loads_numpy_with_the_first_question_and_not_before(home: Home) -> None:
    home.start_worker()
    home.hook(prompt("The login page redirects in a circle"))
    home.hook(stop("The cookie was written for another domain."))
    home.wait_settled()
    maps = Path(f"/proc/{home.worker_pid()}/maps")
    assert "site-packages/numpy" not in maps.read_text()
    answer = client.ask_worker(home.layout, "/api/search?query=login")
    assert isinstance(answer, dict) and answer["results"]
    assert "site-packages/numpy" in maps.read_text()
