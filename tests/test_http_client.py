"""Requests to configured servers: where they may go, and what counts as a response."""

import asyncio
import shutil
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from claude_mem import http_client
from claude_mem.errors import InvalidCertificate, RequestFailed
from claude_mem.http_client import Response, post_json, post_json_blocking
from claude_mem.urls import url_problem
from tests.fake_api import FakeApi, json_response, raw_server


@pytest.mark.parametrize(
    ("url", "is_allowed"),
    [
        ("https://openrouter.ai/api/v1", True),
        ("http://127.0.0.1:11434/v1", True),
        ("http://127.8.9.10:11434/v1", True),
        ("http://localhost:1234/v1", True),
        ("http://[::1]:1234/v1", True),
        ("http://models.example/v1", False),
        ("http://127.0.0.1.models.example/v1", False),
        ("http://127.models.example/v1", False),
        ("http://localhost.models.example/v1", False),
        ("http://192.168.1.5:11434/v1", False),
        ("https://name:word@models.example/v1", False),
        ("ftp://models.example", False),
        ("file:///etc/passwd", False),
        ("models.example", False),
        ("https://", False),
        ("https://[::1", False),
        ("https://models.example:99999/", False),
        ("", False),
    ],
)
def test_only_https_or_this_machine_is_allowed(url: str, is_allowed: bool) -> None:
    assert (url_problem(url) == "") is is_allowed
    if not is_allowed:
        with pytest.raises(RequestFailed):
            post(url)


def post(url: str, seconds: float = 30, secret: str = "") -> Response:
    return post_json_blocking(url, {"x-api-key": "sk-secret"}, {"question": 1}, seconds, secret)


OK = b"HTTP/1.1 200 OK\r\n"
NO_RESPONSE = {
    "nothing": b"",
    "not HTTP": b"hello\r\n\r\n",
    "headers only": OK + b"content-length: 100\r\n\r\n",
    "cut off": OK + b'content-length: 100\r\n\r\n{"a":',
    "cut chunks": OK + b"transfer-encoding: chunked\r\n\r\n5\r\n{}",
    "an endless header": OK + b"x: " + b"y" * 200_000,
}


@pytest.mark.parametrize("name", NO_RESPONSE)
def test_an_incomplete_response_is_a_failure(name: str) -> None:
    with (
        raw_server(NO_RESPONSE[name]) as server,
        pytest.raises(RequestFailed, match="connection failed"),
    ):
        post(server.url)


NO_OBJECT = {
    "not JSON": OK + b"content-length: 5\r\n\r\nhello",
    "a list": OK + b"content-length: 2\r\n\r\n[]",
    "deep JSON": OK + b"\r\n" + b"[" * 100_000,
    "compressed": OK + b"content-encoding: gzip\r\ncontent-length: 2\r\n\r\n\x1f\x8b",
}


@pytest.mark.parametrize("name", NO_OBJECT)
def test_a_response_without_a_json_object_says_so(name: str) -> None:
    with raw_server(NO_OBJECT[name]) as server:
        response = post(server.url)
    with pytest.raises(RequestFailed, match="JSON"):
        response.json_object()


def test_a_response_beyond_the_limit_is_not_read_to_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http_client, "MAX_RESPONSE_BYTES", 1000)
    fits = OK + b"\r\n" + b"x" * 1000
    with raw_server(fits) as server:
        assert len(post(server.url).text) == 1000
    with raw_server(fits + b"x") as server, pytest.raises(RequestFailed):
        post(server.url)


def test_a_port_without_a_server_is_a_failure() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(RequestFailed, match="ConnectError"):
        post(f"http://127.0.0.1:{port}")


def test_no_redirect_is_followed(api: FakeApi) -> None:
    there = f"HTTP/1.1 307 Go\r\nlocation: {api.url}/v1/messages\r\ncontent-length: 0\r\n\r\n"
    with raw_server(there.encode()) as server:
        assert post(server.url).status == 307
    assert api.requests == []


def test_a_key_that_a_server_repeats_is_removed() -> None:
    refusal = {"error": "Incorrect API key provided: sk-secret."}
    with raw_server(json_response(refusal, "401 Unauthorized")) as server:
        response = post(server.url, secret="sk-secret")
    assert response.text == '{"error": "Incorrect API key provided: (key)."}'


def test_a_short_key_is_no_secret() -> None:
    with raw_server(OK + b"content-length: 6\r\n\r\nmaxima") as server:
        assert post(server.url, secret="x").text == "maxima"


def test_a_remote_host_is_reached_through_the_proxy_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with raw_server(b"HTTP/1.1 403 No\r\n\r\n") as server:
        monkeypatch.setenv("https_proxy", f"127.0.0.1:{server.port}")
        monkeypatch.setenv("no_proxy", "")
        with pytest.raises(RequestFailed):
            post("https://models.invalid/v1")
    assert server.received.startswith(b"CONNECT models.invalid:443 ")
    assert b"sk-secret" not in server.received


def test_this_machine_is_never_reached_through_a_proxy(
    monkeypatch: pytest.MonkeyPatch, api: FakeApi
) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert post(f"{api.url}/v1/messages").status == 200
    assert len(api.requests) == 1


@pytest.mark.skipif(shutil.which("openssl") is None, reason="makes the certificate")
def test_a_certificate_that_nobody_signed_is_refused_before_anything_is_sent(
    tmp_path: Path,
) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out",
         certificate, "-days", "1", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=DNS:localhost"],
        check=True, capture_output=True,
    )  # fmt: skip
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(certificate, key)
    with (
        raw_server(OK + b"content-length: 2\r\n\r\n{}", tls) as server,
        pytest.raises(InvalidCertificate, match=r"self.signed"),
    ):
        post(f"https://127.0.0.1:{server.port}")
    assert server.received == b""


@contextmanager
def silent_server() -> Iterator[tuple[str, threading.Event, threading.Event]]:
    """Reads a request and never answers; tells that it was asked, and that the client is gone."""
    asked, is_gone = threading.Event(), threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(65536)
                asked.set()
                while connection.recv(65536):
                    pass
                is_gone.set()

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}", asked, is_gone
        thread.join()


def test_a_cancelled_request_closes_its_connection() -> None:
    with silent_server() as (url, asked, is_gone):

        async def cancel() -> None:
            request = asyncio.create_task(post_json(url, {}, {}, 60))
            await asyncio.to_thread(asked.wait, 30)
            request.cancel()
            await asyncio.wait([request])
            assert request.cancelled()

        asyncio.run(cancel())
        assert is_gone.wait(30)


def test_the_time_limit_is_for_the_whole_request_and_closes_the_connection() -> None:
    with silent_server() as (url, _, is_gone):
        with pytest.raises(RequestFailed, match="no response within 0 seconds"):
            post(url, seconds=0.2)
        assert is_gone.wait(30)


def test_httpx_is_imported_with_the_first_request_only() -> None:
    script = (
        "import sys, claude_mem.daemon, claude_mem.cli, claude_mem.index.embedders.endpoint\n"
        "import claude_mem.observer.models.apis\n"
        "print('httpx' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout == "False\n", done.stderr
