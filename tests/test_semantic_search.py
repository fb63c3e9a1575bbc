"""Search by meaning, duplicates, related memories, and how vectors follow the memories."""

import asyncio
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from claude_mem.errors import BadInput, EmbedderError, NotFound
from claude_mem.index import indexing
from claude_mem.index.embedders import embedder
from claude_mem.index.embedders.endpoint import Endpoint
from claude_mem.index.text.filters import NO_FILTERS, Filters
from claude_mem.index.vectors import lazy_index
from claude_mem.index.vectors.document_vectors import embed_some
from claude_mem.index.vectors.lazy_index import SemanticIndex
from claude_mem.recall.memory_ids import MemoryId, parse_memory_id
from claude_mem.recall.parsed_query import parse_query
from claude_mem.recall.ranking import READ_OF_FEW_WORDS, SEARCH, Depth, collect
from claude_mem.recall.related import RelatedQuery, related
from claude_mem.recall.search import SearchResult
from claude_mem.recall.weights import WEIGHTS
from claude_mem.server import client
from claude_mem.store import Store
from claude_mem.types import Observation, Project
from claude_mem.worker.embedding import IDLE_MS, MIN_WAITING_TO_LOAD_MODEL, RETRY_MS, Embedding
from tests.conftest import Home
from tests.embedders import Concepts, broken, embedding_server, new_index
from tests.payloads import prompt, stop
from tests.remembering import distil_as, look, remember, remember_turns, titles
from tests.story import Story

REDIRECT, TABLE, GULLS = "redirect after login", "the sqlite table is slow", "gulls were counted"


@pytest.fixture
def library(story: Story) -> Story:
    for number, title in enumerate((REDIRECT, TABLE, GULLS)):
        remember(story, title, session=f"s{number}")
    return story


def fill(story: Story, index: SemanticIndex) -> None:
    while embed_some(index, story.store):
        pass


def models(story: Story) -> list[str | None]:
    """The model of each turn's vectors, by turn."""
    return story.column(
        "SELECT m.id FROM vectors v LEFT JOIN vector_models m ON m.number = v.model"
        " WHERE v.document % 4 = 3 ORDER BY v.document"
    )


# What is found


def test_a_memory_is_found_by_what_it_means_where_no_word_is_shared(library: Story) -> None:
    assert titles(library, "signin circle") == []
    assert titles(library, "signin circle", semantic_index=new_index()) == [REDIRECT]


