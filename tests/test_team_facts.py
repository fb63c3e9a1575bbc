"""Facts that a team shares: whose they are, how they end, and who may read them."""

import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from claude_mem.config import Layout
from claude_mem.redaction import Redactor
from claude_mem.store import Store
from claude_mem.store.transfer.restore import restore
from claude_mem.team.wire import FactItem, Tombstone
from tests.postgres import running_postgres
from tests.team import MOMENT, Member, TeamServer, running_team, turn_item

pytestmark = pytest.mark.extra

RULE = FactItem("rule", "", "Never paint the buoys green", "", "person", MOMENT)
COMMAND = FactItem("command", "test", "make test", "", "agent", MOMENT + 1)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TeamServer]:
    directory = tmp_path_factory.mktemp("facts")
    with running_postgres() as postgres, running_team(postgres, "facts", directory) as server:
        yield server


@pytest.fixture
def alice(server: TeamServer) -> Member:
    return server.join("Alice")


def listed(member: Member, **body: object) -> list[tuple[str, str, bool]]:
    facts = member.ask("facts", **body)["facts"]
    return [(fact["value"], fact["owner"], fact["is_own"]) for fact in facts]


def test_a_fact_is_listed_with_its_owner(alice: Member) -> None:
    project = alice.share("owned")
    bob = alice.invite("Bob", project)
    assert alice.push(project, RULE, COMMAND) == ["stored", "stored"]
    assert bob.push(project, RULE) == ["stored"]
    *rules, command = listed(alice)
    assert sorted(rules) == [(RULE.value, "Alice", True), (RULE.value, "Bob", False)]
    assert command == (COMMAND.value, "Alice", True)


def test_a_fact_that_ended_comes_back_only_if_it_is_stated_again_or_restored(
    alice: Member,
) -> None:
    project = alice.share("ended")
    alice.push(project, RULE)
    assert alice.push(project, Tombstone(RULE.uid, MOMENT + 10)) == ["forgotten"]
    assert listed(alice) == []
    assert alice.push(project, RULE) == ["forgotten"]  # by a machine that does not know
    assert listed(alice) == []
    assert alice.push(project, replace(RULE, version=MOMENT + 20)) == ["stored"]
    assert listed(alice) == [(RULE.value, "Alice", True)]
    alice.push(project, Tombstone(RULE.uid, MOMENT + 30))
    assert alice.push(project, replace(RULE, is_restored=True)) == ["stored"]
    assert listed(alice) == [(RULE.value, "Alice", True)]


def test_one_person_cannot_end_the_fact_of_another(alice: Member) -> None:
    project = alice.share("others")
    bob = alice.invite("Bob", project)
    alice.push(project, RULE)
    bob.push(project, Tombstone(RULE.uid, MOMENT + 10))
    assert listed(bob) == [(RULE.value, "Alice", False)]


@pytest.mark.parametrize(
    "fact",
    [
        replace(RULE, origin="agent"),
        replace(RULE, kind="open"),
        replace(RULE, value=""),
        replace(RULE, value="x" * 3_000),
        replace(RULE, value="The key is ghp" + "_" + "Zx9Qw7Lk2Vb5" * 3),
    ],
)
def test_a_fact_that_nobody_may_share_is_refused(alice: Member, fact: FactItem) -> None:
    project = alice.share("refused")
    assert alice.push(project, fact, COMMAND) == ["refused", "stored"]
    assert listed(alice) == [(COMMAND.value, "Alice", True)]


