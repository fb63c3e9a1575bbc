"""Starts the worker as a daemon that outlives the agent, its terminal and this process.

The starter takes the worker's lock and passes it on through exec: of several starters exactly one
continues, and the lock is never free in between. It forks twice, because the client kills the
whole process tree of its hook, session leaders included; only a child of init survives.
"""

import fcntl
import posix
import sys

from claude_mem import paths

# The client's environment contains keys and tokens. The worker gets only what it may need: its own
# settings, and the variables for proxies, certificates and the system keyring.
PASSED = (
    b"PATH", b"HOME", b"USER", b"LOGNAME", b"SHELL", b"LANG", b"LANGUAGE", b"TMPDIR",
    b"CLAUDE_CONFIG_DIR", b"CLAUDE_CODE_PATH", b"SSL_CERT_FILE", b"SSL_CERT_DIR",
    b"DBUS_SESSION_BUS_ADDRESS",
    b"HTTP_PROXY", b"HTTPS_PROXY", b"NO_PROXY", b"http_proxy", b"https_proxy", b"no_proxy",
)  # fmt: skip
PASSED_PREFIXES = (b"CLAUDE_MEM_", b"LC_", b"XDG_")
# It may name any file, which every interpreter reads when it starts: not from a session.
TIME_ZONE = b"TZ"


# The last argument of a worker that a command of the user started: its environment may decide what
# is stored and sent. That of a session may come from the repository (`config/environment.py`).
OWN_ENVIRONMENT = "--own-environment"


def start_worker(
    data_dir: bytes, environ: dict[bytes, bytes] | None = None, *, is_own: bool = False
) -> bool:
    """Starts a worker; returns False if another process has the lock."""
    lock = posix.open(
        data_dir + b"/" + paths.LOCK, posix.O_RDWR | posix.O_CREAT | posix.O_CLOEXEC, 0o600
    )
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        posix.close(lock)
        return False
    set_aside_state(data_dir)
    child = posix.fork()
    if child:
        posix.close(lock)
        posix.waitpid(child, 0)
        return True
    try:
        posix.setsid()
        if posix.fork() == 0:
            _become_worker(data_dir, lock, environ or posix.environ, is_own)
    finally:
        posix._exit(0)


def set_aside_state(data_dir: bytes) -> None:
    """Rename the state file of a dead worker: its pid may belong to another process by now."""
    try:
        posix.rename(
            data_dir + b"/" + paths.WORKER_STATE, data_dir + b"/" + paths.LAST_WORKER_STATE
        )
    except OSError:
        pass


def _become_worker(data_dir: bytes, lock: int, environ: dict[bytes, bytes], is_own: bool) -> None:
    if lock != 3:
        posix.dup2(lock, 3)
    posix.set_inheritable(3, True)
    null = posix.open(b"/dev/null", posix.O_RDWR)
    for standard in (0, 1, 2):
        posix.dup2(null, standard, inheritable=True)
    posix.closerange(4, 65536)
    posix.chdir(data_dir)
    command = [sys.executable, "-P", "-m", "claude_mem.daemon", "--lock-fd", "3"]
    if is_own:
        command.append(OWN_ENVIRONMENT)
    posix.execve(sys.executable, command, worker_environment(environ, data_dir, is_own=is_own))


def worker_environment(
    environ: dict[bytes, bytes], data_dir: bytes, *, is_own: bool = False
) -> dict[bytes, bytes]:
    passed = {
        name: value
        for name, value in environ.items()
        if name in PASSED or name.startswith(PASSED_PREFIXES) or (is_own and name == TIME_ZONE)
    }
    passed[paths.DATA_DIR_VARIABLE] = data_dir
    return passed
