"""One suite for all vector backends: the local scan, pgvector and Chroma."""

import hashlib
import json
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import httpx
import pytest

from claude_mem.config import Settings, load_settings
from claude_mem.index import indexing
from claude_mem.index.embedders.static_model import StaticModel
from claude_mem.index.text import passage_queries
from claude_mem.index.vectors.blocks import QueryVector, Similarities, quantise
from claude_mem.index.vectors.chroma import COLLECTIONS, ChromaCollection, ChromaVectors
from claude_mem.index.vectors.document_vectors import embed_some
from claude_mem.index.vectors.lazy_index import READ_AHEAD, SemanticIndex, open_semantic_index
from claude_mem.index.vectors.vector_backend import VectorBackend
from claude_mem.index.vectors.vector_search import LocalScan, VectorCache
from claude_mem.store import Store
from claude_mem.store.clock import now_ms
from claude_mem.team.wire import Tombstone
from tests.chroma import running_chroma
from tests.postgres import running_postgres
from tests.team import MOMENT, Member, TeamServer, running_team, turn_item
from tests.team_turns import add_turn, project_id
from tests.test_guard import free_port

pytestmark = pytest.mark.extra

TEXTS = {
    "lamp": "Replaced the bulb of the lighthouse lamp",
    "crane": "The harbour crane lifts containers again",
    "parser": "Fixed a syntax error in the config parser",
    "cache": "The cache of the web server is cleared at night",
    "invoice": "Invoices are sent as PDF by mail",
}
QUESTION = "which light was repaired on the tower"


class Vectors(Protocol):
    """A vector backend, and what fills it: texts are put under a name, in a project."""

    def put(self, project: str, name: str, text: str) -> None: ...

    def remove(self, project: str, name: str) -> None: ...

    def nearest(self, project: str, question: str, count: int) -> list[tuple[str, float]]:
        """Texts and their cosines, the nearest first."""
        ...


@dataclass
class LocalVectors:
    """Vectors in SQLite, compared in memory, or by a Chroma server that has a copy of them."""

    store: Store
    index: SemanticIndex
    cache: VectorCache
    collection: ChromaCollection | None = None
    turns: dict[tuple[str, str], int] = field(default_factory=dict)

    def put(self, project: str, name: str, text: str) -> None:
        self.remove(project, name)

        def work(connection: sqlite3.Connection) -> int:
            return add_turn(connection, project_id(connection, project), f"{project}-{name}", text)

        self.turns[project, name] = self.store.write(work).result()
        while embed_some(self.index, self.store):
            pass

    def remove(self, project: str, name: str) -> None:
        turn = self.turns.pop((project, name), None)
        if turn is not None:
            delete = "DELETE FROM sdk_sessions WHERE id = (SELECT session_id FROM user_prompts"
            self.store.write(lambda c: c.execute(f"{delete} WHERE id = ?)", (turn,))).result()

    def nearest(self, project: str, question: str, count: int) -> list[tuple[str, float]]:
        number = self.store.project_by_key(project)
        assert number is not None

        def work(connection: sqlite3.Connection) -> list[tuple[str, float]]:
            best = self._backend(connection).nearest(query_vector(question), [number], count)
            rows = best.best(count)
            texts = passage_queries.texts_of_passages(connection, [passage for passage, _ in rows])
            return [(texts[passage], cosine) for passage, cosine in rows]

        return self.store.read(work)

    def _backend(self, connection: sqlite3.Connection) -> VectorBackend:
        if self.collection is None:
            return LocalScan(self.cache, connection)
        self.collection.follow(connection, self.cache.read_state(connection))
        return ChromaVectors(self.collection, self.cache, connection)


@dataclass
class PgVectors:
    """pgvector, through the functions that the server uses."""

    server: TeamServer
    member: Member
    projects: dict[str, int] = field(default_factory=dict)
    version: int = MOMENT

    def put(self, project: str, name: str, text: str) -> None:
        if project not in self.projects:
            self.projects[project] = self.member.share(project)
        self.version += 1
        item = turn_item(name, title="", prompt=text, narrative=" ", version=self.version)
        rows = tuple(row for row in item.rows if row["table"] in ("sdk_sessions", "user_prompts"))
        item = type(item)(item.uid, item.version, 0, rows, is_restored=True)
        assert self.member.push(self.projects[project], item) == ["stored"]

    def remove(self, project: str, name: str) -> None:
        self.member.push(self.projects[project], Tombstone(turn_item(name).uid, MOMENT))

    def nearest(self, project: str, question: str, count: int) -> list[tuple[str, float]]:
        """Searches in a process of its own: psycopg must not connect in this one."""
        person = self.server.sql(
            f"SELECT person_id FROM claude_mem.tokens WHERE hash = sha256('{self.member.token}')"
        )[0][0]
        arguments = (self.server.database_url, person, str(self.projects[project]), question)
        command = [sys.executable, "-m", "tests.pg_nearest", *arguments, str(count)]
        result = subprocess.run(command, capture_output=True, text=True, check=True)
        return [(text, cosine) for text, cosine in json.loads(result.stdout)]


def query_vector(question: str) -> QueryVector:
    (row,) = quantise(StaticModel.load().encode([question]))
    return QueryVector(row)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TeamServer]:
    directory = tmp_path_factory.mktemp("vectors")
    with running_postgres() as postgres, running_team(postgres, "vectors", directory) as server:
        yield server


