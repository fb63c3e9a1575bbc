"""What one person, or somebody without a token, can take of the team server from the others."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from typing import Any

import httpx
import pytest

from tests.conftest import wait_until
from tests.postgres import running_postgres
from tests.team import Member, TeamServer, running_team, turn_item

pytestmark = pytest.mark.extra

CONNECTIONS = 8  # of the server to its database
LONG = "The harbour light blinks twice, then once. " * 500


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TeamServer]:
    with (
        running_postgres() as postgres,
        running_team(postgres, "limits", tmp_path_factory.mktemp("team")) as server,
    ):
        yield server


@pytest.fixture(scope="module")
def alice(server: TeamServer) -> Member:
    """She shares more than the buffers of a connection hold."""
    alice = server.join("Alice")
    project = alice.share("long")
    for session in range(20):
        items = [turn_item(f"long-{session}", n, narrative=LONG) for n in range(1, 21)]
        assert set(alice.push(project, *items)) == {"stored"}
    return alice


def open_request(server: TeamServer, text: str) -> socket.socket:
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.connect(("127.0.0.1", server.port))
    connection.sendall(text.encode())
    return connection


def slow_export(member: Member) -> socket.socket:
    """Reads the first bytes of the response, and no more."""
    connection = open_request(
        member.server,
        "POST /v1/export HTTP/1.1\r\nHost: team\r\nContent-Length: 2\r\n"
        f"Authorization: Bearer {member.token}\r\n\r\n{{}}",
    )
    assert connection.recv(12) == b"HTTP/1.1 200"
    return connection


def test_readers_that_stop_reading_hold_no_connection_of_the_others(
    server: TeamServer, alice: Member
) -> None:
    (project,) = alice.ask("me")["projects"]
    people = [alice.invite(f"Slow {n}", project["id"]) for n in range(CONNECTIONS + 1)]
    with ExitStack() as stack:
        for person in people:
            stack.enter_context(slow_export(person))
        for person in (alice, *people):
            assert person.request("me").status_code == 200
        idle = "SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction'"
        assert server.sql(idle) == [["0"]]


def test_a_person_has_one_export_at_a_time(alice: Member) -> None:
    with slow_export(alice):
        second = alice.request("export")
        assert second.status_code == 429 and "one at a time" in second.json()["error"]
    wait_until(lambda: alice.request("export").status_code == 200, "room for the next export")


def is_ended(connection: socket.socket) -> bool:
    connection.setblocking(False)
    with suppress(BlockingIOError):
        try:
            return connection.recv(1) == b""
        except ConnectionError:
            return True
    return False


@pytest.mark.parametrize(
    "text",
    ["", "POST /v1/me HTTP/1.1\r\nHost: team\r\nAuthoriz", "GET /health HTTP/1.1\r\n"],
    ids=["nothing", "half a head", "a line"],
)
def test_requests_that_are_never_finished_are_ended(
    server: TeamServer, alice: Member, text: str
) -> None:
    with ExitStack() as stack:
        opened = [stack.enter_context(open_request(server, text)) for _ in range(300)]
        assert alice.request("me").status_code == 200
        wait_until(lambda: all(map(is_ended, opened)), "the end of the connections")
        assert alice.request("me").status_code == 200


def test_connections_that_send_nothing_leave_room_for_others(
    server: TeamServer, alice: Member
) -> None:
    """More of them than a process may have files by default."""
    with ExitStack() as stack:
        for _ in range(1_200):
            with suppress(ConnectionError):
                stack.enter_context(open_request(server, "POST /v1/me HTTP/1.1\r\n"))
        wait_until(lambda: alice_is_answered(alice), "an answer")


def alice_is_answered(alice: Member) -> bool:
    try:
        return alice.request("me").status_code == 200
    except httpx.HTTPError:
        return False


def test_a_body_is_read_only_of_someone_with_a_token(server: TeamServer) -> None:
    with open_request(
        server,
        "POST /v1/push HTTP/1.1\r\nHost: team\r\nContent-Length: 60000000\r\n"
        "Authorization: Bearer wrong\r\n\r\n{",
    ) as connection:
        connection.settimeout(60)
        assert connection.recv(12) == b"HTTP/1.1 401"


# Tokens


def another(member: Member, **body: Any) -> Member:
    return Member(member.server, member.ask("tokens/create", **body)["token"])


def token_id(member: Member) -> str:
    return str(member.ask("me")["token_id"])


def test_a_token_to_read_revokes_nothing_but_itself(alice: Member) -> None:
    reader = another(alice, scopes=["read"])
    refused = reader.request("tokens/revoke", id=token_id(alice))
    assert refused.status_code == 403 and "write" in refused.json()["error"]
    assert alice.request("me").status_code == 200
    assert reader.ask("tokens/revoke", id=token_id(reader)) == {"revoked": True}
    assert reader.request("me").status_code == 401


def test_a_token_makes_none_that_lives_longer(server: TeamServer, alice: Member) -> None:
    short = another(alice, scopes=["read"], days=2)
    for days in ({}, {"days": 300}):
        token_of_short = another(short, **days)
        entries = {entry["id"]: entry for entry in alice.ask("tokens")["tokens"]}
        made, maker = entries[token_id(token_of_short)], entries[token_id(short)]
        assert made["expires_at"] == maker["expires_at"]
    shorter = another(short, days=1)
    entries = {entry["id"]: entry for entry in alice.ask("tokens")["tokens"]}
    assert entries[token_id(shorter)]["expires_at"] < entries[token_id(short)]["expires_at"]


def test_what_a_token_to_read_made_ends_with_it(alice: Member) -> None:
    reader = another(alice, scopes=["read"])
    made = another(another(reader))
    writer = another(alice, scopes=["read", "write"])
    of_writer = another(writer)
    alice.ask("tokens/revoke", id=token_id(reader))
    alice.ask("tokens/revoke", id=token_id(writer))
    assert made.request("me").status_code == 401
    assert of_writer.request("me").status_code == 200, "another machine of the same person"


def test_a_token_makes_none_that_may_do_more(alice: Member) -> None:
    reader = another(alice, scopes=["read"])
    assert reader.request("tokens/create", scopes=["read", "write"]).status_code == 403


@pytest.mark.parametrize("days", ["1000000000", "-1", "0", "NaN", "Infinity", "1e9", "true", '"9"'])
@pytest.mark.parametrize("path", ["tokens/create", "invitations"])
def test_a_number_of_days_that_is_none_is_an_error(alice: Member, days: str, path: str) -> None:
    response = httpx.post(
        f"{alice.server.url}/v1/{path}",
        content=f'{{"name": "Bob", "days": {days}}}',
        headers={"Authorization": f"Bearer {alice.token}"},
    )
    assert (response.status_code, response.json()["field"]) == (400, "days")


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("search", {"query": "light", "now": 1 << 61}),
        ("timeline", {"moment": (1 << 62) - 1}),
        ("members", {"project": (1 << 62) - 1}),
        ("turns", {"ids": [(1 << 62) - 1]}),
        ("recent", {"limit": (1 << 62) - 1}),
        ("search", {"query": "light", "since": (1 << 62) - 1}),
    ],
)
def test_a_number_that_is_too_large_is_no_failure_of_the_server(
    alice: Member, path: str, body: dict[str, Any]
) -> None:
    assert alice.request(path, **body).status_code in (200, 400, 404)
