"""What a member of one project can learn of another: nothing, at the API and in the database."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest

from claude_mem.team.wire import Tombstone
from tests.postgres import SqlError, running_postgres
from tests.team import MOMENT, Member, TeamServer, running_team, turn_item

pytestmark = pytest.mark.extra

SECRET = "The zephyr protocol ships in March"
TABLES = ("people", "tokens", "projects", "memberships", "invitations", "sessions", "turns",
          "passages", "tombstones")  # fmt: skip


@dataclass(frozen=True)
class Scene:
    server: TeamServer
    alice: Member  # of project A
    bob: Member  # of project B
    a: int
    b: int
    secret: int  # the id of a turn in B

    def sql_as(self, member: Member, *statements: str) -> list[list[str]]:
        """Runs SQL as the server's role, in the name of a person."""
        person = self.server.sql(
            f"SELECT person_id FROM claude_mem.tokens WHERE hash = sha256('{member.token}')"
        )[0][0]
        return self.server.sql(
            "SET ROLE claude_mem_server",
            "SET search_path = claude_mem, public",
            f"SET claude_mem.person = '{person}'",
            "SET claude_mem.scopes = 'read,write,admin'",
            *statements,
        )


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with (
        running_postgres() as postgres,
        running_team(postgres, "isolation", tmp_path_factory.mktemp("team")) as server,
    ):
        alice, bob = server.join("Alice"), server.join("Bob")
        a, b = alice.share("key-a", record=True), bob.share("key-b", record=True)
        alice.push(a, turn_item("in-a", title="The harbour light"))
        bob.push(b, turn_item("in-b", title=SECRET, prompt=SECRET, record=SECRET))
        (row,) = bob.search("zephyr")
        yield Scene(server, alice, bob, a, b, int(row["id"]))


def test_the_secret_is_there_for_its_member(scene: Scene) -> None:
    assert scene.bob.titles("zephyr protocol") == [SECRET]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("search", {"query": "zephyr"}),
        ("search", {"query": "zephyr", "project_key": "key-b"}),
        ("search", {"query": "zephyr protocol", "since": MOMENT - 1}),
        ("search", {"query": "*"}),
        ("search", {"query": "when does it ship in March"}),
        ("timeline", {"moment": MOMENT, "project_key": "key-b"}),
        ("timeline", {"moment": MOMENT}),
        ("recent", {}),
        ("recent", {"project_key": "key-b"}),
        ("tombstones", {}),
        ("me", {}),
    ],
)
def test_no_route_shows_another_project(scene: Scene, path: str, body: dict[str, Any]) -> None:
    answer = scene.alice.request(path, **body)
    assert answer.status_code == 200
    for trace in ("zephyr", "key-b", "Bob", str(scene.b)):
        assert trace not in answer.text


def test_crafted_ids_name_nothing(scene: Scene) -> None:
    alice = scene.alice
    missing = scene.secret + 1
    for project in (scene.b, missing):
        answers = [
            alice.request("search", query="zephyr", projects=[project]).json(),
            alice.request("digest", project=project).json(),
            alice.request("members", project=project).json(),
            alice.request("push", project=project, items=[turn_item().as_json()]).json(),
            alice.request("invitations", name="Eve", projects=[project]).status_code,
        ]
        if project == scene.b:
            of_other = answers
    assert of_other == answers, "a project of others differs from one that does not exist"
    assert alice.ask("turns", ids=[scene.secret])["turns"] == []
    real = alice.request("timeline", anchor=scene.secret)
    none = alice.request("timeline", anchor=missing)
    assert real.status_code == none.status_code == 404
    assert real.text.replace(str(scene.secret), "") == none.text.replace(str(missing), "")


def test_an_export_has_only_what_its_person_may_read(scene: Scene) -> None:
    text = scene.alice.request("export").text
    assert "harbour" in text and "zephyr" not in text and "key-b" not in text
    assert "zephyr" not in scene.alice.request("export", project_key="key-b").text


def test_the_score_does_not_depend_on_other_projects(scene: Scene) -> None:
    """Neither through how often a word occurs there."""
    before = scene.alice.search("harbour light")
    scene.bob.push(scene.b, *(turn_item("flood", n, title="harbour") for n in range(1, 30)))
    assert scene.alice.search("harbour light") == before


