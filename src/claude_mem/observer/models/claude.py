"""The user's own Claude Code through the Agent SDK: their command, their login, no tools.

A client process costs 200 MB: few are open at a time, each is closed when idle, and its
conversation is resumed when the session continues. `claude_client.py` runs one client,
`claude_files.py` knows the files that clients leave.
"""

import asyncio
import importlib.util
import os
import shutil
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from claude_mem.config import Settings
from claude_mem.observer.models.claude_client import ClaudeClient, ClaudeOptions
from claude_mem.observer.models.failures import LostSession
from claude_mem.observer.models.model import Reply
from claude_mem.observer.models.prompts import CHARS_PER_TOKEN, Request

# Each request sends the whole conversation again, so it is ended beyond this length. A new
# conversation gets the session's memories. At four times this, a long session would cost eight
# times the tokens of its turns.
MAX_CONVERSATION_TOKENS = 16_000
_USUAL_PATHS = (".local/bin/claude", ".claude/local/claude", ".npm-global/bin/claude")


def find_command(settings: Settings, environ: Mapping[str, str]) -> Path | None:
    configured = settings.observer.claude_code_path
    if configured:
        return Path(configured) if os.access(configured, os.X_OK) else None
    on_path = shutil.which("claude", path=environ.get("PATH"))
    if on_path:
        return Path(on_path)
    home = Path(environ.get("HOME", "/"))
    return next((home / path for path in _USUAL_PATHS if os.access(home / path, os.X_OK)), None)


def is_sdk_installed() -> bool:
    return importlib.util.find_spec("claude_agent_sdk") is not None


class ClaudeModel:
    name = "claude"

    def __init__(self, options: ClaudeOptions) -> None:
        self._options = options
        self._clients: OrderedDict[int, ClaudeClient] = OrderedDict()  # least recently used first
        self._closing: set[asyncio.Task[None]] = set()
        self._opening = asyncio.Lock()

    async def ask(self, request: Request, session: int, resume: str | None) -> Reply:
        async with self._opening:  # or two concurrent requests would take the same free place
            client = await self._client_for(session, request.system, resume)
            client.is_busy = True
        try:
            reply = await client.ask(request.text, self._options.seconds)
        except BaseException:
            client.kill()
            self._retire(session, client)
            raise
        if client.tokens > MAX_CONVERSATION_TOKENS:
            self._retire(session, client)
            return replace(reply, provider_session_id=None)
        client.close_when_idle(
            self._options.idle_seconds, lambda: self._retire_idle(session, client)
        )
        return reply

    async def _client_for(self, session: int, system: str, resume: str | None) -> ClaudeClient:
        client = self._clients.get(session)
        if client is not None and client.has_ended:
            del self._clients[session]
            client = None
        if client is None:
            if resume is not None and self._options.files.transcript(resume) is None:
                raise LostSession("its transcript is gone")
            await self._make_room()
            client = self._clients[session] = ClaudeClient(self._options, system, resume)
        self._clients.move_to_end(session)
        return client

    def has_conversation(self, session: int) -> bool:
        client = self._clients.get(session)
        return client is not None and not client.has_ended

    def conversation_tokens(self, session: int, resume: str | None) -> int:
        client = self._clients.get(session)
        if client is not None and not client.has_ended:
            return client.tokens
        transcript = self._options.files.transcript(resume) if resume is not None else None
        return transcript.stat().st_size // CHARS_PER_TOKEN if transcript is not None else 0

    async def end_conversation(self, session: int) -> None:
        client = self._clients.get(session)
        if client is not None:  # it closes even if this call is cancelled
            await asyncio.wait([self._retire(session, client)])

    async def close(self) -> None:
        clients, self._clients = list(self._clients.values()), OrderedDict()
        await asyncio.gather(*(client.close() for client in clients), *self._closing)

    def _retire_idle(self, session: int, client: ClaudeClient) -> None:
        if self._clients.get(session) is client and not client.is_busy:
            self._retire(session, client)

    def _retire(self, session: int, client: ClaudeClient) -> asyncio.Task[None]:
        if self._clients.get(session) is client:
            del self._clients[session]
        task = asyncio.get_running_loop().create_task(client.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
        return task

    async def _make_room(self) -> None:
        """Close the least recently used client; there are never more busy ones than places."""
        while len(self._clients) >= self._options.max_clients:
            idle = next((s for s, client in self._clients.items() if not client.is_busy), None)
            if idle is None:
                return
            await self._clients.pop(idle).close()
        if self._closing:
            await asyncio.wait(self._closing)
