"""The HTTP application in process: a real store in a directory of its own, and a clock to turn."""

import asyncio
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from starlette.types import ASGIApp

from claude_mem.config import Layout, load_settings
from claude_mem.hook import spool
from claude_mem.server.app import create_app
from claude_mem.server.guard import Guard
from claude_mem.store import Store
from claude_mem.types import Json
from claude_mem.worker.loop import Worker
from tests.payloads import PROJECT_DIR, Payload, as_bytes
from tests.rows import CommittedRows

SESSION_START = "/hook/session-start"


@dataclass
class Clock:
    ms: int = 1_763_200_000_000

    def __call__(self) -> int:
        return self.ms


@dataclass
class Api(CommittedRows):
    """A client without a network; `worker` does nothing but what a request or a test asks of it."""

    worker: Worker
    clock: Clock
    app: ASGIApp
    runner: asyncio.Runner
    client: httpx.AsyncClient

    @property
    def layout(self) -> Layout:
        return self.worker.settings.layout

    def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        return self.runner.run(self.client.request(method, path, **options))

    def get(self, path: str, **parameters: Any) -> httpx.Response:
        return self.request("GET", path, params=parameters)

    def post(self, path: str, **fields: Any) -> httpx.Response:
        return self.request("POST", path, json=fields)

    def send(self, path: str, content: bytes) -> httpx.Response:
        return self.request("POST", path, content=content)

    def said(self, path: str, **fields: Any) -> dict[str, Any]:
        """The answer to a POST that must be good."""
        answer = self.post(path, **fields)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def read(self, path: str, **parameters: Any) -> Any:
        answer = self.get(path, **parameters)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def catch_up(self) -> None:
        """What the worker's loop does when it wakes."""
        self.runner.run(self.worker.catch_up())

    def have_turn(self, session: str, prompt: str, said: str, project_dir: str = PROJECT_DIR,
                  edited: str | None = None) -> int:  # fmt: skip
        """One whole turn, remembered; a second later it is another time. The session's row."""
        self.clock.ms += 1000
        about = {"contentSessionId": session, "project_dir": project_dir}
        row = int(self.said("/api/sessions/init", prompt=prompt, **about)["sessionDbId"])
        if edited:
            change = {"file_path": edited, "old_string": "one", "new_string": "two"}
            self.said("/api/sessions/observations", tool_name="Edit", tool_input=change, **about)
        self.said("/api/sessions/summarize", last_assistant_message=said, **about)
        self.catch_up()
        return row

    def start_session(self, payload: Payload, project_dir: str = PROJECT_DIR) -> httpx.Response:
        """As the hook does: into the spool first, then the question."""
        self.clock.ms += 1000
        head = record_header(self.clock.ms, project_dir)
        spool.put(bytes(self.layout.root), head, as_bytes(payload))
        return self.send(SESSION_START, head + as_bytes(payload))

    def bytes_on_disk(self) -> bytes:
        files = (path for path in self.layout.root.rglob("*") if path.is_file())
        return b"\n".join(path.read_bytes() for path in files)


def record_header(ms: int, project_dir: str = PROJECT_DIR, event: str = "SessionStart") -> bytes:
    return spool.header(b"claude", event.encode(), ms * 1_000_000, project_dir.encode())


@contextmanager
def open_api(directory: Path, *, token: str | None = None, **environ: str) -> Iterator[Api]:
    """As the Unix socket serves it; with a token, as the TCP port does."""
    environ["CLAUDE_MEM_DATA_DIR"] = str(directory)
    settings = load_settings(environ)
    settings.layout.create()
    clock = Clock()
    store = Store.open(settings.layout.database, settings.layout.backups, clock=clock)
    worker = Worker(settings, store, clock, environ=environ)
    state: dict[str, Json] = {"pid": 1, "version": "0", "port": None}
    app: ASGIApp = create_app(worker, lambda: state, for_socket=token is None)
    if token is not None:
        app = Guard(app, token)
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    with closing(store), asyncio.Runner() as runner:
        client = httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:37777")
        try:
            yield Api(worker, clock, app, runner, client)
        finally:
            runner.run(client.aclose())