@pytest.fixture(scope="module")
def chroma(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_chroma(tmp_path_factory.mktemp("chroma")) as url:
        yield url


@pytest.fixture(params=["local", "pgvector", "chroma"])
def vectors(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Vectors]:
    if request.param == "pgvector":
        server: TeamServer = request.getfixturevalue("server")
        yield PgVectors(server, server.join("Vera"))
        return
    collection = None
    if request.param == "chroma":
        collection = ChromaCollection(request.getfixturevalue("chroma"), now_ms)
    with opened_store(tmp_path) as store:
        model = StaticModel.load()
        index = SemanticIndex(model.id, lambda: model)
        yield LocalVectors(store, index, VectorCache(model, READ_AHEAD), collection)


@contextmanager
def opened_store(directory: Path) -> Iterator[Store]:
    with closing(Store.open(directory / "m.db", directory / "backups")) as store:
        store.run_before_commit(indexing.refresh)
        yield store


def fill(vectors: Vectors, project: str = "harbor") -> None:
    for name, text in TEXTS.items():
        vectors.put(project, name, text)


def test_the_nearest_come_first_with_their_cosines(vectors: Vectors) -> None:
    fill(vectors)
    rows = StaticModel.load().encode([QUESTION, *TEXTS.values()])
    exact = dict(zip(TEXTS.values(), (rows[1:] @ rows[0]).tolist(), strict=True))
    found = vectors.nearest("harbor", QUESTION, len(TEXTS))
    assert [text for text, _ in found] == sorted(exact, key=lambda text: -exact[text])
    for text, cosine in found:
        assert cosine == pytest.approx(exact[text], abs=0.02)


def test_no_more_than_the_count_are_returned(vectors: Vectors) -> None:
    fill(vectors)
    every = vectors.nearest("harbor", QUESTION, 10)
    assert len(every) == len(TEXTS)
    assert vectors.nearest("harbor", QUESTION, 2) == every[:2]


def test_other_projects_are_left_out(vectors: Vectors) -> None:
    fill(vectors)
    vectors.put("lagoon", "own", "Nothing about towers")
    assert [text for text, _ in vectors.nearest("lagoon", QUESTION, 10)] == ["Nothing about towers"]


def test_a_removed_text_leaves_no_vector(vectors: Vectors) -> None:
    fill(vectors)
    vectors.remove("harbor", "lamp")
    found = [text for text, _ in vectors.nearest("harbor", QUESTION, 10)]
    assert TEXTS["lamp"] not in found and len(found) == len(TEXTS) - 1


def test_a_changed_text_is_compared_by_its_new_vector(vectors: Vectors) -> None:
    fill(vectors)
    vectors.put("harbor", "lamp", "The tax report is due in May")
    found = dict(vectors.nearest("harbor", "when is the tax report due", 10))
    assert next(iter(found)) == "The tax report is due in May"
    assert TEXTS["lamp"] not in found


# Chroma alone


def settings_with(directory: Path, **environ: str) -> Settings:
    return load_settings({"HOME": str(directory), **environ})


def collection_url(url: str, directory: Path) -> str:
    """Returns the URL of the vectors of the database in this directory."""
    digest = hashlib.sha256(str(directory / "m.db").encode()).hexdigest()[:16]
    collections = httpx.get(f"{url}{COLLECTIONS}").json()
    (identity,) = (c["id"] for c in collections if c["name"] == f"claude-mem-{digest}")
    return f"{url}{COLLECTIONS}/{identity}"


def similarities(store: Store, index: SemanticIndex) -> Similarities:
    vectors = index.load().vector_search
    return store.read(lambda connection: vectors.similarities(connection, QUESTION))


def stored_ids(collection: str) -> set[int]:
    body = {"where": {"project": {"$gte": 0}}, "include": []}
    return set(map(int, httpx.post(f"{collection}/get", json=body).json()["ids"]))


def test_a_search_asks_the_chroma_server_and_nothing_forgotten_stays_there(
    chroma: str, tmp_path: Path
) -> None:
    with opened_store(tmp_path) as store:
        index = open_semantic_index(settings_with(tmp_path, CLAUDE_MEM_CHROMA_URL=chroma))
        assert index is not None
        local = LocalVectors(store, index, VectorCache(StaticModel.load(), READ_AHEAD))
        fill(local)
        assert index.is_copy_behind(store)
        index.copy_vectors(store)
        assert not index.is_copy_behind(store)
        collection = collection_url(chroma, tmp_path)
        found = {i for i, _ in similarities(store, index).best(10)}
        assert len(found) == len(TEXTS) and stored_ids(collection) == found
        local.remove("harbor", "lamp")
        index.copy_vectors(store)
        assert len(stored_ids(collection)) == len(TEXTS) - 1
        lost = min(stored_ids(collection))
        httpx.post(f"{collection}/delete", json={"ids": [str(lost)]}).raise_for_status()
        answered = {i for i, _ in similarities(store, index).best(10)}
        assert answered == stored_ids(collection)  # only the server can know


def test_without_its_chroma_server_a_search_compares_here(tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    with opened_store(tmp_path) as store:
        index = open_semantic_index(settings_with(tmp_path, CLAUDE_MEM_CHROMA_URL=url))
        assert index is not None
        local = LocalVectors(store, index, VectorCache(StaticModel.load(), READ_AHEAD))
        fill(local)
        index.copy_vectors(store)
        found = similarities(store, index).best(len(TEXTS))
        assert len(found) == len(TEXTS)
        assert not index.is_copy_behind(store)  # not asked again for a while


def test_a_chroma_server_elsewhere_is_not_asked(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    url = "https://vectors.example"
    index = open_semantic_index(settings_with(tmp_path, CLAUDE_MEM_CHROMA_URL=url))
    assert index is not None and "not on this machine" in caplog.text
    with opened_store(tmp_path) as store:
        assert not index.is_copy_behind(store)