def test_facts_of_other_projects_cannot_be_read(server: TeamServer, alice: Member) -> None:
    carol = server.join("Carol")
    hidden = carol.share("hidden")
    carol.push(hidden, RULE)
    own = alice.share("own")
    alice.push(own, COMMAND)
    for body in ({}, {"projects": [hidden]}, {"project_key": "hidden"}):
        assert RULE.value not in str(alice.ask("facts", **body))
    assert alice.request("push", project=hidden, items=[RULE.as_json()]).status_code == 404
    person = server.sql(
        f"SELECT person_id FROM claude_mem.tokens WHERE hash = sha256('{alice.token}')"
    )[0][0]
    role = ("SET ROLE claude_mem_server", "SET search_path = claude_mem, public")
    assert server.sql(*role, "SELECT * FROM facts") == []
    rows = server.sql(
        *role,
        f"SET claude_mem.person = '{person}'",
        "SET claude_mem.scopes = 'read,write'",
        "DELETE FROM facts",
        "SELECT DISTINCT project_id FROM facts",
    )
    assert rows == []
    assert listed(carol) == [(RULE.value, "Carol", True)]


FIRST, SECOND = turn_item("exported", 1), turn_item("exported", 2)
RESTORED = """
SELECT f.kind, f.value, f.status, f.count, f.last_seen_epoch,
  (SELECT group_concat(prompt_id) FROM (SELECT t.prompt_id FROM fact_sources s
    JOIN user_prompts t ON t.id = s.turn_id WHERE s.fact_id = f.id ORDER BY t.prompt_number))
FROM facts f JOIN projects p ON p.id = f.project_id WHERE p.key = ? ORDER BY f.kind, f.value
"""


def restored_facts(
    member: Member, key: str, directory: Path, **body: object
) -> list[tuple[object, ...]]:
    directory.mkdir(exist_ok=True)
    file = directory / "export.jsonl"
    file.write_bytes(member.request("export", project_key=key, **body).content)
    layout = Layout(directory / "data")
    layout.create()
    with Store.open(layout.database, layout.backups) as store:
        report = restore(store, file, Redactor())
        assert report.is_complete and not report.refused, report.reasons
        assert not restore(store, file, Redactor()).added  # nothing is doubled

        def facts(connection: sqlite3.Connection) -> list[tuple[object, ...]]:
            return [tuple(row) for row in connection.execute(RESTORED, (key,))]

        return store.read(facts)


def test_an_export_gives_facts_back_with_the_turns_that_they_come_from(
    alice: Member, tmp_path: Path
) -> None:
    project = alice.share("exported")
    alice.push(project, FIRST, SECOND)
    unknown = "0" * 32  # a turn that was not shared
    rule = replace(RULE, sources=tuple(sorted((FIRST.uid, SECOND.uid, unknown))))
    command = replace(COMMAND, version=MOMENT + 9_000, sources=(SECOND.uid,))
    assert alice.push(project, rule, command) == ["stored", "stored"]
    assert restored_facts(alice, "exported", tmp_path) == [
        ("command", COMMAND.value, "holds", 1, MOMENT + 9_000, "exported-2"),
        ("rule", RULE.value, "holds", 2, MOMENT + 2_000, "exported-1,exported-2"),
    ]


def test_a_rule_of_another_is_a_candidate_in_an_export(alice: Member, tmp_path: Path) -> None:
    project = alice.share("exported by two")
    bob = alice.invite("Bob", project)
    other = replace(RULE, value="Always use two coats of paint")
    alice.push(project, FIRST, replace(RULE, sources=(FIRST.uid,)))
    bob.push(project, SECOND, replace(RULE, sources=(SECOND.uid,)), other, COMMAND)
    both = restored_facts(alice, "exported by two", tmp_path)
    assert [fact[:4] for fact in both] == [
        ("command", COMMAND.value, "holds", 0),
        ("rule", other.value, "candidate", 0),
        ("rule", RULE.value, "holds", 2),
    ]
    own = restored_facts(alice, "exported by two", tmp_path / "own", own=True)
    assert [fact[:4] for fact in own] == [("rule", RULE.value, "holds", 1)]


@pytest.mark.parametrize("sources", [("not a uid",), ("0" * 65,), ("0",) * 101])
def test_sources_of_a_fact_that_are_not_uids_are_refused(
    alice: Member, sources: tuple[str, ...]
) -> None:
    project = alice.share("bad sources")
    assert alice.push(project, replace(RULE, sources=sources)) == ["refused"]
