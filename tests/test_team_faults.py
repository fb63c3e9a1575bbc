"""5,000 turns of four machines while server, database, network and workers fail repeatedly."""

import random
import signal
import socket
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field
from itertools import islice

import pytest

from claude_mem.store import Store
from claude_mem.store.forgetting import Selection
from claude_mem.team.wire import turn_uid
from tests.conftest import Home, temporary_home, wait_until
from tests.postgres import Postgres, running_postgres
from tests.team import TeamServer, running_team
from tests.team_turns import add_turns
from tests.test_guard import free_port

pytestmark = pytest.mark.extra

KEY = "git.example.com/dev/harbor"
CLIENTS, PAST, LATER = 4, 15, 10  # sessions of each client, of SIZE turns
SIZE = 50
SERVER_KILLS, DATABASE_RESTARTS = 20, 2


class Network:
    """Between the clients and the server; it can be cut."""

    def __init__(self, target: int) -> None:
        self._target, self.port = target, free_port()
        self._listener: socket.socket | None = None
        self._open: set[socket.socket] = set()

    def connect(self) -> None:
        listener = socket.create_server(("127.0.0.1", self.port), reuse_port=True)
        self._listener = listener
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()

    def cut(self) -> None:
        """Cuts the connection in the middle of whatever is being sent."""
        listener, self._listener = self._listener, None
        for end in [*self._open, *([listener] if listener else [])]:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
        self._open.clear()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                near, _ = listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(("127.0.0.1", self._target))
            except OSError:
                near.close()
                continue
            self._open |= {near, far}
            for source, sink in ((near, far), (far, near)):
                threading.Thread(target=self._copy, args=(source, sink), daemon=True).start()

    def _copy(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65_536):
                sink.sendall(data)
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
            self._open.discard(end)


@dataclass
class Client:
    home: Home
    name: str
    uids: set[str] = field(default_factory=set)

    def run(self, *arguments: str) -> str:
        result = self.home.command(*arguments)
        assert result.returncode == 0, result.stderr
        return result.stdout

    def work(self, first: int, sessions: int) -> None:
        for number in range(first, first + sessions):
            session = f"{self.name}-{number}"
            self.uids |= set(
                add_turns(self.home.layout.database, KEY, session, SIZE, f"lamp {self.name}")
            )

    def restart(self) -> None:
        self.home.kill_worker()
        self.home.start_worker()

    def forget(self, session: int, *, undo: bool = False) -> None:
        with closing(Store(self.home.layout.database)) as store:
            content_id = f"{self.name}-{session}"
            selection = Selection(session=store.find_session(content_id))
            preview = store.preview_forgetting(selection)
            store.forget(selection, preview.token).result()
            if undo:
                store.undo_forgetting(preview.token).result()

    def edit(self, session: int) -> None:
        database = self.home.layout.database
        with closing(sqlite3.connect(database, timeout=30)) as connection, connection:
            connection.execute(
                "UPDATE observations SET title = 'Edited ' || title, edited = 1"
                " WHERE memory_session_id = ?",
                (f"m-{self.name}-{session}",),
            )

    def waiting(self) -> int:
        return self.home.count("team_outbox")


@dataclass
class Scene:
    postgres: Postgres
    server: TeamServer
    network: Network
    clients: list[Client]

    def stored(self) -> int:
        return int(self.server.sql("SELECT count(*) FROM claude_mem.turns")[0][0])

    def wait_for_more(self, turns: int, seconds: float) -> None:
        """Waits for more, but only so long: all clients may be waiting, or done."""
        goal = self.stored() + turns
        with suppress(AssertionError):
            wait_until(lambda: self.stored() >= goal, seconds=seconds)


