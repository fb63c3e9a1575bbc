"""The response to SessionStart: context for the agent, one line for the user."""

import asyncio
import os
import time
from datetime import datetime, tzinfo

from claude_mem.config.pausing import Pause, current_pause
from claude_mem.hook import trouble
from claude_mem.hook.response import START_SECONDS
from claude_mem.intake import spool
from claude_mem.recall.context import EARLIER_SESSIONS, count_lines
from claude_mem.recall.fence import escape_fences
from claude_mem.store import StoreReader
from claude_mem.store.clock import iso
from claude_mem.store.listing import RememberedCounts
from claude_mem.store.memory_rows import JsonRow
from claude_mem.store.one_time_messages import WELCOME
from claude_mem.text import one_line, shorten
from claude_mem.types import SESSION_START, Event, HookAnswer, Project
from claude_mem.worker.client_memory_files import refresh_client_memory
from claude_mem.worker.contexts import printed_context
from claude_mem.worker.hints import warm_up
from claude_mem.worker.project_changes import (
    follow_checkout,
    join_own_project,
    project_question,
)
from claude_mem.worker.worker import Worker

GREETED_SOURCES = ("startup", "clear")
CATCH_UP_SECONDS = 2.0  # the hook waits longer than this
_EXCLUDED = (
    "claude-mem: this session is not recorded: CLAUDE_MEM_EXCLUDED_PROJECTS excludes its project"
)


async def answer_session_start(
    worker: Worker, record_bytes: bytes, *, has_user: bool = True
) -> HookAnswer:
    try:
        record = spool.parse(record_bytes)
        header, payload = spool.events_of(record)[0]  # one event in every dialect
        event = await asyncio.to_thread(worker.reader.read, header, payload)
        source = str(payload.get("source"))
        context = await _context(worker, event, source, record_bytes)
        message = await _message(worker, event, source, context) if has_user else ""
        return HookAnswer(header.dialect, SESSION_START, context, message)
    finally:
        worker.wake()


async def after_session_start(worker: Worker, record_bytes: bytes) -> None:
    """What need not delay the answer."""
    await worker.save_contexts()
    await warm_up(worker, record_bytes)
    await refresh_client_memory(worker, record_bytes)


async def _context(worker: Worker, event: Event, source: str, record_bytes: bytes) -> str:
    if worker.reader.exclusions.cover(event.project, event.project_dir):
        return ""
    await _bring_own_sessions(worker, event)
    is_only_spool_file = await _is_only_spool_file(worker, event.project, record_bytes)
    await _catch_up(worker, event.project, drains=not is_only_spool_file)
    if current_pause(worker.settings.layout) is not None:
        return await _context_of_unrecorded(worker, event)
    project_id = worker.store.project_by_key(event.project.key)
    if project_id is None:
        return ""
    await follow_checkout(worker, event.project_dir, project_id)
    return await _context_of_recorded(worker, project_id, event, source, is_only_spool_file)


async def _message(worker: Worker, event: Event, source: str, context: str) -> str:
    """What the user sees; some of it only once."""
    if message := _trouble(worker):
        return message
    if worker.reader.exclusions.cover(event.project, event.project_dir):
        return _EXCLUDED
    if (pause := current_pause(worker.settings.layout)) is not None:
        return _paused(pause)
    project_id = worker.store.project_by_key(event.project.key)
    message = await project_question(worker, event.project_dir, project_id)
    if not message and project_id is not None and source in GREETED_SOURCES:
        return await _greeting(worker, project_id, event.session_id, context)
    return message


async def _greeting(worker: Worker, project_id: int, session_id: str, context: str) -> str:
    """The welcome waits for a session that has nothing more important to show, and comes once."""
    store = worker.store
    if store.has_one_time_message(WELCOME) and await asyncio.wrap_future(
        store.claim_one_time_message(WELCOME)
    ):
        return welcome(await asyncio.to_thread(store.remembered_counts))
    has_hints = worker.settings.context.hints
    return await asyncio.to_thread(
        greeting, store, project_id, session_id, context, has_hints=has_hints
    )


async def _bring_own_sessions(worker: Worker, event: Event) -> None:
    """Brings the sessions of a directory to the project that it claims and gets, from when it was
    recorded on its own."""
    decision = worker.projects.decision(event.project_dir)
    if decision.is_accepted and decision.own is not None:
        own_id = worker.store.project_by_key(decision.own.key)
        if own_id is not None:
            await join_own_project(worker, decision.own, decision.project)


def _paused(pause: Pause) -> str:
    until = f" until {iso(pause.until_epoch)[:16]} UTC" if pause.until_epoch is not None else ""
    return (
        f"claude-mem: recording is paused{until}, this session is not recorded;"
        " to resume: claude-mem resume"
    )


async def _context_of_unrecorded(worker: Worker, event: Event) -> str:
    """The context of a session that is not recorded."""
    project_id = worker.store.project_by_key(event.project.key)
    if project_id is None or event.detail.get("source") in ("resume", "fork"):
        return ""
    return await worker.contexts.for_directory(
        project_id, event.project_dir, without_session=event.session_id
    )


