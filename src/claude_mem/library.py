"""Memory for programs without an agent: `from claude_mem import Memory`.

A `Memory` belongs to one project and talks to the worker, which it starts if none is running; so
several programs and agents can use the same memory at once. The names here are stable: they change
only with a new major version.
"""

import asyncio
import json
import os
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar
from urllib.parse import urlencode

from claude_mem.config import Layout, load_settings
from claude_mem.errors import NotFound, WorkerError
from claude_mem.hook.private_text import strip_payload, strip_private
from claude_mem.intake.projects import open_projects
from claude_mem.rule_violations import Rule
from claude_mem.server import client
from claude_mem.store import StoreReader
from claude_mem.types import Json

P = ParamSpec("P")
T = TypeVar("T")
_POLL_SECONDS = 0.02
_DISTIL_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class ToolUse:
    """Something that the program did in a turn, such as a command or an edit."""

    name: str
    input: Mapping[str, Any]
    output: Any = ""


@dataclass(frozen=True, slots=True)
class Hit:
    """A result of a search: a turn or a saved memory."""

    id: str
    title: str
    snippet: str
    type: str
    created_at: str
    is_strong: bool


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What was forgotten, by kind, and the token that restores it."""

    counts: Mapping[str, int]
    undo: str


@dataclass(slots=True)
class Memory:
    """The memory of one project; open it with `Memory.open`."""

    directory: Path
    _layout: Layout
    _environ: Mapping[str, str]
    _key: str
    session: str = field(default_factory=lambda: f"library-{uuid.uuid4()}")

    @classmethod
    def open(
        cls,
        project: str | Path | None = None,
        *,
        data_dir: str | Path | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> Self:
        """`project` is its directory (default: the current one); `data_dir` holds the memory
        (default: that of the user)."""
        variables = dict(os.environ if environ is None else environ)
        if data_dir is not None:
            variables["CLAUDE_MEM_DATA_DIR"] = str(Path(data_dir).absolute())
        directory = Path(project or Path.cwd()).absolute()
        layout = load_settings(variables).layout
        client.start(layout, variables)
        with StoreReader.open_existing(layout.database) as store:
            key = open_projects(store, variables).of(str(directory)).key
        return cls(directory, layout, variables, key)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends the session of this object; the worker goes on."""
        self._post("/api/sessions/complete", {"session_id": self.session, **self._place})

    def record(
        self, request: str, answer: str, tools: Sequence[ToolUse] = (), *, wait: bool = True
    ) -> None:
        """Records a turn: what was asked, what was done, and what came of it.

        With `wait` it returns when the turn is distilled and can be found.
        """
        turn = {"session_id": self.session, "prompt_id": str(uuid.uuid4()), **self._place}
        self._post("/api/sessions/init", {**turn, "prompt": request}, strip_payload)
        for tool in tools:
            use = {"tool_name": tool.name, "tool_input": dict(tool.input),
                   "tool_response": tool.output, "tool_use_id": str(uuid.uuid4())}  # fmt: skip
            self._post("/api/sessions/observations", {**turn, **use})
        stored = self._post("/api/sessions/summarize", {**turn, "last_assistant_message": answer})
        if wait and "sessionDbId" in stored:
            self._wait_until_distilled(stored["sessionDbId"])

    def remember(
        self,
        text: str,
        *,
        title: str = "",
        type: str = "discovery",  # noqa: A002
        concepts: Sequence[str] = (),
        files: Sequence[str] = (),
    ) -> str:
        """Saves a memory as it is; returns its id."""
        body: dict[str, Json] = {"text": text, "title": title, "type": type,
                                 "concepts": list(concepts), "files": list(files)}  # fmt: skip
        return self._save({name: value for name, value in body.items() if value})

    def _save(self, body: dict[str, Json]) -> str:
        return str(self._post("/api/memories", {**body, **self._place})["id"])

    def search(self, query: str, *, limit: int = 10) -> list[Hit]:
        """The best matches of this project, the best first."""
        try:
            reply = self._get("/api/search", query=query, limit=limit, project=self._key)
        except WorkerError:
            if not self._is_known():
                return []
            raise
        return [
            Hit(row["id"], row["title"], row["snippet"] or "", row["type"], row["created_at"],
                row["strength"] == "strong")
            for row in reply["results"]
        ]  # fmt: skip

    def _search_text(self, query: str, limit: int = 10) -> str:
        """Searches as an agent's tools do: escaped, with marks of what came from outside."""
        if not self._is_known():
            return "No memories match."
        params = {"query": query, "limit": limit, "project": self._key, "format": "text"}
        return client.ask_text(
            self._layout, f"/api/search?{urlencode(params)}", client.COMMAND_SECONDS
        )

    def context(self) -> str:
        """What a new session of an agent in this project would be given; empty without memories."""
        query = urlencode({"project_dir": str(self.directory)})
        return client.ask_text(self._layout, f"/api/context/inject?{query}", client.COMMAND_SECONDS)

    def forget(self, *ids: str) -> Forgotten:
        """Forgets memories by their ids; `undo` restores them for some days."""
        if not ids:
            raise NotFound("no ids were given")
        preview = self._post("/api/forget", {"ids": list(ids)})
        done = self._post("/api/forget", {"ids": list(ids), "confirm": preview["confirm"]})
        return Forgotten(done["counts"], done["undo"])

    def undo(self, forgotten: Forgotten) -> None:
        self._post("/api/forget/undo", {"undo": forgotten.undo})

    def rules(self) -> list[Rule]:
        """The standing rules of the project, as the user stated them."""
        if not self._is_known():
            return []
        rows = self._get("/api/facts", project=self._key, kind="rule", status="holds", limit=200)
        return [Rule(str(row["id"]), row["value"]) for row in rows["facts"] if not row["wrong"]]

    @property
    def data_dir(self) -> Path:
        return self._layout.root

    @property
    def _place(self) -> dict[str, Json]:
        return {"project_dir": str(self.directory)}

    def _is_known(self) -> bool:
        return any(row["key"] == self._key for row in self._get("/api/projects")["projects"])

    def _wait_until_distilled(self, session_db_id: int) -> None:
        deadline = time.monotonic() + _DISTIL_SECONDS
        while self._get(f"/sessions/{session_db_id}/status")["pendingMessages"]:
            if time.monotonic() > deadline:
                raise WorkerError(f"the turn is stored, but was not distilled within"
                                  f" {_DISTIL_SECONDS:.0f} s")  # fmt: skip
            time.sleep(_POLL_SECONDS)

    def _post(
        self,
        path: str,
        body: Mapping[str, Any],
        strip: Callable[[bytes], bytes] = strip_private,
    ) -> dict[str, Any]:
        return client.request(self._layout, self._environ, path, without_private(dict(body), strip))

    def _get(self, path: str, **query: object) -> dict[str, Any]:
        address = f"{path}?{urlencode(query)}" if query else path
        return client.request(self._layout, self._environ, address)


