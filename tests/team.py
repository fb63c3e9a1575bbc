"""Turns as a client pushes them, a team server as a process, and its members."""

import json
import os
import secrets
import signal
import ssl
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from claude_mem.team.wire import Item, TurnItem, turn_uid
from tests.conftest import wait_until
from tests.postgres import Postgres
from tests.test_guard import free_port

MOMENT = 1_760_000_000_000


def turn_item(
    session: str = "session-a",
    number: int = 1,
    *,
    title: str = "Blink the harbour light twice",
    prompt: str = "Make the harbour light blink twice",
    narrative: str = "",
    record: str = "",
    version: int = MOMENT,
    sealed: int = 0,
    moment: int = MOMENT,
    **changes: Any,
) -> TurnItem:
    at = {"created_at": "2025-10-09T08:53:20.000Z", "created_at_epoch": moment + number * 1_000}
    prompt_id = f"{session}-{number}"
    rows: list[dict[str, Any]] = [
        {"table": "sdk_sessions", "content_session_id": session, "dialect": "claude",
         "status": "completed", "title": f"Session {session}", "prompt_counter": number,
         "started_at": at["created_at"], "started_at_epoch": moment,
         "updated_at": at["created_at"], "updated_at_epoch": moment},
        {"table": "user_prompts", "prompt_id": prompt_id, "prompt_number": number,
         "prompt_text": prompt, "private": 0, "closed": 1, "updated_at_epoch": moment, **at},
        {"table": "session_summaries", "prompt_number": number, "request": prompt,
         "completed": narrative or title, "observer": "local", **at},
        {"table": "observations", "ordinal": 0, "prompt_number": number, "type": "feature",
         "title": title, "narrative": narrative or title, "observer": "local", **at},
    ]  # fmt: skip
    if record:
        parts = json.dumps([["statement", "agent", record]])
        rows.append({"table": "turn_records", "parts": parts, "bytes": len(parts),
                     "created_at_epoch": moment})  # fmt: skip
    return TurnItem(turn_uid(session, prompt_id), version, sealed, tuple(rows), **changes)


class TeamServer:
    """`claude-mem team serve` as a process, which a test may kill and start again."""

    def __init__(
        self,
        postgres: Postgres,
        database: str,
        directory: Path,
        port: int = 0,
        options: Sequence[str] = (),
        trusted: Path | None = None,
        user: str = "postgres",
    ) -> None:
        """`trusted`: the certificate that the server has. `user`: of the database."""
        self.postgres, self.database = postgres, database
        self.options, self.trusted = options, trusted
        self.database_url = postgres.url_of(database, user)
        self.log = directory / f"{database}.log"
        self.port = port or free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"{'http' if self.trusted is None else 'https'}://127.0.0.1:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        return {"PATH": os.environ["PATH"], "HOME": str(self.log.parent),
                "CLAUDE_MEM_TEAM_DATABASE_URL": self.database_url}  # fmt: skip

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        command = ["team", "serve", "--listen", f"127.0.0.1:{self.port}", *self.options]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "claude_mem", *command],
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
            )
        wait_until(self.is_ready, "the start of the team server")

    def is_ready(self) -> bool:
        try:
            return self.get("/ready").status_code == 200
        except httpx.HTTPError:
            return False

    def get(self, path: str) -> httpx.Response:
        verify = True if self.trusted is None else ssl.create_default_context(cafile=self.trusted)
        return httpx.get(f"{self.url}{path}", timeout=5, verify=verify)

    def kill(self, how: int = signal.SIGKILL) -> None:
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(timeout=30)
            self._process = None

    def command(self, *arguments: str, seconds: float = 60) -> str:
        """Runs a command of the operator, on the server's machine."""
        result = subprocess.run(
            [sys.executable, "-m", "claude_mem", "team", *arguments],
            env=self.environment, capture_output=True, text=True, stdin=subprocess.DEVNULL,
            timeout=seconds,
        )  # fmt: skip
        assert result.returncode == 0, result.stderr
        return result.stdout.strip()

    def sql(self, *statements: str) -> list[list[str]]:
        return self.postgres.sql(self.database, *statements)

    def content(self) -> str:
        """All that is stored of turns."""
        return str(self.sql("SELECT content FROM claude_mem.turns"))

    def invite(self, name: str, *scopes: str) -> str:
        """Invites by SQL, as many tests need someone: the command has a test of its own."""
        code = secrets.token_urlsafe(16)
        listed = ",".join(scopes or ("read", "write", "admin"))
        self.sql(
            "INSERT INTO claude_mem.invitations (hash, person_name, scopes, project_ids, role,"
            f" expires_at) VALUES (sha256('{code}'), '{name}', '{{{listed}}}', '{{}}', 'writer',"
            " now() + interval '1 day')"
        )
        return code

    def join(self, name: str, *scopes: str) -> "Member":
        return self.accept(self.invite(name, *scopes))

    def accept(self, code: str) -> "Member":
        response = httpx.post(f"{self.url}/v1/join", json={"code": code, "machine": "test"})
        assert response.status_code == 200, response.text
        return Member(self, response.json()["token"])


class Member:
    """Someone with a token, who calls the server's routes."""

    def __init__(self, server: TeamServer, token: str) -> None:
        self.server, self.token = server, token

    def request(self, path: str, **body: Any) -> httpx.Response:
        headers = {"Authorization": f"Bearer {self.token}"}
        return httpx.post(f"{self.server.url}/v1/{path}", json=body, headers=headers, timeout=120)

    def ask(self, path: str, **body: Any) -> Any:
        response = self.request(path, **body)
        assert response.status_code == 200, response.text
        return response.json()

    def share(self, key: str, *, record: bool = False) -> int:
        return int(self.ask("projects", key=key, name=key, record=record)["id"])

    def invite(self, name: str, *projects: int, role: str = "writer") -> "Member":
        answer = self.ask("invitations", name=name, projects=list(projects), role=role,
                          scopes=["read", "write"])  # fmt: skip
        return self.server.accept(answer["code"])

    def push(self, project: int, *items: Item) -> list[str]:
        body = [item.as_json() for item in items]
        results = self.ask("push", project=project, items=body)["results"]
        return [result["outcome"] for result in results]

    def search(self, query: str, **body: Any) -> list[dict[str, Any]]:
        results: list[dict[str, Any]] = self.ask("search", query=query, **body)["results"]
        return results

    def titles(self, query: str, **body: Any) -> list[str]:
        return [row["title"] for row in self.search(query, **body)]


@contextmanager
def running_team(postgres: Postgres, database: str, directory: Path) -> Iterator[TeamServer]:
    postgres.create_database(database)
    server = TeamServer(postgres, database, directory)
    try:
        server.start()
        yield server
    finally:
        server.kill()
