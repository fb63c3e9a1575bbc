"""What SessionStart prints: the worker's response, or the context that it rendered last.

The worker stores a rendered context as a JSON string literal, so that the hook can print it without
a JSON encoder when no worker responds.
"""

import posix

from claude_mem import paths
from claude_mem.hook import trouble
from claude_mem.hook.ask import ask
from claude_mem.hook.wake import wake_or_start

ROUTE = b"/hook/session-start"
RESPONSE_SECONDS = 3.0

PAUSED = b"recording is paused, nothing of this session is kept; to record: claude-mem resume"
_PLAIN = b'{"continue":true,"suppressOutput":true'
_START = b'{"hookSpecificOutput":{"hookEventName":"SessionStart","additionalContext":'
# The transcript of a resumed or forked session already contains its context.
_WITH_CONTEXT = (b'"source":"resume"', b'"source":"fork"')


def context_line(
    data_dir: bytes, project_dir: bytes, record_header: bytes, payload: bytes, is_paused: bool
) -> bytes:
    response = ask(data_dir, ROUTE, record_header + payload, RESPONSE_SECONDS)
    if response is not None:
        return response
    if not is_paused:
        wake_or_start(data_dir)
    return _rendered_line(data_dir, project_dir, payload, is_paused)


def _rendered_line(data_dir: bytes, project_dir: bytes, payload: bytes, is_paused: bool) -> bytes:
    line = _PLAIN
    compact = payload.replace(b'": "', b'":"')
    if not any(mark in compact for mark in _WITH_CONTEXT):
        rendered = _read(data_dir + b"/" + paths.CONTEXTS + b"/" + paths.context_name(project_dir))
        if rendered[:1] == rendered[-1:] == b'"' and len(rendered) > 2:
            line = _START + rendered + b"}"
    message = trouble.take(data_dir)
    if message:
        line += b',"systemMessage":"claude-mem: %s (for details: claude-mem doctor)"' % message
    elif is_paused:
        line += b',"systemMessage":"claude-mem: %s"' % PAUSED
    return line + b"}"


def _read(path: bytes) -> bytes:
    try:
        file = posix.open(path, posix.O_RDONLY | posix.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return posix.read(file, 1 << 20)
    finally:
        posix.close(file)