def test_the_first_search_of_a_large_memory_is_by_words_and_loads_the_model(
    library: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = new_index()
    fill(library, new_index())
    monkeypatch.setattr(lazy_index, "LARGE_MEMORY", 3)
    assert titles(library, "signin circle", semantic_index=index) == []
    index.wait_until_loaded()
    assert titles(library, "signin circle", semantic_index=index) == [REDIRECT]


def test_what_shares_words_and_meaning_comes_before_what_shares_only_one(story: Story) -> None:
    for number, title in enumerate(
        ("latency of storage", "the slow database", "slow gull", "the rope")
    ):
        remember(story, title, session=f"s{number}")
    best, *rest = titles(story, "slow database", semantic_index=new_index())
    assert best == "the slow database"
    assert sorted(rest) == ["latency of storage", "slow gull"]


def test_nothing_is_found_where_nothing_means_the_like(library: Story) -> None:
    for query in ("kubernetes", "lantern", "why is the lantern dark"):
        assert titles(library, query, semantic_index=new_index()) == []


def test_a_question_whose_words_mean_nothing_to_the_model_is_asked_by_words(
    library: Story,
) -> None:
    assert titles(library, "counted", semantic_index=new_index()) == [GULLS]


def test_a_japanese_question_about_english_sessions_is_compared_by_its_english_words(
    library: Story,
) -> None:
    question = "なぜ login の redirect は失敗しましたか"
    embedder = Concepts()
    index = new_index(embedder)
    result = look(library, question, semantic_index=index)
    assert [row.title for row in result.rows] == [REDIRECT]
    assert ["login", "redirect"] in [text.split() for text in embedder.encoded]
    assert question not in embedder.encoded


def test_a_japanese_question_about_japanese_sessions_keeps_its_words(library: Story) -> None:
    remember(library, "login が失敗しました", session="ja")
    embedder = Concepts()
    rows = look(library, "なぜ login は失敗しましたか", semantic_index=new_index(embedder)).rows
    assert rows[0].title == "login が失敗しました"
    assert "なぜ login は失敗しましたか" in embedder.encoded


def test_a_phrase_and_an_exclusion_find_nothing_by_meaning_alone(library: Story) -> None:
    assert titles(library, '"signin circle"', semantic_index=new_index()) == []
    assert titles(library, "signin circle -gulls", semantic_index=new_index()) == []


def test_a_filter_holds_back_what_is_alike(story: Story) -> None:
    remember(story, Observation("bugfix", REDIRECT), session="a")
    remember(story, Observation("decision", "password again"), session="b")
    remember(story, REDIRECT, session="c", project=Project("dock", "dock"))
    index = new_index()
    dock = Filters(project_id=story.store.find_project("dock"))
    assert titles(story, "signin circle", Filters(types=("decision",)), index) == ["password again"]
    assert titles(story, "signin circle", dock, index) == [REDIRECT]
    assert len(titles(story, "signin circle", semantic_index=index)) == 3


def test_few_that_pass_a_filter_are_found_behind_many_that_do_not(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "claude_mem.recall.ranking.SEARCH", Depth(by_words=4, by_vector=4, rescored=40)
    )
    remember(story, Observation("decision", "password again"), session="first")
    for _ in range(40):
        remember(story, Observation("change", REDIRECT), session="second")
    only = Filters(types=("decision",))
    assert titles(story, "signin circle", only, new_index()) == ["password again"]


@pytest.mark.parametrize(
    ("query", "read"),
    [("gulls pier harbour", READ_OF_FEW_WORDS), ("which gulls at which pier?", SEARCH.read)],
)
def test_fewer_passages_are_compared_with_keywords_than_with_a_question(
    story: Story, query: str, read: int
) -> None:
    for number in range(SEARCH.read):
        remember(story, f"gulls of pier {number}", session=f"gulls{number}")

    def work(connection: sqlite3.Connection) -> int:
        parsed = parse_query(query, datetime.now(UTC))
        return len(collect(connection, parsed, Filters(), 3, WEIGHTS).passages)

    assert story.store.read(work) == read


@pytest.mark.parametrize(("by_words", "is_first"), [(4, False), (32, True)])
def test_a_passage_that_others_outrank_by_words_is_compared_by_meaning(
    story: Story, monkeypatch: pytest.MonkeyPatch, by_words: int, is_first: bool
) -> None:
    depth = Depth(by_words=by_words, by_vector=1)
    monkeypatch.setattr("claude_mem.recall.ranking.SEARCH", depth)
    best = f"{REDIRECT} while the gulls on the pier of the northern harbour were counted"
    for number in range(20):
        remember(story, f"gulls of pier {number}", session=f"gulls{number}")
        remember(story, REDIRECT, session=f"near{number}")
    remember(story, best, session="best")
    first = look(story, "gulls signin circle", limit=1, semantic_index=new_index()).rows[0]
    assert (first.title == best) is is_first


def test_equal_scores_are_ordered_by_age(story: Story) -> None:
    """Newer first; at the same time, higher id first."""
    moment = datetime(2025, 10, 10, tzinfo=UTC)
    for session, at in (("a", moment), ("b", moment), ("c", moment + timedelta(days=1))):
        remember(story, REDIRECT, session=session, at=at)
    result = look(story, "signin circle", semantic_index=new_index())
    assert [str(row.id) for row in result.rows] == ["3", "2", "1"]
    assert len({row.score for row in result.rows}) == 1


def test_the_neighbour_of_a_near_memory_is_nearer_than_one_without(story: Story) -> None:
    remember(story, "password", session="a")
    remember_turns(story, REDIRECT, "password", session="b")
    result = look(story, "the signin went in a circle again", semantic_index=new_index())
    assert [str(row.id) for row in result.rows] == ["2", "3", "1"]


def test_the_order_is_that_of_the_scores_and_stays(library: Story) -> None:
    remember(library, "login", "slow", session="more")
    index = new_index()
    fill(library, index)
    first = look(library, "a slow login loop", semantic_index=index)
    assert [row.score for row in first.rows] == sorted((r.score for r in first.rows), reverse=True)
    assert look(library, "a slow login loop", semantic_index=new_index()) == first


# Duplicates


def duplicates(story: Story) -> list[tuple[int, int]]:
    rows = story.rows(
        "SELECT document / 4 AS a, twin / 4 AS b FROM twins WHERE document < twin ORDER BY a, b"
    )
    return [(row["a"], row["b"]) for row in rows]


def test_observations_that_say_the_same_are_linked_and_shown_once(story: Story) -> None:
    remember(story, "The login redirects in a loop", session="a")
    remember(story, "Login redirect loop!", session="b")
    remember(story, "The login is slow", session="c")
    index = new_index()
    fill(story, index)
    assert duplicates(story) == [(1, 2)]
    for used in (index, None):
        rows = look(story, "login redirect", semantic_index=used).rows
        assert [(str(row.id), [str(other) for other in row.also]) for row in rows] in (
            [("2", ["1"]), ("3", [])],
            [("1", ["2"]), ("3", [])],
        )
    assert story.column("SELECT count(*) FROM observations") == [3]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("The login of pier 12 loops", "The login of pier 13 loops"),
        ("The login loops", "The login of every customer of the dock in the north loops"),
    ],
)
def test_what_differs_in_a_number_or_in_most_words_is_not_the_same(
    story: Story, first: str, second: str
) -> None:
    remember(story, first, session="a")
    remember(story, second, session="b")
    fill(story, new_index())
    assert duplicates(story) == []


