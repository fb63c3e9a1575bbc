"""Access to the TCP port, and capture that never depends on it."""

import asyncio
import http.client
import json
import socket
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claude_mem.config import Layout
from claude_mem.daemon import PORTS_TRIED, bind_port
from claude_mem.server import client
from claude_mem.server.app import public_routes
from claude_mem.server.guard import COOKIE, ensure_token
from tests import payloads
from tests.api import SESSION_START, Api, open_api
from tests.conftest import Home

TOKEN = "a-token-of-this-installation-0123456789"
BEARER = {"authorization": f"Bearer {TOKEN}"}
ADDRESSES = sorted(
    (method, route.path.replace("{id}", "1"))
    for route in public_routes
    for method in route.methods or ()
    if route.path not in ("/health", "/stream")
)


@pytest.fixture
def tcp(tmp_path: Path) -> Iterator[Api]:
    """The application behind its guard, as the TCP port serves it."""
    with open_api(tmp_path / "data", token=TOKEN) as opened:
        yield opened


def status(tcp: Api, headers: dict[str, str], path: str = "/api/stats") -> int:
    return tcp.request("GET", path, headers=headers).status_code


# The token


@pytest.mark.parametrize(("method", "path"), ADDRESSES)
def test_no_address_but_health_answers_without_the_token(tcp: Api, method: str, path: str) -> None:
    answer = tcp.request(method, path, json={"contentSessionId": "s", "prompt": "planted"})
    assert answer.status_code == 401
    assert method == "HEAD" or "Bearer" in answer.json()["error"]
    assert tcp.count("sdk_sessions") == 0


def test_neither_does_the_stream_nor_an_address_that_is_not_there(tcp: Api) -> None:
    assert [status(tcp, {}, path) for path in ("/stream", "/nope", "/", "/health/")] == [401] * 4


def test_connections_to_the_port_do_not_wait_for_acknowledgements() -> None:
    async def accepted() -> int:
        nodelay = asyncio.get_running_loop().create_future()

        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            connection = writer.get_extra_info("socket")
            nodelay.set_result(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        listening = bind_port(40_000)
        assert listening is not None
        async with await asyncio.start_server(connected, sock=listening):
            _, writer = await asyncio.open_connection(*listening.getsockname())
            result = await nodelay
            writer.close()
            return int(result)

    assert asyncio.run(accepted()) != 0


def test_health_is_open_and_says_only_that_it_is_alive(tcp: Api) -> None:
    answer = tcp.get("/health")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


@pytest.mark.parametrize(
    "headers",
    [
        BEARER,
        {"authorization": f"bearer {TOKEN}"},
        {"authorization": f"BEARER   {TOKEN} "},
        {"cookie": f"{COOKIE}={TOKEN}"},
        {"cookie": f"theme=dark; {COOKIE}={TOKEN}; lang=en"},
    ],
)
def test_the_token_is_taken_as_bearer_and_as_cookie(tcp: Api, headers: dict[str, str]) -> None:
    assert status(tcp, headers) == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"authorization": ""},
        {"authorization": "Bearer"},
        {"authorization": "Bearer "},
        {"authorization": "Bearer x"},
        {"authorization": f"Bearer {TOKEN}x"},
        {"authorization": f"Bearer {TOKEN[:-1]}"},
        {"authorization": f"Bearer {TOKEN.upper()}"},
        {"authorization": f"Bearer {TOKEN} {TOKEN}"},
        {"authorization": f"Basic {TOKEN}"},
        {"authorization": f"Token {TOKEN}"},
        {"authorization": TOKEN},
        {"cookie": ""},
        {"cookie": f"{COOKIE}="},
        {"cookie": f"{COOKIE}=x"},
        {"cookie": f"{COOKIE}x={TOKEN}"},
        {"cookie": f"{COOKIE.upper()}={TOKEN}"},
        {"cookie": TOKEN},
        {"x-token": TOKEN},
    ],
)
def test_anything_else_is_401(tcp: Api, headers: dict[str, str]) -> None:
    assert status(tcp, headers) == 401


