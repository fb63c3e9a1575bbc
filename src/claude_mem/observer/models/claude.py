"""The person's own Claude Code, by way of the Agent SDK: their command, their login, no tools.

It runs in a directory of its own, without settings, hooks, plugins or servers of the person's, and
with the variable that makes our own hooks do nothing. A client costs 200 MB: few are open, each is
closed when idle, and its conversation is resumed when its session goes on. The transcripts are
deleted with the session. Each client is on a leash (`parent_death.py`): none outlives the worker.
"""

import asyncio
import importlib
import importlib.util
import logging
import os
import re
import shlex
import shutil
import signal
import sys
import uuid
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from claude_mem.config import Settings
from claude_mem.observer.models import parent_death
from claude_mem.observer.models.failures import (
    LostSession,
    NotAllowed,
    ObserverError,
    Refused,
    Transient,
    failure_in_words,
    failure_of,
)
from claude_mem.observer.models.model import Reply
from claude_mem.observer.models.prompts import CHARS_PER_TOKEN, REPLY_TOKENS, Ask

log = logging.getLogger("claude_mem.claude")

_PLACES = (".local/bin/claude", ".claude/local/claude", ".npm-global/bin/claude")
GUARD = "CLAUDE_MEM_INTERNAL"
CLOSE_SECONDS = 3.0
# Of a conversation: what it holds is sent again with every turn. A fresh one is told what is
# remembered of the session; at four times this, long sessions would cost eight times their turns.
FRESH_AFTER_TOKENS = 16_000
LARGEST_LINE = 64 * 1024 * 1024  # of the client's: an answer is one, and longer as JSON
LONGEST_SLUG = 200  # a longer one ends with a hash of the client's own
_ID = re.compile(r"[0-9a-fA-F][0-9a-fA-F-]{7,63}\Z")


def find_command(settings: Settings, environ: Mapping[str, str]) -> Path | None:
    """The person's Claude Code."""
    chosen = settings.observer.claude_code_path
    if chosen:
        return Path(chosen) if os.access(chosen, os.X_OK) else None
    found = shutil.which("claude", path=environ.get("PATH"))
    if found:
        return Path(found)
    home = Path(environ.get("HOME", "/"))
    return next((home / place for place in _PLACES if os.access(home / place, os.X_OK)), None)


def is_installed() -> bool:
    return importlib.util.find_spec("claude_agent_sdk") is not None


@dataclass(frozen=True, slots=True)
class ClaudeOptions:
    command: str
    directory: Path  # its own cwd, and where its leash lies
    model: str
    config_dir: Path  # where the client keeps transcripts
    clients: int = 2
    idle_seconds: float = 60.0
    seconds: float = 120.0
    environment: Mapping[str, str] = field(default_factory=dict)