def test_neither_another_project_nor_a_prompt_is_a_duplicate(story: Story) -> None:
    remember(story, "The login loops", session="a", prompt="The login loops")
    remember(story, "The login loops", session="b", project=Project("dock", "dock"))
    fill(story, new_index())
    assert duplicates(story) == []


@pytest.mark.parametrize("chunk", [1, 2, 10])
def test_duplicates_do_not_depend_on_the_size_of_a_chunk(story: Story, chunk: int) -> None:
    for number in range(4):
        remember(story, "The login loops", session=f"s{number}")
    index = new_index()
    while embed_some(index, story.store, chunk):
        pass
    assert duplicates(story) == [(a, b) for a in range(1, 5) for b in range(a + 1, 5)]
    (row,) = look(story, "login", semantic_index=index).rows
    assert len(row.also) == 3


def test_a_revised_or_deleted_observation_loses_its_duplicates_and_the_other_stays(
    story: Story,
) -> None:
    for name in ("a", "b", "c"):
        remember(story, "The login loops", session=name)
    index = new_index()
    fill(story, index)
    story.tell(stop("again", session_id="c", prompt_id=f"c-{story.now}"))
    distil_as(story, ["The lantern is dark"])
    story.delete_session(story.session_db_id("a"))
    assert duplicates(story) == []
    assert titles(story, "login", semantic_index=index) == ["The login loops"]


def test_a_filter_that_holds_back_the_one_shows_the_other(story: Story) -> None:
    for name in ("a", "b"):
        remember(story, "The login loops", session=name)
    fill(story, new_index())
    only = Filters(session_id=story.session_db_id("a"))
    assert [(str(row.id), row.also) for row in look(story, "login", only).rows] == [("1", ())]


# More like this


def nearest(
    story: Story, anchor: str, filters: Filters = NO_FILTERS, limit: int = 10
) -> SearchResult:
    memory_id = parse_memory_id(anchor)
    assert memory_id is not None
    return related(story.store, RelatedQuery(memory_id, filters, limit), new_index())


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
    remember(story, Observation("bugfix", "login loop"), session="c")
    assert [str(row.id) for row in nearest(story, "1").rows] == ["3"]
    assert [str(row.id) for row in nearest(story, "P1").rows] == ["1", "3"]
    assert nearest(story, "1", Filters(types=("decision",))).rows == ()
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
    index = new_index()
    assert titles(library, "signin circle", semantic_index=index) == [REDIRECT]
    remember(library, "password", session="new")
    assert "password" in titles(library, "signin circle", semantic_index=index)
    assert models(library) == [None] * 4


def test_too_many_new_memories_wait_for_their_vectors(library: Story) -> None:
    index = new_index(read_ahead=0)
    assert titles(library, "signin circle", semantic_index=index) == []
    fill(library, index)
    assert titles(library, "signin circle", semantic_index=index) == [REDIRECT]


def test_every_document_gets_a_vector_and_no_second_one(library: Story) -> None:
    embedder = Concepts()
    index = new_index(embedder)
    fill(library, index)
    assert models(library) == ["concepts"] * 3
    assert [embedder.encoded.count(title) for title in (REDIRECT, TABLE, GULLS)] == [2, 2, 2]
    assert index.progress(library.store) == (6, 6)  # an observation and its turn
    assert embed_some(index, library.store) == 0


