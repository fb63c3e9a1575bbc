"""The hook from end to end: read stdin, remove private text, spool, wake the worker, print.

It never parses JSON, never opens the database, waits only for a response that it must print, and
always exits with 0: exit code 2 would block the user's prompt.
"""

import posix
import time

from claude_mem import paths
from claude_mem.hook import spooling
from claude_mem.hook.private_text import strip_payload

CLAUDE = b"claude"
CONTINUE = b'{"continue":true,"suppressOutput":true}'
NEED_RESPONSE = (b"SessionStart",)
PRE_TOOL = b"PreToolUse"
# Set by other agents, of which some run the hooks in Claude Code's settings.
_OTHER_AGENTS = (b"COPILOT_CLI", b"CURSOR_VERSION", b"GEMINI_SESSION_ID")
VARIABLES = (b"CLAUDE_PROJECT_DIR", *_OTHER_AGENTS)  # of a session, next to those for a worker


def run(arguments: list[str]) -> int:
    dialect, event = (_safe_word(argument) for argument in (*arguments[:2], "", "")[:2])
    if posix.environ.get(b"CLAUDE_MEM_INTERNAL"):
        _print(_plain(dialect))
        return 0
    try:
        if event == b"Wake":
            spooling.wake_or_start(paths.data_dir(posix.environ))
            return 0
        _print(_handle(paths.data_dir(posix.environ), dialect, event))
    except Exception as error:
        _report_failure(dialect, event, error)
    return 0


def _handle(data_dir: bytes, dialect: bytes, event: bytes) -> bytes:
    payload = _read_payload()
    if not payload.strip():
        return _plain(dialect)  # as a client ends a hook that it does not need any more
    if not data_dir:
        raise FileNotFoundError("neither CLAUDE_MEM_DATA_DIR nor HOME is set")
    caller = _caller(dialect, payload)
    is_paused = _is_paused(data_dir)
    if is_paused and event not in NEED_RESPONSE:
        return _plain(caller)
    project_dir = posix.environ.get(b"CLAUDE_PROJECT_DIR", b"")
    record_header = spooling.header(caller, event, time.time_ns(), project_dir)
    clean = strip_payload(payload)
    if event == PRE_TOOL and dialect == caller and _is_marked(data_dir, paths.FILE_HINTS):
        # What the tool did is reported afterwards.
        has_worker = spooling.has_worker(data_dir)
        hint = _hint(data_dir, record_header, clean, is_tool=True) if has_worker else None
        return hint or _plain(caller)
    is_spooled = not is_paused and _spool(data_dir, event, record_header, clean)
    if dialect == CLAUDE != caller:
        return _capture_only(data_dir, caller, is_spooled)
    if event in NEED_RESPONSE:
        from claude_mem.hook.response import context_line

        directory = project_dir or posix.getcwdb()
        return context_line(data_dir, directory, record_header, clean, is_paused, caller)
    line = _plain(caller)
    if event == b"UserPromptSubmit" and _gives_hints(data_dir):
        line = _hint(data_dir, record_header, clean) or line
    if is_spooled:
        spooling.wake_or_start(data_dir)  # after the hint: what the event entails would delay it
    return line


def _caller(dialect: bytes, payload: bytes) -> bytes:
    """The agent that runs this hook: some also run those in Claude Code's settings."""
    is_certain = dialect == CLAUDE and b'"session_id"' in payload
    if is_certain and not any(name in posix.environ for name in _OTHER_AGENTS):
        return dialect
    from claude_mem.hook.other_agents import caller

    return caller(dialect, posix.environ, payload)


def _plain(dialect: bytes) -> bytes:
    return b"{}" if dialect and dialect != CLAUDE else CONTINUE


def _capture_only(data_dir: bytes, caller: bytes, is_spooled: bool) -> bytes:
    """Answers a hook for Claude Code that another agent runs: that agent's own hook gives the
    context, and would give it twice."""
    if is_spooled:
        spooling.wake_or_start(data_dir)
    return _plain(caller)


def _hint(
    data_dir: bytes, record_header: bytes, payload: bytes, *, is_tool: bool = False
) -> bytes | None:
    """None also while an upgrade replaces the package: the event is spooled by now."""
    try:
        from claude_mem.hook.response import hint_line

        return hint_line(data_dir, record_header, payload, is_tool=is_tool)
    except (ImportError, OSError):
        return None


def _gives_hints(data_dir: bytes) -> bool:
    return _is_marked(data_dir, paths.HINTS) and spooling.has_worker(data_dir)


def _is_marked(data_dir: bytes, flag: bytes) -> bool:
    try:
        posix.stat(data_dir + b"/" + flag)
    except OSError:
        return False
    return True


def _is_paused(data_dir: bytes) -> bool:
    try:
        return posix.stat(data_dir + b"/" + paths.PAUSED).st_mtime > time.time()
    except OSError:
        return False


def _spool(data_dir: bytes, event: bytes, record_header: bytes, payload: bytes) -> bool:
    """False if it does not fit on the disk; then it is counted."""
    try:
        spooling.put(data_dir, record_header, payload)
    except OSError as error:
        from claude_mem.hook.trouble import count_lost, report

        if not count_lost(data_dir):
            raise
        report(data_dir, f"hook {event.decode()}: {error.strerror}")
        return False
    return True


def _read_payload() -> bytes:
    chunks: list[bytes] = []
    size = 0
    while chunk := posix.read(0, 1 << 20):
        size += len(chunk)
        if size <= spooling.MAX_PAYLOAD:
            chunks.append(chunk)
    if size > spooling.MAX_PAYLOAD:
        raise ValueError(f"the payload has {size} bytes; the limit is {spooling.MAX_PAYLOAD}")
    payload = b"".join(chunks)
    if b"\0" in payload[:4]:
        # UTF-16 or UTF-32: the scanner cannot recognise private tags in it, so it is not stored.
        raise ValueError("the payload is not UTF-8")
    return payload


def _safe_word(argument: str) -> bytes:
    return bytes(b for b in argument.encode("ascii", "ignore")[:40] if b > 0x20)


def _report_failure(dialect: bytes, event: bytes, error: Exception) -> None:
    from claude_mem.hook.trouble import plain, report

    reason = f"hook {event.decode() or '(no event)'}: {type(error).__name__}: {error}"
    data_dir = paths.data_dir(posix.environ)
    try:
        spooling.make_directories(data_dir)
    except OSError:
        pass  # then the report fails too, and the user is told on the screen
    written = report(data_dir, reason)
    if event in NEED_RESPONSE and not written and _plain(dialect) == CONTINUE:
        _print(CONTINUE[:-1] + b',"systemMessage":"claude-mem: %s"}' % plain(reason))
    else:
        _print(_plain(dialect))


def _print(line: bytes) -> None:
    try:
        spooling.write_all(1, line + b"\n")
    except OSError:
        pass  # the client closed the pipe