def test_the_same_key_is_a_project_of_its_own(scene: Scene) -> None:
    eve = scene.server.join("Eve")
    own = eve.share("key-b")
    assert own != scene.b
    assert eve.search("zephyr") == []
    body = [turn_item("x").as_json()]
    assert scene.bob.request("push", project=own, items=body).status_code == 404


def test_another_members_turn_can_be_read_but_not_replaced_or_forgotten(scene: Scene) -> None:
    carol = scene.bob.invite("Carol", scene.b)
    assert carol.titles("zephyr") == [SECRET]
    item = turn_item("in-b", title="Overwritten", version=MOMENT * 2, sealed=9)
    carol.push(scene.b, item)
    assert SECRET in scene.bob.titles("zephyr")
    carol.push(scene.b, Tombstone(item.uid, MOMENT))
    assert scene.bob.titles("zephyr") == [SECRET]


def test_a_reader_and_a_token_without_the_scope_cannot_write(scene: Scene) -> None:
    reader = scene.bob.invite("Reader", scene.b, role="reader")
    assert reader.request("push", project=scene.b, items=[]).status_code == 403
    token = scene.alice.ask("tokens/create", name="phone", scopes=["read"])["token"]
    phone = Member(scene.server, token)
    assert phone.titles("harbour") == ["The harbour light"]
    assert phone.request("push", project=scene.a, items=[]).status_code == 403
    assert phone.request("tokens/create", scopes=["write"]).status_code == 403
    assert phone.request("invitations", name="Eve", projects=[scene.a]).status_code == 403


def test_revoked_expired_and_invented_tokens_open_nothing(scene: Scene) -> None:
    dave = scene.bob.invite("Dave", scene.b)
    assert dave.titles("zephyr")
    identity = dave.ask("me")["token_id"]
    dave.ask("tokens/revoke", id=identity)
    frank = scene.bob.invite("Frank", scene.b)
    scene.server.sql(
        "UPDATE claude_mem.tokens SET expires_at = now() - interval '1 second'"
        f" WHERE hash = sha256('{frank.token}')"
    )
    for member in (dave, frank, Member(scene.server, "invented")):
        for path in ("me", "search", "push", "export"):
            answer = member.request(path, query="zephyr")
            assert answer.status_code == 401, answer.text
            assert "zephyr" not in answer.text


def test_a_removed_member_reads_nothing_more(scene: Scene) -> None:
    grace = scene.bob.invite("Grace", scene.b)
    members = scene.bob.ask("members", project=scene.b)["members"]
    identity = next(m["id"] for m in members if m["name"] == "Grace")
    assert (
        scene.alice.request("members/remove", project=scene.b, person=identity).status_code == 404
    )
    scene.bob.ask("members/remove", project=scene.b, person=identity)
    assert grace.search("zephyr") == []


# In the database


def test_the_servers_role_without_a_person_reads_nothing(scene: Scene) -> None:
    for table in TABLES:
        rows = scene.server.sql("SET ROLE claude_mem_server", f"SELECT * FROM claude_mem.{table}")
        assert rows == [], table


def test_the_servers_role_sees_only_the_projects_of_its_person(scene: Scene) -> None:
    for table in ("sessions", "turns", "passages"):
        rows = scene.sql_as(scene.alice, f"SELECT DISTINCT project_id FROM {table}")
        assert rows == [[str(scene.a)]], table
    assert scene.sql_as(scene.alice, "SELECT count(*) FROM projects") == [["1"]]
    assert scene.sql_as(scene.alice, "SELECT name FROM people") == [["Alice"]]