@pytest.mark.parametrize("filled", [True, False])
def test_a_revised_memory_is_not_found_by_what_it_meant_before(story: Story, filled: bool) -> None:
    index = new_index()
    remember(story, REDIRECT, session="s")
    assert titles(story, "signin circle", semantic_index=index) == [REDIRECT]
    if filled:
        fill(story, index)
    story.tell(stop("again", session_id="s", prompt_id=f"s-{story.now}"))
    distil_as(story, ["latency of storage"])
    assert titles(story, "signin circle", semantic_index=index) == []
    assert titles(story, "sluggish database", semantic_index=index) == ["latency of storage"]


@pytest.mark.parametrize("filled", [True, False])
def test_a_deleted_memory_takes_its_vector_with_it(library: Story, filled: bool) -> None:
    index = new_index()
    if filled:
        fill(library, index)
    assert titles(library, "signin circle", semantic_index=index) == [REDIRECT]
    library.delete_session(library.session_db_id("s0"))
    assert titles(library, "signin circle", semantic_index=index) == []
    assert len(models(library)) == 2
    for kind in ("turn", "observation"):
        assert len(near_login(library, index, kind)) == 2


def near_login(story: Story, index: SemanticIndex, kind: str) -> list[tuple[int, float]]:
    return story.store.read(
        lambda c: index.load().vector_search.similarities(c, "login", None, kind).best(10)
    )


def test_what_another_process_writes_is_found(library: Story) -> None:
    index = new_index()
    fill(library, index)
    assert titles(library, "signin circle", semantic_index=index) == [REDIRECT]
    with Store(library.layout.database) as other:
        other.run_before_commit(indexing.refresh)
        session = library.session_db_id("s0")
        other.write(
            lambda c: c.execute("DELETE FROM sdk_sessions WHERE id = ?", [session])
        ).result()
        while embed_some(new_index(), other):
            pass
    assert titles(library, "signin circle", semantic_index=index) == []


def test_a_memory_that_changes_while_it_is_read_keeps_no_vector_of_its_old_text(
    library: Story,
) -> None:
    class Slow(Concepts):
        def encode(self, texts: Any) -> Any:
            vectors = super().encode(texts)
            with closing(sqlite3.connect(library.layout.database, timeout=10)) as c, c:
                c.execute("UPDATE observations SET title = 'gull' WHERE id = 1")
            library.store.write(indexing.refresh).result()
            return vectors

    index = new_index(Slow())
    assert embed_some(index, library.store, chunk=10) == 6
    assert models(library) == [None, "concepts", "concepts"]


def test_a_rebuilt_index_has_its_vectors_made_anew(library: Story) -> None:
    index = new_index()
    fill(library, index)
    indexing.rebuild(library.store)
    assert models(library) == [None] * 3
    fill(library, index)
    assert models(library) == ["concepts"] * 3
    assert titles(library, "signin circle", semantic_index=index) == [REDIRECT]


def test_vectors_that_were_made_for_an_index_that_is_gone_are_dropped(library: Story) -> None:
    class Rebuilding(Concepts):
        def encode(self, texts: Any) -> Any:
            indexing.rebuild(library.store)
            return super().encode(texts)

    embed_some(new_index(Rebuilding()), library.store)
    assert models(library) == [None] * 3


# Another model


def test_with_another_model_only_its_own_vectors_count(library: Story) -> None:
    old, new = new_index(), new_index(Concepts("other", shift=20), read_ahead=0)
    fill(library, old)
    assert titles(library, "signin circle", semantic_index=new) == []
    assert new.progress(library.store) == (0, 6)
    assert embed_some(new, library.store, chunk=2) == 2
    assert new.progress(library.store) == (2, 6)
    assert old.progress(library.store) == (4, 6)
    fill(library, new)
    assert models(library) == ["other"] * 3
    assert titles(library, "signin circle", semantic_index=new) == [REDIRECT]
    assert titles(library, "login", semantic_index=old) == [REDIRECT]


def test_a_model_whose_vectors_became_longer_reads_everything_again(library: Story) -> None:
    class Longer(Concepts):
        dimension = 96

    fill(library, new_index())
    longer = new_index(Longer())
    fill(library, longer)
    assert titles(library, "signin circle", semantic_index=longer) == [REDIRECT]
    assert set(library.column("SELECT length(vector) FROM vectors")) == {96}


def test_a_model_that_cannot_be_had_leaves_the_search_by_words_and_says_why(
    library: Story,
) -> None:
    result = look(library, "login", semantic_index=broken())
    assert [row.title for row in result.rows] == [REDIRECT]
    assert result.embedder_error == "the model is not there"


