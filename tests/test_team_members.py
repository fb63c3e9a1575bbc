"""Invitations to more projects, and a push of everything that is compared with the server."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from claude_mem.redaction import Redactor
from claude_mem.store import Store
from claude_mem.team.client import full_transfer, outbox
from claude_mem.team.client.full_transfer import Check, push_everything
from claude_mem.team.client.membership import Membership
from claude_mem.team.client.outbox import SharedProject
from claude_mem.types import Json
from tests.postgres import SqlError, running_postgres
from tests.team import Member, TeamServer, running_team, turn_item
from tests.team_turns import add_turns

pytestmark = pytest.mark.extra


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TeamServer]:
    directory = tmp_path_factory.mktemp("members")
    with running_postgres() as postgres, running_team(postgres, "members", directory) as server:
        yield server


@pytest.fixture
def alice(server: TeamServer) -> Member:
    return server.join("Alice")


def code_for(admin: Member, project: int, role: str = "writer") -> str:
    body: dict[str, Json] = {"name": "Bob", "projects": [project], "role": role,
                             "scopes": ["read", "write"]}  # fmt: skip
    return str(admin.ask("invitations", **body)["code"])


def roles_of(member: Member) -> dict[str, str]:
    return {project["key"]: project["role"] for project in member.ask("me")["projects"]}


def test_a_person_accepts_an_invitation_to_another_project(alice: Member) -> None:
    pier, dock = alice.share("pier"), alice.share("dock")
    alice.push(dock, turn_item("in-dock", title="The sluice gate leaks"))
    bob = alice.invite("Bob", pier)
    assert bob.search("sluice") == []
    code = code_for(alice, dock)
    bob.ask("invitations/accept", code=code)
    assert roles_of(bob) == {"pier": "writer", "dock": "writer"}
    assert bob.titles("sluice") == ["The sluice gate leaks"]
    people = [{m["id"] for m in alice.ask("members", project=p)["members"]} for p in (pier, dock)]
    assert people[0] == people[1] and len(people[0]) == 2  # the same Bob


def test_an_invitation_to_another_project_works_once_and_for_its_projects(
    server: TeamServer, alice: Member
) -> None:
    harbor, lagoon = alice.share("harbor"), alice.share("lagoon")
    bob, carol = alice.invite("Bob", harbor), alice.invite("Carol", harbor)
    code = code_for(alice, lagoon)
    bob.ask("invitations/accept", code=code)
    for used in (code, "invented", server.invite("Dave")):  # the last one is for a new person
        assert carol.request("invitations/accept", code=used).status_code == 404
    assert roles_of(carol) == {"harbor": "writer"}


def test_an_invitation_raises_a_role_and_never_lowers_it(alice: Member) -> None:
    project = alice.share("buoy")
    bob = alice.invite("Bob", project, role="reader")
    bob.ask("invitations/accept", code=code_for(alice, project, "writer"))
    assert roles_of(bob) == {"buoy": "writer"}
    bob.ask("invitations/accept", code=code_for(alice, project, "reader"))
    assert roles_of(bob) == {"buoy": "writer"}


def test_an_invitation_with_more_scopes_than_the_token_is_refused_and_not_used_up(
    server: TeamServer, alice: Member
) -> None:
    project = alice.share("jetty")
    bob = alice.invite("Bob", project)
    scopes: list[Json] = ["read", "write", "admin"]
    code = str(alice.ask("invitations", name="Bob", projects=[project], role="admin",
                         scopes=scopes)["code"])  # fmt: skip
    refused = bob.request("invitations/accept", code=code)
    assert refused.status_code == 403 and "scope admin" in refused.text
    assert roles_of(bob) == {"jetty": "writer"}
    assert roles_of(server.accept(code)) == {"jetty": "admin"}


def test_nobody_accepts_an_invitation_without_a_person(server: TeamServer, alice: Member) -> None:
    code = code_for(alice, alice.share("mole"))
    with pytest.raises(SqlError, match="no person"):
        server.sql(
            "SET ROLE claude_mem_server", f"SELECT claude_mem.join_projects(sha256('{code}'))"
        )


def test_everything_is_compared_with_the_server_in_parts(
    server: TeamServer, alice: Member, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(full_transfer, "CHECKED", 2)
    database, project = tmp_path / "m.db", alice.share("quay")
    membership = Membership(server.url, alice.token, "Alice", "desk")
    with closing(Store.open(database, tmp_path / "backups")) as store:
        lost, _, refused, *_ = add_turns(database, "quay", "quay-1", 5, "rope")
        shared = SharedProject("quay", project, False)
        store.write(lambda c: outbox.share(c, shared, with_past=False)).result()

        def push() -> Check:
            (check,) = push_everything(store, membership, Redactor(), lambda waiting: None)
            return check

        assert push() == Check("quay", turns=5, turns_there=5, is_same=True, refused=0)

        # A turn that the server lost is sent again
        server.sql(f"DELETE FROM claude_mem.turns WHERE uid = '{lost}'")
        assert push() == Check("quay", turns=5, turns_there=5, is_same=True, refused=0)

        # One that it does not take is counted
        with closing(sqlite3.connect(database)) as connection, connection:
            connection.execute(
                "UPDATE user_prompts SET created_at_epoch = -1 WHERE id ="
                " (SELECT turn_id FROM team_turns WHERE uid = ?)",
                (refused,),
            )
        assert push() == Check("quay", turns=4, turns_there=4, is_same=True, refused=1)
