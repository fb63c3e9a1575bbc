"""A real worker on a TCP port, as an editor without hooks sees it: an address and a token."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from claude_mem import paths
from claude_mem.install.launcher import write_launcher
from tests.conftest import Home, wait_until

CONTINUE = {"continue": True, "suppressOutput": True}


class SeedWorker(Home):
    """Requests over TCP, and commands with a payload on stdin."""

    def start(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.environment["CLAUDE_MEM_WORKER_PORT"] = str(free.getsockname()[1])
        self.start_worker()
        self.port = int(str(json.loads(self.layout.worker_state.read_text())["port"]))
        self.token = self.layout.token.read_text()
        self.http = httpx.Client(
            base_url=f"http://127.0.0.1:{self.port}",
            headers={"Authorization": f"Bearer {self.token}"},
            timeout=30,
        )

    def get(self, path: str, **params: Any) -> httpx.Response:
        return self.http.get(path, params=params)

    def post(self, path: str, body: Any = None) -> dict[str, Any]:
        """Posts as the seeds' editors do: a JSON text without a content type."""
        response = self.http.post(path, content=json.dumps(body).encode() if body else b"")
        assert response.status_code == 200, response.text
        answer: dict[str, Any] = response.json()
        return answer

    def run(self, command: str, payload: dict[str, Any] | bytes) -> dict[str, Any]:
        """`claude-mem COMMAND < payload`; what it printed."""
        data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        environment = self.env()
        del environment["CLAUDE_PROJECT_DIR"]  # only Claude Code sets it
        done = subprocess.run(
            [sys.executable, "-m", "claude_mem", command],
            input=data,
            capture_output=True,
            env=environment,
            timeout=60,
        )
        assert (done.returncode, done.stderr) == (0, b"")
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    def session(self, content_session_id: str) -> dict[str, Any]:
        """Returns the row of a session, once it is there."""
        query = "SELECT * FROM sdk_sessions WHERE content_session_id = ?"
        rows = wait_until(lambda: self.rows(query, content_session_id), "the session")
        return dict(rows[0])

    def troubles(self) -> str:
        """What the user would be told at the next start of a session."""
        path = self.layout.root / os.fsdecode(paths.TROUBLE)
        return path.read_text() if path.exists() else ""


@contextmanager
def running_worker(directory: Path) -> Iterator[SeedWorker]:
    worker = SeedWorker(directory / "home")
    worker.path.mkdir()
    worker.layout.create()
    write_launcher(worker.layout)
    try:
        worker.start()
        yield worker
        worker.http.close()
    finally:
        worker.end_worker()
