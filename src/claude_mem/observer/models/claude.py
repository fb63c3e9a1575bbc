"""The user's own Claude Code through the Agent SDK: their command, their login, no tools.

A client process costs 200 MB: few are open at a time, each is closed when idle, and its
conversation is resumed when the session continues. A client works in a directory of its own,
without the user's settings, hooks, plugins or MCP servers, and with the variable that disables our
own hooks. `parent_death.py` starts it, so that it never outlives the worker; `claude_files.py`
knows the files that clients leave.
"""

import asyncio
import importlib
import os
import shlex
import signal
import sys
import uuid
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from claude_mem.observer.models import parent_death
from claude_mem.observer.models.claude_files import ClaudeFiles
from claude_mem.observer.models.failures import (
    LostSession,
    NotAllowed,
    ObserverError,
    Refused,
    Transient,
    failure_for_message,
    failure_for_status,
)
from claude_mem.observer.models.model import Reply
from claude_mem.observer.models.prompts import CHARS_PER_TOKEN, MAX_REPLY_TOKENS, ModelRequest
from claude_mem.text import pluralize

HOOKS_OFF = "CLAUDE_MEM_INTERNAL"
CLOSE_SECONDS = 3.0
MAX_LINE_BYTES = 64 * 1024 * 1024  # a reply is one line, longer as JSON than as text
MAX_ERROR_CHARS = 200
# Each request sends the whole conversation again, so it is ended beyond this length. A new
# conversation gets the session's memories. At four times this, a long session would cost eight
# times the tokens of its turns.
MAX_CONVERSATION_TOKENS = 16_000


@dataclass(frozen=True, slots=True)
class ClaudeOptions:
    command: str
    files: ClaudeFiles
    model: str
    max_clients: int = 2
    idle_seconds: float = 60.0
    seconds: float = 120.0  # time limit of a request
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class _Question:
    text: str
    reply: "asyncio.Future[Reply]"


class ClaudeClient:
    """Lives in a task of its own, as the SDK requires from connecting to disconnecting."""

    def __init__(self, options: ClaudeOptions, system: str, resume: str | None) -> None:
        self._options, self._system, self._resume = options, system, resume
        self._questions: asyncio.Queue[_Question | None] = asyncio.Queue()  # None: the end
        self._pid_file = options.files.directory / f"client-{uuid.uuid4().hex}.pid"
        self._idle_timer: asyncio.TimerHandle | None = None
        self.tokens = 0  # of the conversation so far
        self.is_busy = False
        self._task = asyncio.get_running_loop().create_task(self._run())

    @property
    def has_ended(self) -> bool:
        return self._task.done()

    async def ask(self, text: str, seconds: float) -> Reply:
        self._cancel_idle_timer()
        question = _Question(text, asyncio.get_running_loop().create_future())
        self.is_busy = True
        self._questions.put_nowait(question)
        try:
            async with asyncio.timeout(seconds):
                pending: list[asyncio.Future[Any]] = [question.reply, self._task]
                await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
        except TimeoutError:
            raise Transient(f"no reply within {pluralize(round(seconds), 'second')}") from None
        finally:
            self.is_busy = False
        if not question.reply.done():
            raise Transient("the client ended without a reply")
        return question.reply.result()

    def close_when_idle(self, seconds: float, on_idle: Callable[[], None]) -> None:
        self._idle_timer = asyncio.get_running_loop().call_later(seconds, on_idle)

    async def close(self) -> None:
        """Ends in an orderly way, so that the conversation can be resumed; else by force."""
        self._cancel_idle_timer()
        self._questions.put_nowait(None)
        with suppress(asyncio.CancelledError):
            await asyncio.wait([self._task], timeout=CLOSE_SECONDS)
        self.kill()
        if not self._task.done():
            await asyncio.wait([self._task], timeout=CLOSE_SECONDS)

    def kill(self) -> None:
        """Kills the client with all processes that it started."""
        self._cancel_idle_timer()
        pid = self._pid()
        if self._task.done():
            return
        if pid is None:
            self._task.cancel()  # there is no process yet
            return
        for send_signal in (os.killpg, os.kill):
            with suppress(ProcessLookupError, PermissionError):
                send_signal(pid, signal.SIGKILL)
        self._questions.put_nowait(None)  # the task notices the end and cleans up

    def _cancel_idle_timer(self) -> None:
        if self._idle_timer is not None:
            self._idle_timer.cancel()

    def _pid(self) -> int | None:
        try:
            return int(self._pid_file.read_bytes() or b"0") or None
        except (OSError, ValueError):
            return None

    async def _run(self) -> None:
        # Importing it takes a second: not in the event loop, where hooks wait for a response.
        await asyncio.to_thread(importlib.import_module, "claude_agent_sdk")
        from claude_agent_sdk import ClaudeSDKClient

        question: _Question | None = None
        client = ClaudeSDKClient(self._sdk_options())
        try:
            question = await self._questions.get()
            if question is None:
                return
            await client.connect()
            while question is not None:
                await client.query(question.text)
                reply = await self._receive(client)
                if not question.reply.done():
                    question.reply.set_result(reply)
                question = await self._questions.get()
        except Exception as error:
            if question is not None and not question.reply.done():
                question.reply.set_exception(_failure(error))
                question.reply.exception()  # marks it as retrieved: the caller may be cancelled
        finally:
            try:
                with suppress(Exception):
                    await client.disconnect()
            finally:
                self._pid_file.unlink(missing_ok=True)

    def _sdk_options(self) -> Any:
        from claude_agent_sdk import ClaudeAgentOptions

        options = self._options
        return ClaudeAgentOptions(
            tools=[],
            setting_sources=[],
            strict_mcp_config=True,
            system_prompt=self._system,
            cwd=str(options.files.directory),
            model=options.model,
            resume=self._resume,
            cli_path=str(write_client_script(options)),
            env={
                **options.environment,
                HOOKS_OFF: "1",
                "CLAUDE_CODE_MAX_RETRIES": "0",  # we count and schedule retries ourselves
                # By default it allows 32,000 tokens, and thinks as long as that.
                "CLAUDE_CODE_MAX_OUTPUT_TOKENS": str(MAX_REPLY_TOKENS),
                "MAX_THINKING_TOKENS": "0",
                "CLAUDE_AGENT_SDK_SKIP_VERSION_CHECK": "1",
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                parent_death.PARENT_PID: str(os.getpid()),
                parent_death.PID_FILE: str(self._pid_file),
            },
            stderr=lambda line: None,
            max_buffer_size=MAX_LINE_BYTES,
        )

    async def _receive(self, client: Any) -> Reply:
        from claude_agent_sdk import AssistantMessage, ResultMessage, SystemMessage, TextBlock

        texts: list[str] = []
        model, session_id = self._options.model, None
        error: str | None = None
        async for message in client.receive_response():
            if isinstance(message, SystemMessage) and message.subtype == "init":
                session_id = message.data.get("session_id") or session_id
            elif isinstance(message, AssistantMessage) and message.error:
                error = message.error  # the text is the client's, not the model's
            elif isinstance(message, AssistantMessage):
                model = message.model or model
                texts += [block.text for block in message.content if isinstance(block, TextBlock)]
            elif isinstance(message, ResultMessage):
                session_id = session_id or message.session_id
                result = message.result or "".join(texts)
                is_truncated = error == "max_output_tokens" and bool(texts)
                if message.is_error and not is_truncated:
                    raise _api_failure(message.api_error_status, result, message.errors)
                self.tokens = _token_count(message.usage) or 0
                return Reply("".join(texts) or result, model, self.tokens or None, session_id,
                             max(1, message.num_turns))  # fmt: skip
        raise Transient("the client ended without a result")


