"""What SessionStart prints: the worker's response, or the context that it rendered last.

The worker stores a rendered context as a JSON string literal, so that the hook can print it without
a JSON encoder when no worker responds. In a directory for which none was rendered, such as a new
clone of a known repository, it waits for the worker that it started, which can resolve it.
"""

import posix
import time

from claude_mem import paths
from claude_mem.hook import trouble
from claude_mem.hook.ask import ask
from claude_mem.hook.wake import has_worker, wake_or_start

ROUTE = b"/hook/session-start"
RESPONSE_SECONDS = 3.0
NEW_WORKER_SECONDS = 1.5
POLL_SECONDS = 0.02

PAUSED = b"recording is paused, this session is not recorded; to resume: claude-mem resume"
_PLAIN = b'{"continue":true,"suppressOutput":true'
_START = b'{"hookSpecificOutput":{"hookEventName":"SessionStart","additionalContext":'
# The transcript of a resumed or forked session already contains its context.
_WITH_CONTEXT = (b'"source":"resume"', b'"source":"fork"')


def context_line(
    data_dir: bytes,
    project_dir: bytes,
    record_header: bytes,
    payload: bytes,
    is_paused: bool,
    caller: bytes,
) -> bytes:
    response = ask(data_dir, ROUTE, record_header + payload, RESPONSE_SECONDS)
    if response is None and not is_paused:
        is_cold = not has_worker(data_dir)
        wake_or_start(data_dir)
        if is_cold and _may_be_known(data_dir, project_dir, payload):
            response = _ask_new_worker(data_dir, record_header + payload)
    if response is not None:
        return response
    context = _rendered(data_dir, project_dir, payload)
    message = _message(data_dir, is_paused)
    if caller != b"claude":
        from claude_mem.hook import other_agents

        return other_agents.line(caller, b"SessionStart", context, message)
    line = _START + context + b"}" if context else _PLAIN
    return line + (b',"systemMessage":' + message if message else b"") + b"}"


def _may_be_known(data_dir: bytes, project_dir: bytes, payload: bytes) -> bool:
    """Whether only the worker can say if there is a context."""
    if _has_context(payload):
        return False
    try:
        posix.stat(data_dir + b"/" + paths.DATABASE)
    except OSError:
        return False
    try:
        posix.stat(_rendered_path(data_dir, project_dir))
    except OSError:
        return True
    return False


def _ask_new_worker(data_dir: bytes, request: bytes) -> bytes | None:
    deadline = time.monotonic() + NEW_WORKER_SECONDS
    while (remaining := deadline - time.monotonic()) > 0:
        response = ask(data_dir, ROUTE, request, remaining)
        if response is not None:
            return response
        time.sleep(POLL_SECONDS)
    return None


def _has_context(payload: bytes) -> bool:
    compact = payload.replace(b'": "', b'":"')
    return any(mark in compact for mark in _WITH_CONTEXT)


def _rendered_path(data_dir: bytes, project_dir: bytes) -> bytes:
    return data_dir + b"/" + paths.CONTEXTS + b"/" + paths.context_name(project_dir)


def _rendered(data_dir: bytes, project_dir: bytes, payload: bytes) -> bytes:
    """The context as a JSON string; empty if there is none."""
    if _has_context(payload):
        return b""
    rendered = _read(_rendered_path(data_dir, project_dir))
    return rendered if rendered[:1] == rendered[-1:] == b'"' and len(rendered) > 2 else b""


def _message(data_dir: bytes, is_paused: bool) -> bytes:
    message = trouble.take(data_dir)
    if message:
        return b'"claude-mem: %s (for details: claude-mem doctor)"' % message
    return b'"claude-mem: %s"' % PAUSED if is_paused else b""


def _read(path: bytes) -> bytes:
    try:
        file = posix.open(path, posix.O_RDONLY | posix.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return posix.read(file, 1 << 20)
    finally:
        posix.close(file)
