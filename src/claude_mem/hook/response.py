"""What a hook prints: the context of SessionStart, the hint of a prompt or of a tool. It requests
them from the worker over its Unix socket. The worker makes the same lines, as `agents/` declares
them.

The worker stores a rendered context as a JSON string literal, so that the hook can print it without
a JSON encoder when no worker responds. In a directory for which none was rendered, such as a new
clone of a known repository, it waits for the worker that it started, which can resolve it. Without
a response there is no hint.
"""

import _socket
import posix
import time

from claude_mem import paths

START_ROUTE, PROMPT_ROUTE, TOOL_ROUTE = b"/hook/session-start", b"/hook/prompt", b"/hook/tool"
UNATTENDED = b"?unattended=1"
START_SECONDS = 3.0
HINT_SECONDS = 0.15  # the user waits for it
NEW_WORKER_SECONDS = 1.5
POLL_SECONDS = 0.02

PAUSED = b"recording is paused, this session is not recorded; to resume: claude-mem resume"
_PLAIN = b'{"continue":true,"suppressOutput":true'
_CONTEXT = b',"hookSpecificOutput":{"hookEventName":"%s","additionalContext":%s}'
# The transcript of a resumed or forked session already contains its context.
_WITH_CONTEXT = (b'"source":"resume"', b'"source":"fork"')

MAX_RESPONSE = 32 * 1024 * 1024
MAX_PROMPT = 1024 * 1024


def context_line(
    data_dir: bytes,
    project_dir: bytes,
    record_header: bytes,
    payload: bytes,
    is_paused: bool,
    caller: bytes,
) -> bytes:
    has_user = _has_user()
    route = START_ROUTE if has_user else START_ROUTE + UNATTENDED
    response = ask(data_dir, route, record_header + payload, START_SECONDS)
    if response is not None:
        return response
    from claude_mem.hook import spooling, trouble

    # Before a worker is started, whose imports would delay these.
    context = _rendered(data_dir, project_dir, payload)
    if not is_paused:
        is_cold = not spooling.has_worker(data_dir)
        spooling.wake_or_start(data_dir)
        if is_cold and _may_be_known(data_dir, project_dir, payload):
            response = _ask_new_worker(data_dir, route, record_header + payload)
            if response is not None:
                return response
    message = _message(trouble.take(data_dir), is_paused) if has_user else b""
    return answer_line(caller, b"SessionStart", context, message)


def answer_line(dialect: bytes, event: bytes, context: bytes, message: bytes) -> bytes:
    """`context` and `message` are JSON strings with their quotes, or empty. No two agents take
    quite the same JSON."""
    if dialect != b"claude":
        from claude_mem.hook import other_agents

        return other_agents.line(dialect, event, context, message)
    line = _PLAIN + (_CONTEXT % (event, context) if context else b"")
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


def _has_user() -> bool:
    """Whether somebody sees a message: not under `claude -p` or the Agent SDK."""
    entrypoint = posix.environ.get(b"CLAUDE_CODE_ENTRYPOINT", b"")
    is_attended = posix.environ.get(b"CLAUDE_CODE_SESSION_ATTENDED") != b"0"
    return is_attended and not entrypoint.startswith(b"sdk")


def _ask_new_worker(data_dir: bytes, route: bytes, request: bytes) -> bytes | None:
    deadline = time.monotonic() + NEW_WORKER_SECONDS
    while (remaining := deadline - time.monotonic()) > 0:
        response = ask(data_dir, route, request, remaining)
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


def _message(reported: bytes, is_paused: bool) -> bytes:
    if reported:
        return b'"claude-mem: %s (for details: claude-mem doctor)"' % reported
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


def hint_line(
    data_dir: bytes, record_header: bytes, payload: bytes, *, is_tool: bool = False
) -> bytes | None:
    if len(payload) > MAX_PROMPT:
        return None  # pasted as a whole
    route = TOOL_ROUTE if is_tool else PROMPT_ROUTE
    return ask(data_dir, route, record_header + payload, HINT_SECONDS)


def ask(data_dir: bytes, route: bytes, body: bytes, seconds: float) -> bytes | None:
    """The body of a response with status 200, or None if there is none in time."""
    deadline = time.monotonic() + seconds
    # A socket path has at most 107 bytes; a path relative to the data directory always fits.
    posix.chdir(data_dir)
    socket = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        socket.settimeout(seconds)
        socket.connect(paths.SOCKET)
        socket.sendall(
            b"POST %s HTTP/1.1\r\nHost: claude-mem\r\nConnection: close\r\n"
            b"Content-Length: %d\r\n\r\n%s" % (route, len(body), body)
        )
        return _body(_receive(socket, deadline))
    except OSError:
        return None
    finally:
        socket.close()


def _receive(socket: _socket.socket, deadline: float) -> bytes:
    received = bytearray()
    while len(received) < MAX_RESPONSE:
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            raise TimeoutError
        socket.settimeout(remaining)
        chunk = socket.recv(65536)
        if not chunk:
            break
        received += chunk
        if _is_complete(received):
            break  # without waiting until the worker has closed the connection
    return bytes(received)


def _is_complete(received: bytearray) -> bool:
    end = received.find(b"\r\n\r\n")
    head = bytes(received[: max(end, 0)]).lower()
    length = head.partition(b"\r\ncontent-length: ")[2].partition(b"\r\n")[0]
    is_number = length.isdigit() and len(length) < 12
    return is_number and len(received) >= end + 4 + int(length)


def _body(response: bytes) -> bytes | None:
    head, separator, body = response.partition(b"\r\n\r\n")
    status = head.split(b" ", 2)[1:2]
    return body if separator and status == [b"200"] and body else None