class ClaudeModel:
    name = "claude"

    def __init__(self, options: ClaudeOptions) -> None:
        self._options = options
        self._clients: OrderedDict[int, ClaudeClient] = OrderedDict()  # least recently used first
        self._closing: set[asyncio.Task[None]] = set()
        self._opening = asyncio.Lock()

    async def ask(self, request: ModelRequest, session: int, resume: str | None) -> Reply:
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
        """Closes the least recently used client; there are never more busy ones than places."""
        while len(self._clients) >= self._options.max_clients:
            idle = next((s for s, client in self._clients.items() if not client.is_busy), None)
            if idle is None:
                return
            await self._clients.pop(idle).close()
        if self._closing:
            await asyncio.wait(self._closing)


def write_client_script(options: ClaudeOptions) -> Path:
    """The script that the SDK runs as the client's command: it adds `parent_death.py`."""
    directory = options.files.directory
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = directory / "client"
    command = [sys.executable, "-I", "-S", str(Path(parent_death.__file__)), options.command]
    text = f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n'
    if not path.exists() or path.read_text("utf-8") != text:
        temporary = path.with_name(f"client-{uuid.uuid4().hex}.new")
        temporary.write_text(text, "utf-8")
        temporary.chmod(0o700)
        temporary.replace(path)
    return path


def _api_failure(status: int | None, result: str, errors: list[str] | None) -> ObserverError:
    text = " ".join([result, *(errors or [])])
    if "No conversation found" in text:
        return LostSession("Claude Code no longer has it")
    return failure_for_message(text) if status is None else failure_for_status(status, text, {})


def _failure(error: Exception) -> ObserverError:
    if isinstance(error, ObserverError):
        return error
    text = str(error)
    if "No conversation found" in text:
        return LostSession("Claude Code no longer has it")
    if type(error).__name__ == "CLINotFoundError":
        return NotAllowed("Claude Code was not found: claude-mem settings CLAUDE_CODE_PATH")
    status = getattr(error, "api_error_status", None)
    if isinstance(status, int):
        return failure_for_status(status, text, {})
    message = f"{type(error).__name__}: {text[:MAX_ERROR_CHARS]}"
    if isinstance(error, TypeError | AttributeError | ImportError):
        return Refused(f"this version of the Agent SDK is not supported: {message}")
    return Transient(message)


def _token_count(usage: dict[str, Any] | None) -> int | None:
    names = ("input_tokens", "output_tokens", "cache_read_input_tokens",
             "cache_creation_input_tokens")  # fmt: skip
    values = [(usage or {}).get(name) for name in names]
    counts = [value for value in values if isinstance(value, int)]
    return sum(counts) if counts else None