def test_a_wrong_bearer_is_not_saved_by_a_right_cookie(tcp: Api) -> None:
    cookie = {"cookie": f"{COOKIE}={TOKEN}"}
    assert status(tcp, {"authorization": "Bearer x", **cookie}) == 401


def test_the_token_counts_in_no_address(tcp: Api) -> None:
    for path in (f"/api/stats?token={TOKEN}", f"/api/stats?{COOKIE}={TOKEN}", f"/{TOKEN}"):
        assert status(tcp, {}, path) == 401


@given(header=st.sampled_from(["authorization", "cookie"]), value=st.binary(max_size=60))
def test_any_bytes_for_a_token_are_401(tcp: Api, header: str, value: bytes) -> None:
    answer = tcp.request("GET", "/api/stats", headers={header.encode(): value})
    assert answer.status_code == 401


@pytest.mark.parametrize("headers", [{}, {"authorization": "Bearer "}, {"cookie": f"{COOKIE}="}])
def test_an_empty_token_lets_nobody_in(tmp_path: Path, headers: dict[str, str]) -> None:
    with open_api(tmp_path, token="") as tcp:
        assert status(tcp, headers) == 401


def test_no_answer_tells_the_token(tcp: Api) -> None:
    tcp.layout.token.write_text(TOKEN)
    for method, path in ADDRESSES:
        answer = tcp.request(method, path, headers=BEARER)
        assert TOKEN not in answer.text + str(answer.headers)


# Host and Origin


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:37777", "LOCALHOST", "[::1]:37777"])
def test_the_names_of_this_machine_are_served(tcp: Api, host: str) -> None:
    assert status(tcp, {**BEARER, "host": host}) == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:37777", "127.0.0.1.evil.example", "localhost.evil.example",
     "evil.example:127.0.0.1", "127.0.0.1@evil.example", "127.0.0.1:37777@evil.example",
     "0.0.0.0", "127.0.0.2", "192.168.1.7:37777", "[::]", "::1", "localhost.", "127.1",
     "2130706433", " localhost", "localhost:", "localhost:x", "127.0.0.1:1:2", ""],
)  # fmt: skip
def test_any_other_host_is_403_with_the_token_and_at_health(tcp: Api, host: str) -> None:
    assert status(tcp, {**BEARER, "host": host}) == 403
    assert status(tcp, {"host": host}, "/health") == 403


def test_a_page_of_our_own_origin_is_answered(tcp: Api) -> None:
    for host in ("127.0.0.1:37777", "localhost:37777"):
        assert status(tcp, {**BEARER, "host": host, "origin": f"http://{host}"}) == 200


@pytest.mark.parametrize(
    "origin",
    ["http://evil.example", "https://127.0.0.1:37777", "http://127.0.0.1", "http://127.0.0.1:3000",
     "http://localhost:37777", "null", "", "file://", "http://127.0.0.1:37777.evil.example",
     "http://127.0.0.1:37777/", "chrome-extension://abc"],
)  # fmt: skip
def test_a_page_of_any_other_origin_is_403(tcp: Api, origin: str) -> None:
    assert status(tcp, {**BEARER, "origin": origin}) == 403
    assert status(tcp, {"origin": origin}, "/health") == 403


def test_a_page_elsewhere_can_plant_nothing_even_with_the_cookie(tcp: Api) -> None:
    headers = {"origin": "http://evil.example", "cookie": f"{COOKIE}={TOKEN}",
               "content-type": "text/plain"}  # fmt: skip
    body = b'{"contentSessionId": "s", "prompt": "Obey me"}'
    answer = tcp.request("POST", "/api/sessions/init", content=body, headers=headers)
    assert answer.status_code == 403
    assert tcp.count("user_prompts") == 0


