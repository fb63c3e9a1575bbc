"""How the team server is run: with TLS by certificate files, and in several processes."""

import os
import signal
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.conftest import temporary_home, wait_until
from tests.postgres import running_postgres
from tests.team import TeamServer

pytestmark = pytest.mark.extra


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TeamServer]:
    """Two processes, with a certificate that only those trust who have its file."""
    root = tmp_path_factory.mktemp("serving")
    certificate, key = root / "server.pem", root / "server.key"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
         "-subj", "/CN=claude-mem", "-addext", "subjectAltName=IP:127.0.0.1",
         "-keyout", key, "-out", certificate],
        check=True, capture_output=True,
    )  # fmt: skip
    options = ("--certificate", str(certificate), "--key", str(key), "--processes", "2")
    with running_postgres() as postgres:
        postgres.create_database("serving")
        server = TeamServer(postgres, "serving", root, options=options, trusted=certificate)
        server.start()
        try:
            yield server
        finally:
            server.kill(signal.SIGTERM)


def children(pid: int) -> set[int]:
    """The processes that serve; a process of multiprocessing tracks resources of the first."""
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    pids = {int(child) for task in tasks for child in task.read_text().split()}
    return {pid for pid in pids if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()}


def test_clients_trust_the_certificate_that_their_system_does(
    server: TeamServer, tmp_path: Path
) -> None:
    with pytest.raises(httpx.ConnectError, match="certificate verify failed"):
        httpx.get(f"{server.url}/health", verify=ssl.create_default_context())
    join = ("team", "join", server.url, "--invitation", server.invite("Alice"))
    with temporary_home(tmp_path) as home:
        refused = home.command(*join)
        assert refused.returncode == 1 and "certificate" in refused.stderr
        joined = home.command(*join, SSL_CERT_FILE=str(server.trusted))
        assert joined.returncode == 0, joined.stderr
        assert "as Alice" in joined.stdout


def test_without_tls_nothing_is_answered(server: TeamServer) -> None:
    with pytest.raises(httpx.HTTPError):
        httpx.get(f"http://127.0.0.1:{server.port}/health", timeout=5)


def test_a_process_that_dies_is_replaced(server: TeamServer) -> None:
    pid = server.pid
    before = wait_until(lambda: len(children(pid)) == 2 and children(pid), "two processes")
    os.kill(min(before), signal.SIGKILL)
    wait_until(lambda: len(children(pid)) == 2 and children(pid) != before, "a new process")
    wait_until(server.is_ready, "an answer")