def test_a_search_goes_on_by_words_where_a_server_does_not_answer(
    library: Story, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with embedding_server() as server:
        index = SemanticIndex(
            f"endpoint:{server.url}",
            lambda: Endpoint.open(f"endpoint:{server.url}", server.url, "concepts", None),
        )
        server.may_answer.clear()
        monkeypatch.setattr(embedder, "SEARCH_SECONDS", 0.0)
        result = look(library, "login", semantic_index=index)
        assert [row.title for row in result.rows] == [REDIRECT]
        assert "no response within" in str(result.embedder_error)
        server.may_answer.set()
        monkeypatch.undo()
        assert look(library, "signin circle", semantic_index=index).embedder_error is None


def test_an_idle_model_is_given_back_and_comes_again(library: Story) -> None:
    now = 1_000
    index = new_index(clock=lambda: now)
    assert titles(library, "signin circle", semantic_index=index) == [REDIRECT]
    assert [index.release_if_idle(since_ms=since) for since in (1_000, 1_001, 1_002)] == [
        False, True, False,
    ]  # fmt: skip
    assert titles(library, "signin circle", semantic_index=index) == [REDIRECT]


# In the background


def background(story: Story, index: SemanticIndex | None) -> Embedding:
    return Embedding(story.layout, story.store, index, lambda: story.now)


def run(embedding: Embedding) -> None:
    async def once() -> None:
        embedding.start_if_due()
        await embedding.wait_until_idle()

    asyncio.run(once())


def test_few_memories_do_not_load_a_model_and_many_do(story: Story) -> None:
    index = new_index()
    embedding = background(story, index)
    remember(story, *("lamp" for _ in range(MIN_WAITING_TO_LOAD_MODEL - 2)))  # and their turn
    run(embedding)
    assert not index.is_loaded
    remember(story, "gull")
    run(embedding)
    assert index.progress(story.store) == (
        MIN_WAITING_TO_LOAD_MODEL + 1,
        MIN_WAITING_TO_LOAD_MODEL + 1,
    )


def test_a_model_that_is_loaded_reads_every_memory_at_once(library: Story) -> None:
    index = new_index()
    titles(library, "login", semantic_index=index)
    run(background(library, index))
    assert models(library) == ["concepts"] * 3


def test_a_changed_model_reads_everything_in_the_background(story: Story) -> None:
    remember(story, *("lamp" for _ in range(MIN_WAITING_TO_LOAD_MODEL)))
    fill(story, new_index())
    run(background(story, new_index(Concepts("other"))))
    assert set(models(story)) == {"other"}


def test_a_model_that_is_replaced_while_it_embeds_stops_for_the_new_one(story: Story) -> None:
    remember(story, *("lamp" for _ in range(MIN_WAITING_TO_LOAD_MODEL)))
    previous, current = new_index(), new_index(Concepts("other"))
    embedding = background(story, previous)

    async def replace() -> None:
        embedding.start_if_due()
        await embedding.use(current)

    asyncio.run(replace())
    assert previous.progress(story.store) == (0, MIN_WAITING_TO_LOAD_MODEL + 1)  # and their turn
    run(embedding)
    assert set(models(story)) == {"other"}


def test_a_model_that_fails_is_told_once_and_tried_again_later(story: Story) -> None:
    remember(story, *("lamp" for _ in range(MIN_WAITING_TO_LOAD_MODEL)))
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
    index = new_index(clock=lambda: library.now)
    embedding = background(library, index)
    titles(library, "login", semantic_index=index)
    library.now += IDLE_MS
    embedding.release_if_idle()
    assert index.is_loaded
    library.now += 1
    embedding.release_if_idle()
    assert not index.is_loaded


def test_without_an_embedder_nothing_happens(library: Story) -> None:
    embedding = background(library, None)
    run(embedding)
    embedding.release_if_idle()
    embedding.stop()
    assert models(library) == [None] * 3


# In a running worker


def test_a_worker_loads_numpy_with_the_first_question_and_not_before(home: Home) -> None:
    home.starts_cold = True
    home.start_worker()
    home.hook(prompt("The login page redirects in a circle"))
    home.hook(stop("The cookie was written for another domain."))
    home.wait_settled()
    maps = Path(f"/proc/{home.worker_pid()}/maps")
    assert "site-packages/numpy" not in maps.read_text()
    answer = client.ask_worker(home.layout, "/api/search?query=login")
    assert isinstance(answer, dict) and answer["results"]
    assert "site-packages/numpy" in maps.read_text()