@pytest.fixture
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    root = tmp_path_factory.mktemp("faults")
    with ExitStack() as stack:
        postgres = stack.enter_context(running_postgres())
        server = stack.enter_context(running_team(postgres, "faults", root))
        network = Network(server.port)
        network.connect()
        stack.callback(network.cut)
        clients = []
        for name in ("ann", "ben", "cleo", "dan")[:CLIENTS]:
            (root / name).mkdir()
            home = stack.enter_context(temporary_home(root / name))
            home.environment["CLAUDE_MEM_EMBEDDER"] = "none"  # that is not what takes time here
            clients.append(Client(home, name))
        yield Scene(postgres, server, network, clients)


def join_all(scene: Scene) -> None:
    url = f"http://127.0.0.1:{scene.network.port}"
    first, *others = scene.clients
    for client in scene.clients:
        client.home.start_worker()
        client.work(0, PAST)
    first.run("team", "join", url, "--invitation", scene.server.invite("ann"))
    first.run("team", "share", KEY)
    for client in others:
        code = first.run("team", "invite", client.name, "--project", KEY).split()[-1]
        client.run("team", "join", url, "--invitation", code)
        client.run("team", "share", KEY)


def test_nothing_is_lost_or_doubled_and_deletions_are_honoured(scene: Scene) -> None:
    chance = random.Random(7)
    join_all(scene)
    later = iter([(c, PAST + n) for n in range(LATER) for c in scene.clients])
    restarts = set(chance.sample(range(SERVER_KILLS), DATABASE_RESTARTS))
    cuts = set(chance.sample(range(SERVER_KILLS), 4))
    for kill in range(SERVER_KILLS):
        for client, session in islice(later, 2):
            client.work(session, 1)
        victim = chance.choice(scene.clients)
        if kill == 8:
            for client in scene.clients:
                client.forget(1)
                client.forget(2, undo=True)
                client.edit(3)
        if kill in cuts:
            scene.network.cut()
        if kill % 2:
            victim.restart()  # also ends its waiting for the server
        if kill in cuts:
            scene.network.connect()
        if kill in restarts:
            scene.postgres.stop(chance.choice((signal.SIGINT, signal.SIGQUIT)))
            scene.postgres.start()
        scene.wait_for_more(chance.randrange(1, 120), chance.uniform(0.3, 1.5))
        scene.server.kill()
        scene.server.start()
    for client, session in later:
        client.work(session, 1)
    for client in scene.clients:
        client.forget(PAST)
        client.run("team", "sync")
        assert client.waiting() == 0
    expected = sorted(
        uid
        for client in scene.clients
        for uid in client.uids - forgotten(client, 1) - forgotten(client, PAST)
    )
    assert sum(len(client.uids) for client in scene.clients) == 5_000
    uids = [row[0] for row in scene.server.sql("SELECT uid FROM claude_mem.turns ORDER BY uid")]
    assert len(uids) == len(set(uids)), "a turn was stored twice"
    assert uids == expected
    check_consistency(scene)


def forgotten(client: Client, session: int) -> set[str]:
    name = f"{client.name}-{session}"
    return {turn_uid(name, f"{name}-{number}") for number in range(1, SIZE + 1)}


def check_consistency(scene: Scene) -> None:
    sql = scene.server.sql
    counted = sql(
        "SELECT turns, bytes, passages FROM claude_mem.projects",
    )
    actual = sql("SELECT count(*), sum(bytes), sum(passages) FROM claude_mem.turns")
    passages = sql("SELECT count(*) FROM claude_mem.passages")
    assert counted == actual and passages[0][0] == actual[0][2]
    edited = "SELECT count(*) FROM claude_mem.turns WHERE title LIKE 'Edited %'"
    assert sql(edited) == [[str(CLIENTS * SIZE)]]
    for client in scene.clients:
        for session in (1, PAST):
            name = f"{client.name}-{session}"
            left = f"SELECT count(*) FROM claude_mem.passages WHERE text LIKE '%of {name}:%'"
            assert sql(left) == [["0"]], "forgotten text is still there"