async def _is_only_spool_file(worker: Worker, project: Project, record_bytes: bytes) -> bool:
    """Whether nothing else waits in the spool, and the start changes nothing: then it can be stored
    after the response. It makes a new project known, and ends turns whose client died."""
    project_id = worker.store.project_by_key(project.key)
    if project_id is None or worker.store.has_open_turn(project_id):
        return False
    return await asyncio.to_thread(worker.intake.holds_only, record_bytes)


async def _catch_up(worker: Worker, project: Project, *, drains: bool) -> None:
    """Process pending events first, but do not let the session wait long for a backlog."""
    task = asyncio.ensure_future(_process_pending(worker, project, drains))
    await asyncio.wait([task], timeout=CATCH_UP_SECONDS)
    if task.done():
        task.result()


async def _process_pending(worker: Worker, project: Project, drains: bool) -> None:
    project_id = worker.store.project_by_key(project.key)
    await (worker.catch_up(project_id) if drains else worker.distil_due(project_id))
    await worker.jobs.wait_for_project(project)


async def _context_of_recorded(
    worker: Worker, project_id: int, event: Event, source: str, is_only_spool_file: bool
) -> str:
    """A resumed session gets the same bytes as before (`UnsavedContexts`), and never its
    own memories."""
    started_at = time.monotonic()
    if source == "fork":
        return ""  # its transcript contains the context of the original session
    session_id = event.session_id
    if source == "resume":
        previous = worker.unsaved_contexts.received(session_id)
        if previous is not None:
            return previous
    context = await worker.contexts.for_directory(
        project_id, event.project_dir, without_session=session_id
    )
    is_rendered = printed_context(worker.settings.layout, event) == context
    if is_rendered and worker.unsaved_contexts.add(session_id, context):
        return context
    if is_only_spool_file:
        await asyncio.to_thread(worker.intake.drain)
    if time.monotonic() - started_at > START_SECONDS:
        return context  # the hook did not wait for it, and has printed the rendered one
    if worker.store.start_context(session_id) != context:
        await asyncio.wrap_future(worker.store.remember_start_context(session_id, context))
    return context


def _trouble(worker: Worker) -> str:
    """The last problem that the user has not seen yet."""
    message = trouble.take(os.fsencode(worker.settings.layout.root)).decode("ascii", "replace")
    message = message or worker.obstacle
    return f"claude-mem: {message} (for details: claude-mem doctor)" if message else ""


# What the user sees at the start of a session: a welcome, then what the agent was given.
#
# Claude Code shows it in grey behind `SessionStart:startup says: `, keeps line breaks, indents
# every line by five columns and renders no Markdown. So the welcome has lines that fit a terminal
# of 80 columns, and no markup or colours: other clients would show their codes.

MAX_SESSIONS = 12
_SHOWN = 40  # characters by which a text is recognised in the context

FIRST_LINE_WIDTH, LINE_WIDTH = 48, 75  # that Claude Code leaves of 80 columns

_ON = "claude-mem: memory is on."
_LOOK = "To look at it: claude-mem open"
NOTHING_YET = f"""\
{_ON}
The next session will know this one. {_LOOK}
Tip: text inside <private></private> is never stored."""
_COVERED = f"""\
{_ON}
{{sessions}} in {{projects}} remembered. {_LOOK}
Tip: ask about earlier work in your own words, the agent can search it."""


def greeting(
    store: StoreReader,
    project_id: int,
    session_id: str,
    context: str,
    *,
    has_hints: bool,
    zone: tzinfo | None = None,
) -> str:
    """Greets the user; empty for a session that was given nothing."""
    earlier = store.recent_sessions(project_id, MAX_SESSIONS, session_id)
    if context and earlier:
        parts = [*_sessions(earlier, context, zone), *_rules(store, project_id, context)]
        hints = _hints(store, str(earlier[0]["content_session_id"])) if has_hints else ""
        return f"claude-mem: the agent got {', '.join(parts)}{hints}"
    return ""


def welcome(counts: RememberedCounts) -> str:
    """Welcomes in the first session after the installation. Others may be imported."""
    if not counts.sessions:
        return NOTHING_YET
    sessions, projects = _count(counts.sessions, "session"), _count(counts.projects, "project")
    return _COVERED.format(sessions=sessions, projects=projects)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _sessions(earlier: list[JsonRow], context: str, zone: tzinfo | None) -> list[str]:
    moment = datetime.fromtimestamp(int(str(earlier[0]["updated_at_epoch"])) / 1000, zone)
    shown = count_lines(context, EARLIER_SESSIONS)
    parts = [f"the last session ({moment.day} {moment:%b})"]
    return [*parts, f"{shown} earlier"] if shown else parts


def _rules(store: StoreReader, project_id: int, context: str) -> list[str]:
    rules = store.facts(project_id, ("rule",), ("holds",))
    shown = sum(_is_in(context, rule.value) for rule in rules)
    return [f"{shown} {'rule' if shown == 1 else 'rules'}"] if shown else []


def _hints(store: StoreReader, last_session: str) -> str:
    count = store.count_hints(last_session)
    return f"; hints are on ({count} last time)" if count else "; hints are on"


def _is_in(context: str, text: object) -> bool:
    start = shorten(escape_fences(one_line(str(text or ""))), _SHOWN).rstrip("…")
    return bool(start) and start in context
