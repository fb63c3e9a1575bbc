"""A client of claude-mem for editors without hooks. Needs nothing but Python 3.11 or newer."""

import json
import os
import subprocess
import time
import urllib.parse
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Connection:
    """Where the worker listens, and the token of this installation."""

    address: str
    token: str

    @classmethod
    def open(cls, data_dir: Path | None = None) -> "Connection":
        """Starts the worker if it is not running."""
        subprocess.run(["claude-mem", "worker", "start"], check=True, capture_output=True)
        data_dir = data_dir or data_directory()
        state = json.loads((data_dir / "worker.json").read_text())
        token = (data_dir / "token").read_text().strip()
        return cls(f"http://127.0.0.1:{state['port']}", token)

    def get(self, path: str, **parameters: str) -> bytes:
        return self._request(f"{path}?{urllib.parse.urlencode(parameters)}")

    def post(self, path: str, **fields: Any) -> Any:
        return json.loads(self._request(path, json.dumps(fields).encode()))

    def _request(self, path: str, body: bytes | None = None) -> bytes:
        headers = {"Authorization": f"Bearer {self.token}"}
        request = urllib.request.Request(self.address + path, data=body, headers=headers)
        with urllib.request.urlopen(request, timeout=30) as response:
            content: bytes = response.read()
        return content


@dataclass(frozen=True)
class Session:
    """One conversation with an agent."""

    connection: Connection
    id: str
    directory: str

    def context(self) -> str:
        """What earlier sessions left for this one: put it before the first message, as it is."""
        return self.connection.get("/api/context/inject", project_dir=self.directory).decode()

    def prompt(self, text: str) -> None:
        self._send("init", prompt=text)

    def tool(self, name: str, tool_input: Any, response: Any) -> None:
        self._send(
            "observations",
            tool_name=name,
            tool_input=tool_input,
            tool_response=response,
            timestamp=int(time.time() * 1000),
        )

    def end_turn(self, last_message: str) -> None:
        """The agent has answered; the turn is summarised now."""
        self._send("summarize", last_assistant_message=last_message)

    def end(self) -> None:
        self._send("complete", reason="exit")

    def search(self, query: str) -> list[dict[str, Any]]:
        matches: list[dict[str, Any]] = json.loads(self.connection.get("/api/search", query=query))[
            "results"
        ]
        return matches

    def _send(self, action: str, **fields: Any) -> None:
        session = {"contentSessionId": self.id, "project_dir": self.directory}
        self.connection.post(f"/api/sessions/{action}", **session, **fields)


def data_directory() -> Path:
    return Path(os.environ.get("CLAUDE_MEM_DATA_DIR") or Path.home() / ".claude-mem")
