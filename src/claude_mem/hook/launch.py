"""Starts the worker as a daemon that outlives the agent, its terminal and this process.

The starter takes the worker's lock and hands it over through exec, so that of many starters
exactly one goes on and there is no moment in which nobody holds it. Two forks: the client kills
its hook's whole tree, session leaders included; only an orphan of init survives.
"""

import fcntl
import posix
import sys

from claude_mem import paths

# The client's environment holds keys and tokens. The worker gets what it needs to run, its own
# settings, and what reaching a model through a proxy and its key in a keyring takes; nothing else.
_KEPT = (
    b"PATH", b"HOME", b"USER", b"LOGNAME", b"SHELL", b"LANG", b"LANGUAGE", b"TZ", b"TMPDIR",
    b"CLAUDE_CONFIG_DIR", b"CLAUDE_CODE_PATH", b"SSL_CERT_FILE", b"SSL_CERT_DIR",
    b"DBUS_SESSION_BUS_ADDRESS",
    b"HTTP_PROXY", b"HTTPS_PROXY", b"NO_PROXY", b"http_proxy", b"https_proxy", b"no_proxy",
)  # fmt: skip
_KEPT_PREFIXES = (b"CLAUDE_MEM_", b"LC_", b"XDG_")


def start_worker(data_dir: bytes, environ: dict[bytes, bytes] | None = None) -> bool:
    """True when this call started one; False when another holds or has just taken the lock."""
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
            _become_worker(data_dir, lock, environ or posix.environ)
    finally:
        posix._exit(0)


def set_aside_state(data_dir: bytes) -> None:
    """What a dead worker said of itself is true of nobody now: its pid may be anyone's."""
    try:
        posix.rename(
            data_dir + b"/" + paths.WORKER_STATE, data_dir + b"/" + paths.LAST_WORKER_STATE
        )
    except OSError:
        pass


def _become_worker(data_dir: bytes, lock: int, environ: dict[bytes, bytes]) -> None:
    if lock != 3:
        posix.dup2(lock, 3)
    posix.set_inheritable(3, True)
    null = posix.open(b"/dev/null", posix.O_RDWR)
    for standard in (0, 1, 2):
        posix.dup2(null, standard, inheritable=True)
    posix.closerange(4, 65536)
    posix.chdir(data_dir)
    command = [sys.executable, "-P", "-m", "claude_mem.daemon", "--lock-fd", "3"]
    posix.execve(sys.executable, command, worker_environment(environ, data_dir))


def worker_environment(environ: dict[bytes, bytes], data_dir: bytes) -> dict[bytes, bytes]:
    kept = {
        name: value
        for name, value in environ.items()
        if name in _KEPT or name.startswith(_KEPT_PREFIXES)
    }
    kept[paths.DATA_DIR_VARIABLE] = data_dir
    return kept