class ClaudeModel:
    name = "claude"

    def __init__(self, options: ClaudeOptions) -> None:
        self._options = options
        self._live: OrderedDict[int, _Client] = OrderedDict()  # the longest unused first
        self._closing: set[asyncio.Task[None]] = set()
        self._opening = asyncio.Lock()

    async def ask(self, ask: Ask, session: int, resume: str | None) -> Reply:
        async with self._opening:  # or two that come at once would both find room
            client = await self._client_of(session, ask.system, resume)
            client.is_busy = True
        try:
            reply = await client.ask(ask.text, self._options.seconds)
        except BaseException:
            client.kill()
            self._retire(session, client)
            raise
        if client.tokens > FRESH_AFTER_TOKENS:
            self._retire(session, client)
            return replace(reply, provider_session_id=None)
        client.close_when_idle(self._options.idle_seconds, lambda: self._idle(session, client))
        return reply

    async def _client_of(self, session: int, system: str, resume: str | None) -> "_Client":
        client = self._live.get(session)
        if client is not None and client.is_over:
            del self._live[session]
            client = None
        if client is None:
            if resume is not None and not self._has_transcript(resume):
                raise LostSession("its transcript is gone")
            await self._make_room()
            client = self._live[session] = _Client(self._options, system, resume)
        self._live.move_to_end(session)
        return client

    def knows(self, session: int) -> bool:
        client = self._live.get(session)
        return client is not None and not client.is_over

    def carries(self, session: int, resume: str | None) -> int:
        client = self._live.get(session)
        if client is not None and not client.is_over:
            return client.tokens
        if resume is None or not _ID.match(resume):
            return 0
        paths = (kept_in / f"{resume}.jsonl" for kept_in in self._transcripts())
        return sum(path.stat().st_size // CHARS_PER_TOKEN for path in paths if path.is_file())

    async def end(self, session: int) -> None:
        client = self._live.get(session)
        if client is not None:  # it closes also where nobody waits so long
            await asyncio.wait([self._retire(session, client)])

    def sweep(self, known: set[str]) -> None:
        open_now = {client.session_id for client in self._live.values() if client.session_id}
        sweep_transcripts(self._options.directory, self._options.config_dir, known | open_now)
        if not self._live and not self._closing:
            forget_dead_clients(self._options.directory)

    async def close(self) -> None:
        clients, self._live = list(self._live.values()), OrderedDict()
        await asyncio.gather(*(client.close() for client in clients), *self._closing)

    def _idle(self, session: int, client: "_Client") -> None:
        if self._live.get(session) is client and not client.is_busy:
            self._retire(session, client)

    def _retire(self, session: int, client: "_Client") -> "asyncio.Task[None]":
        if self._live.get(session) is client:
            del self._live[session]
        task = asyncio.get_running_loop().create_task(client.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
        return task

    async def _make_room(self) -> None:
        """Closes the one that was not used for longest; the busy ones are never more than fit."""
        while len(self._live) >= self._options.clients:
            idle = next((s for s, client in self._live.items() if not client.is_busy), None)
            if idle is None:
                return
            await self._live.pop(idle).close()
        if self._closing:
            await asyncio.wait(self._closing)

    def _has_transcript(self, provider_session_id: str) -> bool:
        return bool(_ID.match(provider_session_id)) and any(
            (kept_in / f"{provider_session_id}.jsonl").is_file() for kept_in in self._transcripts()
        )

    def _transcripts(self) -> list[Path]:
        return _transcripts(self._options.directory, self._options.config_dir)


# What clients leave behind: swept also where another observer is used by now.


def sweep(directory: Path, config_dir: Path, known: set[str]) -> None:
    """While no client runs."""
    sweep_transcripts(directory, config_dir, known)
    forget_dead_clients(directory)


def sweep_transcripts(directory: Path, config_dir: Path, known: set[str]) -> None:
    """Deletes those of ours that no session will resume."""
    for kept_in in _transcripts(directory, config_dir):
        for path in kept_in.glob("*.jsonl"):
            if path.stem not in known:
                path.unlink(missing_ok=True)
        with suppress(OSError):
            kept_in.rmdir()  # only when it is empty


def forget_dead_clients(directory: Path) -> None:
    """Those that were killed with their worker could not say that they are gone."""
    for path in directory.glob("client-*"):
        path.unlink(missing_ok=True)


def _transcripts(directory: Path, config_dir: Path) -> list[Path]:
    """Where the client keeps what was said in our directory, and in no other."""
    slug = re.sub(r"[^a-zA-Z0-9]", "-", str(directory.resolve()))
    projects = config_dir / "projects"
    if len(slug) <= LONGEST_SLUG:
        return [projects / slug] if (projects / slug).is_dir() else []
    return [path for path in projects.glob(f"{slug[:LONGEST_SLUG]}-*") if path.is_dir()]


@dataclass(slots=True)
class _Question:
    text: str
    answer: "asyncio.Future[Reply]"


class _Client:
    """One running client. It lives in a task of its own: the SDK wants one from open to close."""

    def __init__(self, options: ClaudeOptions, system: str, resume: str | None) -> None:
        self._options, self._system, self._resume = options, system, resume
        self._inbox: asyncio.Queue[_Question | None] = asyncio.Queue()
        self._pid_file = options.directory / f"client-{uuid.uuid4().hex}.pid"
        self._timer: asyncio.TimerHandle | None = None
        self.tokens = 0
        self.session_id = resume
        self.is_busy = False
        self._task = asyncio.get_running_loop().create_task(self._live())

    @property
    def is_over(self) -> bool:
        return self._task.done()

    async def ask(self, text: str, seconds: float) -> Reply:
        if self._timer is not None:
            self._timer.cancel()
        question = _Question(text, asyncio.get_running_loop().create_future())
        self.is_busy = True
        self._inbox.put_nowait(question)
        try:
            async with asyncio.timeout(seconds):
                waited: list[asyncio.Future[Any]] = [question.answer, self._task]
                await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        except TimeoutError:
            raise Transient(f"no answer within {seconds:.0f} seconds") from None
        finally:
            self.is_busy = False
        if not question.answer.done():
            raise Transient("the client ended without an answer")
        return question.answer.result()

    def close_when_idle(self, seconds: float, idle: Any) -> None:
        self._timer = asyncio.get_running_loop().call_later(seconds, idle)

    async def close(self) -> None:
        """In order, so that it can be resumed; by force when that takes long."""
        if self._timer is not None:
            self._timer.cancel()
        self._inbox.put_nowait(None)
        with suppress(asyncio.CancelledError):
            await asyncio.wait([self._task], timeout=CLOSE_SECONDS)
        self.kill()
        if not self._task.done():
            await asyncio.wait([self._task], timeout=CLOSE_SECONDS)

    def kill(self) -> None:
        """Whatever it is doing, and whatever it started."""
        if self._timer is not None:
            self._timer.cancel()
        pid = self._pid()
        if self._task.done():
            return
        if pid is None:
            self._task.cancel()  # it has not even begun to run
            return
        for end in (os.killpg, os.kill):
            with suppress(ProcessLookupError, PermissionError):
                end(pid, signal.SIGKILL)
        self._inbox.put_nowait(None)  # the task sees that it is gone, and clears up after it

    def _pid(self) -> int | None:
        try:
            return int(self._pid_file.read_bytes() or b"0") or None
        except (OSError, ValueError):
            return None

    async def _live(self) -> None:
        # It takes a second to load: not in the loop, where hooks wait for an answer.
        await asyncio.to_thread(importlib.import_module, "claude_agent_sdk")
        from claude_agent_sdk import ClaudeSDKClient

        question: _Question | None = None
        client = ClaudeSDKClient(self._sdk_options())
        try:
            question = await self._inbox.get()
            if question is None:
                return
            await client.connect()
            while question is not None:
                await client.query(question.text)
                reply = await self._receive(client)
                if not question.answer.done():
                    question.answer.set_result(reply)
                question = await self._inbox.get()
        except Exception as error:
            if question is not None and not question.answer.done():
                question.answer.set_exception(_failure(error))
                question.answer.exception()  # whoever asked may be gone
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
            cwd=str(options.directory),
            model=options.model,
            resume=self._resume,
            cli_path=str(put_on_leash(options)),
            env={
                **options.environment,
                GUARD: "1",
                "CLAUDE_CODE_MAX_RETRIES": "0",  # we count what is asked, and when it is again
                # Left to itself it asks for 32,000 tokens, and thinks as long as that.
                "CLAUDE_CODE_MAX_OUTPUT_TOKENS": str(REPLY_TOKENS),
                "MAX_THINKING_TOKENS": "0",
                "CLAUDE_AGENT_SDK_SKIP_VERSION_CHECK": "1",
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                parent_death.PARENT: str(os.getpid()),
                parent_death.PID_FILE: str(self._pid_file),
            },
            stderr=lambda line: None,
            max_buffer_size=LARGEST_LINE,
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
                error = message.error  # told in the client's own words, not the model's
            elif isinstance(message, AssistantMessage):
                model = message.model or model
                texts += [block.text for block in message.content if isinstance(block, TextBlock)]
            elif isinstance(message, ResultMessage):
                session_id = session_id or message.session_id
                said = message.result or "".join(texts)
                is_cut = error == "max_output_tokens" and bool(texts)
                if message.is_error and not is_cut:
                    raise _api_failure(message.api_error_status, said, message.errors)
                self.tokens, self.session_id = _tokens(message.usage) or 0, session_id
                return Reply("".join(texts) or said, model, self.tokens or None, session_id,
                             max(1, message.num_turns))  # fmt: skip
        raise Transient("the client ended without a result")


def _api_failure(status: int | None, said: str, errors: list[str] | None) -> ObserverError:
    words = " ".join([said, *(errors or [])])
    if "No conversation found" in words:
        return LostSession("the client does not know it any more")
    if status is None:
        return failure_in_words(words)
    return failure_of(status, words, {})


def _failure(error: Exception) -> ObserverError:
    if isinstance(error, ObserverError):
        return error
    words = str(error)
    if "No conversation found" in words:
        return LostSession("the client does not know it any more")
    if type(error).__name__ == "CLINotFoundError":
        return NotAllowed("Claude Code was not found: claude-mem settings CLAUDE_CODE_PATH")
    status = getattr(error, "api_error_status", None)
    if isinstance(status, int):
        return failure_of(status, words, {})
    if isinstance(error, TypeError | AttributeError | ImportError):
        return Refused(f"this Agent SDK does not fit: {type(error).__name__}: {words[:200]}")
    return Transient(f"{type(error).__name__}: {words[:200]}")


def _tokens(usage: dict[str, Any] | None) -> int | None:
    names = ("input_tokens", "output_tokens", "cache_read_input_tokens",
             "cache_creation_input_tokens")  # fmt: skip
    counts = [(usage or {}).get(name) for name in names]
    found = [count for count in counts if isinstance(count, int)]
    return sum(found) if found else None


def put_on_leash(options: ClaudeOptions) -> Path:
    """The script that the SDK runs in the place of the client."""
    options.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = options.directory / "client"
    words = [sys.executable, "-I", "-S", str(Path(parent_death.__file__)), options.command]
    text = f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n'
    if not path.exists() or path.read_text("utf-8") != text:
        temporary = path.with_name(f"client-{uuid.uuid4().hex}.new")
        temporary.write_text(text, "utf-8")
        temporary.chmod(0o700)
        temporary.replace(path)
    return path