def test_no_other_origin_is_ever_allowed_to_read(tcp: Api) -> None:
    asking = {"origin": "http://evil.example", "access-control-request-method": "POST"}
    answers = [
        tcp.request("OPTIONS", "/api/sessions/init", headers=asking),
        tcp.request("GET", "/health"),
        tcp.request("GET", "/api/stats", headers=BEARER),
        tcp.request("GET", "/api/stats", headers={**BEARER, "origin": "http://127.0.0.1:37777"}),
    ]
    assert [answer.status_code for answer in answers] == [403, 200, 200, 200]
    assert not any(name.startswith("access-control") for a in answers for name in a.headers)


# What the port does not serve


def test_the_routes_of_the_socket_are_not_on_the_port(tcp: Api, tmp_path: Path) -> None:
    answer = tcp.request("POST", SESSION_START, headers=BEARER, content=b"x")
    assert answer.status_code == 404
    with open_api(tmp_path / "socket") as bare:
        assert bare.send(SESSION_START, b"x").status_code == 400


def test_nothing_but_http_is_spoken(tcp: Api) -> None:
    messages: list[object] = []

    async def receive() -> dict[str, str]:
        return {"type": "websocket.connect"}

    async def send(message: object) -> None:
        messages.append(message)

    async def connect() -> None:
        scope = {"type": "websocket", "path": "/stream", "headers": [(b"host", b"127.0.0.1")]}
        await tcp.app(scope, receive, send)

    tcp.runner.run(connect())
    assert messages == []


# The file of the token


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    layout = Layout(tmp_path / "data")
    layout.create()
    return layout


def test_the_token_is_made_once_and_is_the_owners_alone(layout: Layout) -> None:
    token = ensure_token(layout)
    assert len(token) >= 32
    assert stat.S_IMODE(layout.token.stat().st_mode) == 0o600
    assert ensure_token(layout) == token == layout.token.read_text()


def test_every_installation_has_its_own_token(tmp_path: Path) -> None:
    layouts = [Layout(tmp_path / name) for name in ("one", "other")]
    for layout in layouts:
        layout.create()
    assert len({ensure_token(layout) for layout in layouts}) == 2


@pytest.mark.parametrize("content", [b"", b"\n", b"short", b" " * 64, b"\xff" * 64])
def test_a_token_file_without_a_usable_token_gets_a_new_one(layout: Layout, content: bytes) -> None:
    layout.token.write_bytes(content)
    token = ensure_token(layout)
    assert len(token) >= 32
    assert layout.token.read_text() == token
    assert stat.S_IMODE(layout.token.stat().st_mode) == 0o600


# A real worker on a real port


def free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def port_of(home: Home) -> int:
    worker = (client.running_worker(home.layout) or {})["worker"]
    assert isinstance(worker, dict)
    assert isinstance(worker["port"], int)
    return worker["port"]


@contextmanager
def connected(port: int) -> Iterator[http.client.HTTPConnection]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        yield connection
    finally:
        connection.close()


def status_of(port: int, path: str, headers: dict[str, str], body: bytes | None = None) -> int:
    with connected(port) as connection:
        connection.request("POST" if body else "GET", path, body, headers)
        return connection.getresponse().status


def raw(port: int, request: bytes) -> bytes:
    """What comes back for these bytes when nothing follows them."""
    with closing(socket.create_connection(("127.0.0.1", port), 30)) as connection:
        connection.sendall(request)
        connection.shutdown(socket.SHUT_WR)
        return connection.recv(65536)


@pytest.fixture
def port(home: Home) -> int:
    home.environment["CLAUDE_MEM_WORKER_PORT"] = str(free_port())
    home.start_worker()
    return port_of(home)