@dataclass(frozen=True, slots=True)
class AsyncMemory:
    """The same for asyncio: every method is awaited and runs in a thread."""

    memory: Memory

    @classmethod
    async def open(
        cls,
        project: str | Path | None = None,
        *,
        data_dir: str | Path | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> Self:
        opened = asyncio.to_thread(Memory.open, project, data_dir=data_dir, environ=environ)
        return cls(await opened)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def close(self) -> None:
        await asyncio.to_thread(self.memory.close)

    async def record(
        self, request: str, answer: str, tools: Sequence[ToolUse] = (), *, wait: bool = True
    ) -> None:
        await asyncio.to_thread(self.memory.record, request, answer, tools, wait=wait)

    async def remember(
        self,
        text: str,
        *,
        title: str = "",
        type: str = "discovery",  # noqa: A002
        concepts: Sequence[str] = (),
        files: Sequence[str] = (),
    ) -> str:
        return await _in_thread(
            self.memory.remember, text, title=title, type=type, concepts=concepts, files=files
        )

    async def search(self, query: str, *, limit: int = 10) -> list[Hit]:
        return await _in_thread(self.memory.search, query, limit=limit)

    async def context(self) -> str:
        return await _in_thread(self.memory.context)

    async def forget(self, *ids: str) -> Forgotten:
        return await _in_thread(self.memory.forget, *ids)

    async def undo(self, forgotten: Forgotten) -> None:
        await _in_thread(self.memory.undo, forgotten)


async def _in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    return await asyncio.to_thread(function, *args, **kwargs)


def without_private(body: dict[str, Any], strip: Callable[[bytes], bytes]) -> dict[str, Any]:
    """Removes private text as a hook does: it does not leave this process."""
    cleaned: dict[str, Any] = json.loads(strip(json.dumps(body).encode()))
    return cleaned
