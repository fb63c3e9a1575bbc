"""What SessionStart prints: the worker's answer, or the context that it last rendered.

A rendered context is a JSON string literal in a file, so that it can be printed without an
encoder, and a cold start remembers too.
"""

import posix

from claude_mem import paths
from claude_mem.hook import trouble
from claude_mem.hook.ask import ask
from claude_mem.hook.wake import wake_or_start

ROUTE = b"/hook/session-start"
ANSWER_SECONDS = 3.0

_PLAIN = b'{"continue":true,"suppressOutput":true'
_START = b'{"hookSpecificOutput":{"hookEventName":"SessionStart","additionalContext":'
# A resumed or forked session carries the context it was given in its own transcript.
_CARRY_THEIR_CONTEXT = (b'"source":"resume"', b'"source":"fork"')


def context_line(
    data_dir: bytes, project_dir: bytes, record_header: bytes, payload: bytes
) -> bytes:
    answer = ask(data_dir, ROUTE, record_header + payload, ANSWER_SECONDS)
    if answer is not None:
        return answer
    wake_or_start(data_dir)
    return _cold_line(data_dir, project_dir, payload)


def _cold_line(data_dir: bytes, project_dir: bytes, payload: bytes) -> bytes:
    line = _PLAIN
    squeezed = payload.replace(b'": "', b'":"')
    if not any(mark in squeezed for mark in _CARRY_THEIR_CONTEXT):
        rendered = _read(data_dir + b"/" + paths.CONTEXTS + b"/" + paths.context_name(project_dir))
        if rendered[:1] == rendered[-1:] == b'"' and len(rendered) > 2:
            line = _START + rendered + b"}"
    message = trouble.take(data_dir)
    if message:
        line += b',"systemMessage":"claude-mem: %s (claude-mem doctor says more)"' % message
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