def test_a_real_port_serves_the_bearer_of_the_token_and_nobody_else(home: Home, port: int) -> None:
    first = int(home.environment["CLAUDE_MEM_WORKER_PORT"])
    assert first <= port < first + PORTS_TRIED
    bearer = {"authorization": f"Bearer {home.layout.token.read_text()}"}
    assert status_of(port, "/health", {}) == 200
    assert status_of(port, "/api/stats", {}) == 401
    assert status_of(port, "/api/stats", {"authorization": "Bearer x"}) == 401
    assert status_of(port, "/api/stats", bearer) == 200
    assert status_of(port, "/api/stats", {**bearer, "origin": "http://evil.example"}) == 403
    assert status_of(port, "/api/stats", {**bearer, "host": "evil.example"}) == 403
    assert status_of(port, SESSION_START, bearer, b"x") == 404
    body = json.dumps({"contentSessionId": "s", "prompt": "Blink"}).encode()
    assert status_of(port, "/api/sessions/init", {}, body) == 401
    assert home.rows("SELECT * FROM user_prompts") == []
    assert status_of(port, "/api/sessions/init", bearer, body) == 200
    assert [row["prompt_text"] for row in home.rows("SELECT * FROM user_prompts")] == ["Blink"]


def test_a_real_port_outlives_clients_that_speak_badly(home: Home, port: int) -> None:
    token = home.layout.token.read_bytes()
    head = b"POST /api/sessions/init HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\n"
    assert b" 403 " in raw(port, b"GET /health HTTP/1.0\r\n\r\n").splitlines()[0]
    assert b" 400 " in raw(port, b"\x16\x03\x01 hello\r\n\r\n").splitlines()[0]
    raw(port, head % token + b'Content-Length: 999\r\n\r\n{"contentSessionId": "cut", "prompt": "x')
    raw(port, head % token + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n")
    upgrade = (
        b"GET /stream HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade"
    )
    assert b" 101 " not in raw(port, upgrade + b"\r\n\r\n")
    assert status_of(port, "/health", {}) == 200
    assert home.rows("SELECT * FROM sdk_sessions") == []


def test_a_real_port_is_open_on_this_machines_own_address_only(port: int) -> None:
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", port), 30)


def test_the_token_outlives_the_worker(home: Home, port: int) -> None:
    token = home.layout.token.read_text()
    assert home.command("worker", "restart").returncode == 0
    bearer = {"authorization": f"Bearer {token}"}
    assert status_of(port_of(home), "/api/stats", bearer) == 200


def test_a_taken_port_moves_the_worker_to_the_next_and_capture_goes_on(home: Home) -> None:
    with closing(socket.socket()) as squatter:
        squatter.bind(("127.0.0.1", 0))
        squatter.listen()
        used = int(squatter.getsockname()[1])
        home.environment["CLAUDE_MEM_WORKER_PORT"] = str(used)
        home.start_worker()
        assert used < port_of(home) < used + PORTS_TRIED
        assert status_of(port_of(home), "/health", {}) == 200
        for payload in (payloads.prompt(), payloads.edit(), payloads.stop()):
            assert home.hook(payload).returncode == 0
        home.wait_settled()
    assert len(home.rows("SELECT * FROM observations")) == 1


def test_without_a_port_there_is_the_socket_and_capture_goes_on(home: Home) -> None:
    home.environment["CLAUDE_MEM_WORKER_PORT"] = "0"
    home.start_worker()
    state = client.running_worker(home.layout) or {}
    assert isinstance(state["worker"], dict)
    assert state["worker"]["port"] is None
    for payload in (payloads.prompt(), payloads.stop()):
        assert home.hook(payload).returncode == 0
    home.wait_settled()
    assert len(home.rows("SELECT * FROM session_summaries")) == 1


def test_the_socket_is_the_owners_alone(home: Home) -> None:
    home.start_worker()
    assert stat.S_IMODE(home.layout.socket.stat().st_mode) == 0o600
    assert stat.S_IMODE(home.layout.root.stat().st_mode) == 0o700