def test_searching_functions_of_the_database_check_memberships(scene: Scene) -> None:
    within = f"ARRAY[{scene.a},{scene.b}]::bigint[]"
    query = "'zephyr'::tsquery"
    matching = f"matching_passages({within}, 1, ARRAY[{query}], NULL, 9, 9)"
    vector = "(SELECT ('[' || array_to_string(array_fill(0.1, ARRAY[256]), ',') || ']')::halfvec)"
    found = scene.sql_as(
        scene.alice,
        f"SELECT project_id FROM turns_by_words({within}, {query}) UNION"
        f" SELECT project_id FROM nearest_passages({within}, {vector}, 900, 900) UNION"
        f" SELECT project_id FROM passages_in_range({within}, ARRAY[{query}], NULL, {vector}, 0,"
        f" {1 << 62}, '{{}}', 900, 900, 900) UNION"
        f" SELECT unnest(project_ids) FROM {matching}",
    )
    assert found == [[str(scene.a)]]
    total, counts = scene.sql_as(scene.alice, f"SELECT total, counts FROM {matching}")[0]
    own = scene.sql_as(scene.alice, "SELECT count(*) FROM passages")[0][0]
    assert (total, counts) == (own, "{0}")


def test_reading_functions_of_the_database_check_memberships(scene: Scene) -> None:
    rows = scene.server.sql(
        "SELECT project_id, turn_id, p.number, session_id FROM claude_mem.passages p"
        " JOIN claude_mem.turns t USING (project_id) WHERE t.id = p.turn_id"
    )
    columns = [f"ARRAY[{','.join(column)}]" for column in zip(*rows, strict=True)]
    projects, turns, numbers, sessions = columns
    found = scene.sql_as(
        scene.alice,
        f"SELECT project_id FROM read_passages({projects}, {turns}, {numbers}::smallint[], NULL)"
        f" UNION SELECT project_id FROM read_turns({projects}, {turns}) UNION"
        " SELECT t.project_id FROM neighbouring_turns("
        f" {projects}, {turns}, {sessions}, array_fill(-1, ARRAY[{len(rows)}]), 9, 9) n"
        " JOIN turns t USING (id)",
    )
    assert found == [[str(scene.a)]]


def test_the_servers_role_cannot_read_codes_of_vectors(scene: Scene) -> None:
    with pytest.raises(SqlError):
        scene.sql_as(scene.alice, "SELECT * FROM codes")
    with pytest.raises(SqlError):
        code = "repeat('1', 256)::bit(256)"
        scene.sql_as(scene.alice, f"SELECT * FROM nearest_codes(ARRAY[{scene.b}], {code}, 9)")


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE turns SET title = 'x' WHERE project_id = {b}",
        "DELETE FROM turns WHERE project_id = {b}",
        "DELETE FROM passages WHERE project_id = {b}",
        "UPDATE sessions SET title = 'x' WHERE project_id = {b}",
    ],
)
def test_rows_of_others_cannot_be_changed(scene: Scene, statement: str) -> None:
    before = scene.server.sql("SELECT * FROM claude_mem.turns ORDER BY id")
    scene.sql_as(scene.alice, statement.format(b=scene.b))
    assert scene.server.sql("SELECT * FROM claude_mem.turns ORDER BY id") == before


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO memberships VALUES ({b}, person(), 'admin')",
        "INSERT INTO people (name) VALUES ('x')",
        "INSERT INTO tombstones VALUES ({b}, person(), 'x', 1)",
        "UPDATE projects SET max_turns = 1",
        "INSERT INTO invitations (hash, person_name, scopes, project_ids, role, invited_by,"
        " expires_at) VALUES ('x', 'x', '{{read}}', '{{{b}}}', 'reader', person(), now())",
        "SELECT create_project(1, 'k', 'n', true) FROM (SELECT set_config('claude_mem.person', '',"
        " false)) s",
        "CREATE TABLE claude_mem.x (y int)",
        "ALTER TABLE turns DISABLE ROW LEVEL SECURITY",
    ],
)
def test_the_servers_role_cannot_give_itself_rights(scene: Scene, statement: str) -> None:
    with pytest.raises(SqlError):
        scene.sql_as(scene.alice, statement.format(b=scene.b))


def test_only_hashes_of_tokens_and_codes_are_stored(scene: Scene) -> None:
    stored = str(scene.server.sql("SELECT * FROM claude_mem.tokens"))
    assert scene.alice.token not in stored and scene.bob.token not in stored


def test_ids_do_not_count_what_others_store(scene: Scene) -> None:
    """Consecutive ids would show how much happens in other projects."""
    ids = [row["id"] for row in scene.bob.search("*", limit=50)]
    gaps = {abs(a - b) for a, b in pairwise(ids)}
    assert min(gaps) > 1_000
