"""Facts that a team shares: whose they are, how they end, and who may read them."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from claude_mem.team.wire import FactItem, Tombstone
from tests.postgres import running_postgres
from tests.team import MOMENT, Member, TeamServer, running_team

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
