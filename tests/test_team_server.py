"""The team server on a real PostgreSQL: pushing, searching, forgetting, quotas, operation."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import httpx
import pytest

from claude_mem.team.wire import Tombstone
from tests.postgres import Postgres, running_postgres
from tests.team import MOMENT, Member, TeamServer, running_team, turn_item

pytestmark = pytest.mark.extra


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    with running_postgres() as postgres:
        yield postgres


@pytest.fixture(scope="module")
def server(postgres: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TeamServer]:
    with running_team(postgres, "server", tmp_path_factory.mktemp("team")) as server:
        yield server


@pytest.fixture
def alice(server: TeamServer) -> Member:
    return server.join("Alice")


def test_a_pushed_turn_is_found_with_its_owner(alice: Member) -> None:
    project = alice.share("github.com/dev/harbor")
    assert alice.push(project, turn_item()) == ["stored"]
    (row,) = alice.search("harbour light")
    assert row["title"] == "Blink the harbour light twice"
    assert row["owner"] == "Alice" and row["project_key"] == "github.com/dev/harbor"


def test_a_repeated_push_changes_nothing(alice: Member) -> None:
    project = alice.share("key")
    item = turn_item()
    assert alice.push(project, item) == ["stored"]
    before = alice.ask("digest", project=project)
    assert alice.push(project, item, item) == ["unchanged", "unchanged"]
    assert alice.ask("digest", project=project) == before
    assert alice.ask("me")["projects"][0]["turns"] == 1


def test_the_order_of_arrival_does_not_matter(alice: Member) -> None:
    """Two machines of one person that recorded the same turn agree."""
    first = turn_item(title="Red light", version=MOMENT)
    second = turn_item(title="Green light", version=MOMENT + 1)
    sealed = turn_item(title="Light", version=MOMENT - 1, sealed=1)
    digests = []
    for key, items in (
        ("ab", (first, second, sealed)), ("ba", (sealed, second, first)),
        ("c", (second, sealed, first)),
    ):  # fmt: skip
        project = alice.share(key)
        for item in items:
            alice.push(project, item)
        digests.append(alice.ask("digest", project=project)["digest"])
    assert len(set(digests)) == 1
    assert alice.titles("light", project_key="ab") == ["Light"]


def test_a_tombstone_deletes_a_turn_and_keeps_it_away(server: TeamServer, alice: Member) -> None:
    project = alice.share("tombs")
    item = turn_item()
    alice.push(project, item)
    alice.push(project, Tombstone(item.uid, MOMENT))
    assert alice.search("harbour") == []
    assert alice.push(project, replace(item, version=MOMENT * 2)) == ["forgotten"]
    (shared,) = alice.ask("me")["projects"]
    assert (shared["turns"], shared["bytes"]) == (0, 0)
    for table in ("turns", "sessions", "passages"):
        where = f"project_id = {project}"
        assert server.sql(f"SELECT count(*) FROM claude_mem.{table} WHERE {where}") == [["0"]]
    (grave,) = alice.ask("tombstones")["tombstones"]
    assert grave["uid"] == item.uid


def test_undoing_a_forgetting_brings_the_turn_back(alice: Member) -> None:
    project = alice.share("undo")
    item = turn_item()
    alice.push(project, Tombstone(item.uid, MOMENT))
    assert alice.push(project, replace(item, is_restored=True)) == ["stored"]
    assert alice.ask("tombstones")["tombstones"] == []


def test_a_record_is_kept_only_where_the_project_shares_it(alice: Member) -> None:
    item = turn_item(record="The lamp driver wants a monotonic clock")
    for key, shares, count in (("without", False, 0), ("with", True, 1)):
        alice.push(alice.share(key, record=shares), item)
        results = alice.search('"monotonic clock"', project_key=key)
        assert len(results) == count


def test_secrets_and_private_text_that_a_client_missed_are_removed(
    server: TeamServer, alice: Member
) -> None:
    key = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    item = turn_item(narrative=f"Deployed with {key} <private>and my diary</private>")
    project = alice.share("secrets")
    assert alice.push(project, item) == ["stored"]
    stored = str(server.sql("SELECT content FROM claude_mem.turns"))
    stored += str(server.sql("SELECT text, lexemes FROM claude_mem.passages"))
    assert key not in stored and "my diary" not in stored


def test_a_bad_item_is_refused_with_the_reason_and_hinders_no_other(alice: Member) -> None:
    project = alice.share("bad")
    good = turn_item(number=2)
    damaged = {**turn_item().as_json(), "hash": "0" * 64}
    local = replace(good, rows=({**good.rows[0], "project_dir": "/home/alice"}, *good.rows[1:]))
    crafted = {**turn_item("session-b").as_json(), "uid": good.uid}
    items = [damaged, local.as_json(), crafted, "nonsense", good.as_json()]
    results = alice.ask("push", project=project, items=items)["results"]
    assert [result["outcome"] for result in results] == ["refused"] * 4 + ["stored"]
    assert "hash" in results[0]["reason"] and "project_dir" in results[1]["reason"]
    assert "uid" in results[2]["reason"]


def test_a_full_project_takes_nothing_more_and_says_so(server: TeamServer, alice: Member) -> None:
    project = alice.share("full")
    server.command("quota", str(project), "--turns", "2")
    assert alice.push(project, turn_item(number=1), turn_item(number=2)) == ["stored"] * 2
    body = [turn_item(number=number).as_json() for number in (1, 3)]
    response = alice.request("push", project=project, items=body)
    assert response.status_code == 413
    assert response.json()["quota"] == "turns" and response.json()["limit"] == 2
    assert "full" in response.json()["error"]
    assert alice.ask("digest", project=project)["turns"] == 2
    alice.push(project, Tombstone(turn_item(number=1).uid, MOMENT))
    assert alice.push(project, turn_item(number=3)) == ["stored"]


def test_words_within_identifiers_and_phrases_are_found_as_in_the_local_index(
    alice: Member,
) -> None:
    project = alice.share("words")
    alice.push(
        project,
        turn_item("s1", title="Rename useEvaluationApi in src/hooks/evaluate.ts", prompt="go"),
        turn_item("s2", title="検索の速度を改善した", prompt="go"),
        turn_item("s3", title="Upgrade the parser to 2.4.1", prompt="go"),
    )
    key = {"project_key": "words"}
    assert "useEvaluationApi" in alice.titles("evaluation", **key)[0]
    assert "useEvaluationApi" in alice.titles("hooks/evaluate.ts", **key)[0]
    assert alice.titles("検索", **key) == ["検索の速度を改善した"]
    assert alice.titles('"parser to 2.4.1"', **key) == ["Upgrade the parser to 2.4.1"]
    assert alice.titles("'; DROP TABLE turns; --", **key) == []
    assert "Upgrade the parser to 2.4.1" not in alice.titles("parser -upgrade", **key)


def test_the_timeline_shows_turns_around_a_moment_and_an_anchor(alice: Member) -> None:
    project = alice.share("times")
    items = [turn_item(number=n, title=f"Step {n}", version=MOMENT + n) for n in range(1, 8)]
    alice.push(project, *items)
    rows = alice.ask("timeline", moment=MOMENT + 4_000, before=2, after=2, project_key="times")
    assert [row["title"] for row in rows["results"]] == ["Step 2", "Step 3", "Step 4", "Step 5"]
    anchor = rows["results"][1]["id"]
    rows = alice.ask("timeline", anchor=anchor, before=1, after=1)
    assert [row["title"] for row in rows["results"]] == ["Step 2", "Step 3", "Step 4"]
    (turn,) = alice.ask("turns", ids=[anchor])["turns"]
    assert turn["title"] == "Step 3" and turn["rows"]


def test_an_index_of_vectors_finds_the_same(server: TeamServer, alice: Member) -> None:
    project = alice.share("vectors")
    topics = ("buoy", "lighthouse", "crane", "tugboat", "pier")
    alice.push(project, *(turn_item(topic, title=f"Repair the {topic}") for topic in topics))
    before = alice.titles("which ship was fixed", project_key="vectors")
    assert server.command("maintain", "--above", "4").startswith("Indexed: codes_")
    assert server.command("maintain", "--above", "4") == "No partition needs an index."
    assert alice.titles("which ship was fixed", project_key="vectors") == before


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("timeline", {"anchor": 10**30}),
        ("timeline", {"moment": 10**30, "project_key": "times"}),
        ("share", {"key": "a\0b", "name": "x"}),
        ("turns", {"ids": [10**30]}),
        ("invitations", {"name": "a", "days": 10**9}),
        ("tombstones", {"since": 10**30}),
    ],
)
def test_a_value_that_no_database_takes_is_the_fault_of_the_request(
    alice: Member, path: str, body: dict[str, Any]
) -> None:
    answer = alice.request(path, **body)
    assert 400 <= answer.status_code < 500, answer.text
    assert answer.headers["cache-control"] == "no-store"


def test_several_servers_migrate_one_database_once(server: TeamServer) -> None:
    from claude_mem.team.server.migrations import current_names  # needs psycopg

    assert server.command("migrate") == "The database is up to date."
    names = server.sql("SELECT name FROM claude_mem.schema_migrations ORDER BY name")
    assert [name for (name,) in names] == current_names()


def test_a_database_of_a_newer_version_is_not_changed(server: TeamServer) -> None:
    server.sql("INSERT INTO claude_mem.schema_migrations VALUES ('9999_future')")
    try:
        assert httpx.get(f"{server.url}/ready").status_code == 503
        with pytest.raises(AssertionError, match="newer claude-mem"):
            server.command("migrate")
    finally:
        server.sql("DELETE FROM claude_mem.schema_migrations WHERE name = '9999_future'")


def test_health_readiness_metrics_and_logs(server: TeamServer, alice: Member) -> None:
    alice.search("light")
    assert httpx.get(f"{server.url}/health").json()["status"] == "ok"
    assert httpx.get(f"{server.url}/ready").status_code == 200
    metrics = httpx.get(f"{server.url}/metrics").text
    process = f'process="{server.pid}"'
    searches = f'claude_mem_team_requests_total{{{process},route="/v1/search",status="200"}}'
    assert searches in metrics
    assert f'claude_mem_team_items_total{{{process},outcome="stored"}}' in metrics
    assert f'claude_mem_team_connections{{{process},state="idle"}}' in metrics
    log = server.log.read_text()
    assert '"route": "/v1/search"' in log and alice.token not in log


def test_an_operator_invites_the_first_person(server: TeamServer) -> None:
    code = server.command("invite", "Operator", "--admin").splitlines()[-1].split()[-1]
    operator = server.accept(code)
    assert operator.ask("me")["scopes"] == ["read", "write", "admin"]
    response = httpx.post(f"{server.url}/v1/join", json={"code": code, "machine": "again"})
    assert response.status_code == 404


def test_a_filter_finds_what_many_better_matches_outside_of_it_would_hide(alice: Member) -> None:
    project = alice.share("filtered")
    day = 86_400_000
    older = [
        turn_item("old", n, title=f"Beacon {n} of the beacon", prompt="beacon beacon")
        for n in range(1, 161)
    ]
    text = f"Moved the beacon {'and much else of the harbour that has another name ' * 20}"
    latest = turn_item("new", title="Tidied up", prompt=text, moment=MOMENT + day)
    for first in range(0, len(older), 80):
        alice.push(project, *older[first : first + 80])
    alice.push(project, latest)
    key = {"project_key": "filtered"}
    assert "Tidied up" not in alice.titles("beacon", limit=100, **key)
    assert alice.titles("beacon", since=MOMENT + day, **key) == ["Tidied up"]
    assert alice.titles('"the beacon"', since=MOMENT + day, **key) == ["Tidied up"]
    assert alice.titles("beacon -harbour", since=MOMENT + day, **key) == []
    assert alice.titles("beacon", since=MOMENT + 2 * day, **key) == []
    assert alice.titles("beacon", until=MOMENT, **key) == []


def test_words_that_are_in_very_many_passages_are_looked_up_in_the_latest_turns(
    server: TeamServer, alice: Member
) -> None:
    project = alice.share("common words")
    alice.push(project, *(turn_item("many", n, title=f"Step {n}") for n in range(20)))
    query = f"SELECT person_id FROM claude_mem.memberships WHERE project_id = {project}"
    ((person,),) = server.sql(query)

    def matching(most: int) -> list[str]:
        """A word is in too many passages if it is in `most`."""
        (row,) = server.sql(
            "SET ROLE claude_mem_server",
            "SET search_path = claude_mem, public",
            f"SET claude_mem.person = '{person}'",
            "SET claude_mem.scopes = 'read'",
            "SELECT counts, cardinality(turn_ids), (SELECT count(DISTINCT t) FROM unnest(turn_ids)"
            f" t) FROM matching_passages(ARRAY[{project}], 3, ARRAY['harbour', 'light', 'unknown']"
            f"::tsquery[], NULL, {most}, 900)",
        )
        return row

    prompts_and_summaries = ["{40,40,0}", "40", "20"]
    assert matching(most=1) == matching(most=5_000) == prompts_and_summaries
