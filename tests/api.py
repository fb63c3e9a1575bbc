"""The HTTP application in process, with a real store and a clock that tests set."""

import asyncio
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from starlette.types import ASGIApp

from claude_mem.config import Layout, load_settings
from claude_mem.hook import spooling
from claude_mem.server.app import create_app
from claude_mem.server.guard import Guard
from claude_mem.store import Store
from claude_mem.types import Json
from claude_mem.worker.worker import Worker
from tests.empty_database import put_empty_database
from tests.live_files import contents_below
from tests.payloads import PROJECT_DIR, Payload, as_bytes
from tests.rows import CommittedRows

SESSION_START = "/hook/session-start"
PROMPT = "/hook/prompt"


@dataclass
class Clock:
    ms: int = 1_763_200_000_000

    def __call__(self) -> int:
        return self.ms


@dataclass
class Api(CommittedRows):
    """An in-process client. The worker's loop does not run: tests call `catch_up` instead."""

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

    def get(self, path: str, **params: Any) -> httpx.Response:
        return self.request("GET", path, params=params)

    def post(self, path: str, **fields: Any) -> httpx.Response:
        return self.request("POST", path, json=fields)

    def send(self, path: str, content: bytes) -> httpx.Response:
        return self.request("POST", path, content=content)

    def post_json(self, path: str, **fields: Any) -> dict[str, Any]:
        """The body of the response, whose status must be 200."""
        response = self.post(path, **fields)
        assert response.status_code == 200, response.text
        body: dict[str, Any] = response.json()
        return body

    def get_json(self, path: str, **params: Any) -> Any:
        response = self.get(path, **params)
        assert response.status_code == 200, response.text
        return response.json()

    def catch_up(self) -> None:
        """What the worker's loop does when it wakes."""
        self.runner.run(self.worker.catch_up())

    def add_turn(self, session: str, prompt: str, reply: str, project_dir: str = PROJECT_DIR,
                 edited: str | None = None, branch: str | None = None) -> int:  # fmt: skip
        """A complete turn, distilled, one second after the previous; the row id of the session."""
        self.clock.ms += 1000
        about = {"contentSessionId": session, "project_dir": project_dir}
        row = int(self.post_json("/api/sessions/init", prompt=prompt, **about)["sessionDbId"])
        if edited:
            change = {"file_path": edited, "old_string": "one", "new_string": "two"}
            self.post_json(
                "/api/sessions/observations", tool_name="Edit", tool_input=change, **about
            )
        if branch:
            command = {"command": f"git checkout -b {branch}"}
            self.post_json(
                "/api/sessions/observations", tool_name="Bash", tool_input=command, **about
            )
        self.post_json("/api/sessions/summarize", last_assistant_message=reply, **about)
        self.catch_up()
        return row

    def add_sessions(self, count: int, project_dir: str = PROJECT_DIR, name: str = "s") -> None:
        """Sessions of one turn each, which edits a file."""
        for number in range(count):
            self.add_turn(f"{name}{number}", f"Prompt {number}", f"Said {number}.", project_dir,
                          edited=f"{project_dir}/file{number}.py")  # fmt: skip

    def start_session(self, payload: Payload, project_dir: str = PROJECT_DIR) -> httpx.Response:
        """Starts a session as the hook does: the record goes to the spool first, then to the
        worker."""
        self.clock.ms += 1000
        head = record_header(self.clock.ms, project_dir)
        spooling.put(bytes(self.layout.root), head, as_bytes(payload))
        return self.send(SESSION_START, head + as_bytes(payload))

    def submit_prompt(self, payload: Payload, project_dir: str = PROJECT_DIR) -> httpx.Response:
        """Submits a prompt as the hook does: the record goes to the spool first, then to the
        worker."""
        self.clock.ms += 1000
        head = record_header(self.clock.ms, project_dir, "UserPromptSubmit")
        spooling.put(bytes(self.layout.root), head, as_bytes(payload))
        return self.send(PROMPT, head + as_bytes(payload))

    def bytes_on_disk(self) -> bytes:
        return b"\n".join(contents_below(self.layout.root).values())


def record_header(ms: int, project_dir: str = PROJECT_DIR, event: str = "SessionStart") -> bytes:
    return spooling.header(b"claude", event.encode(), ms * 1_000_000, project_dir.encode())


@contextmanager
def open_api(directory: Path, *, token: str | None = None, **environ: str) -> Iterator[Api]:
    """Opens the API as served on the Unix socket; with a token, as served on the TCP port."""
    environ["CLAUDE_MEM_DATA_DIR"] = str(directory)
    settings = load_settings(environ)
    settings.layout.create()
    clock = Clock()
    put_empty_database(settings.layout.database)
    store = Store.open(settings.layout.database, settings.layout.backups, clock=clock)
    worker = Worker(settings, store, clock, environ=environ)
    state: dict[str, Json] = {"pid": 1, "version": "0", "port": None}
    app: ASGIApp = create_app(worker, lambda: state, for_socket=token is None)
    if token is not None:
        app = Guard(app, token, worker.viewer_links.signing_key, clock)
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    with closing(store), asyncio.Runner() as runner:
        client = httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:37777")
        try:
            yield Api(worker, clock, app, runner, client)
        finally:
            runner.run(client.aclose())
