"""Where vectors of passages are compared: one suite for the local scan and for pgvector."""

import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import pytest

from claude_mem.index import indexing
from claude_mem.index.embedders.static_model import StaticModel
from claude_mem.index.text import passage_texts
from claude_mem.index.vectors.semantic import SemanticIndex
from claude_mem.store import Store
from claude_mem.team.wire import Tombstone
from tests.postgres import running_postgres
from tests.team import MOMENT, Member, TeamServer, running_team, turn_item
from tests.team_turns import add_turn, project_id

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
    """A store of vectors: texts are put under a name, in a project."""

    def put(self, project: str, name: str, text: str) -> None: ...

    def remove(self, project: str, name: str) -> None: ...

    def nearest(self, project: str, question: str, count: int) -> list[tuple[str, float]]:
        """Texts and their cosines, the nearest first."""
        ...


@dataclass
class LocalVectors:
    """The shipped scan: vectors in SQLite, compared in memory."""

    store: Store
    index: SemanticIndex
    turns: dict[tuple[str, str], int] = field(default_factory=dict)

    def put(self, project: str, name: str, text: str) -> None:
        self.remove(project, name)

        def work(connection: sqlite3.Connection) -> int:
            return add_turn(connection, project_id(connection, project), f"{project}-{name}", text)

        self.turns[project, name] = self.store.write(work).result()
        while self.index.embed_some(self.store):
            pass

    def remove(self, project: str, name: str) -> None:
        turn = self.turns.pop((project, name), None)
        if turn is not None:
            delete = "DELETE FROM sdk_sessions WHERE id = (SELECT session_id FROM user_prompts"
            self.store.write(lambda c: c.execute(f"{delete} WHERE id = ?)", (turn,))).result()

    def nearest(self, project: str, question: str, count: int) -> list[tuple[str, float]]:
        number = self.store.project_by_key(project)
        best = self.store.read(lambda c: self.index.similarities(c, question, number)).best(count)
        texts = self.store.read(lambda c: passage_texts.texts(c, [passage for passage, _ in best]))
        return [(texts[passage], cosine) for passage, cosine in best]


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
        (row,) = StaticModel.load().encode([question])
        vector = f"'[{','.join(map(str, row.tolist()))}]'::halfvec"
        token = self.member.token
        (person,) = self.server.sql(
            f"SELECT person_id FROM claude_mem.tokens WHERE hash = sha256('{token}')"
        )[0]
        rows = self.server.sql(
            "SET ROLE claude_mem_server",
            "SET search_path = claude_mem, public",
            f"SET claude_mem.person = '{person}'",
            "SET claude_mem.scopes = 'read'",
            f"SELECT p.text, 1 - (p.embedding <=> {vector}) FROM"
            f" passages_by_vector(ARRAY[{self.projects[project]}]::bigint[], {vector}, {count}) n"
            " JOIN passages p USING (project_id, turn_id, number) ORDER BY 2 DESC",
        )
        return [(text, float(cosine)) for text, cosine in rows]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TeamServer]:
    directory = tmp_path_factory.mktemp("vectors")
    with running_postgres() as postgres, running_team(postgres, "vectors", directory) as server:
        yield server


@pytest.fixture(params=["local", "pgvector"])
def vectors(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Vectors]:
    if request.param == "pgvector":
        server: TeamServer = request.getfixturevalue("server")
        yield PgVectors(server, server.join("Vera"))
        return
    with ExitStack() as stack:
        store = stack.enter_context(closing(Store.open(tmp_path / "m.db", tmp_path / "backups")))
        store.run_before_commit(indexing.refresh)
        model = StaticModel.load()
        yield LocalVectors(store, SemanticIndex(model.id, lambda: model))


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
