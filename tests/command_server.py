"""Runs `python -m claude_mem`, and workers, in processes that need not import the package again.

A server imports the modules once and forks for each command and each worker: a process of its own,
with its own arguments, environment, directory and files. Importing takes most of the time of most
commands and of every start of a worker, and the tests run hundreds of each. What /proc shows of
such a process, its command line and its first environment, is that of the server.

A worker is started by the code of the product, in a hook or in a command, up to the point where the
process would become an interpreter: there it hands over (`tests/worker_handover.py`).
"""

import ast
import atexit
import gc
import json
import os
import pkgutil
import posix
import runpy
import select
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from importlib import import_module, reload
from pathlib import Path
from typing import NoReturn

from claude_mem import cli, daemon
from claude_mem.config import Layout
from claude_mem.hook import fault_injection
from claude_mem.install.launcher import hook_script
from tests import worker_handover

# What an interpreter reads when it starts: with one of these, a process gets one of its own.
_OF_THE_INTERPRETER = ("PYTHON", "LC_", "LANG", "LD_", "COVERAGE")
# Modules that a worker or a command imports when it first needs them; the second needs numpy.
_USED_LATER = (
    "claude_mem.mcp.tools",
    "claude_mem.index.vectors.vector_search",
    "claude_mem.index.embedders.static_model",
    "uvicorn.protocols.http.auto",
)
_LENGTH = 8  # bytes before a request that tell its length
_lock = threading.Lock()


def run_command(
    arguments: Sequence[str],
    environ: Mapping[str, str],
    seconds: float,
    *,
    starts_cold: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Runs a command as subprocess.run does, with captured output and nothing on stdin. A worker
    that it starts is a fork of the server, or with `starts_cold` an interpreter of its own."""
    command = [sys.executable, "-m", "claude_mem", *arguments]
    if _needs_own_interpreter(environ):
        return subprocess.run(
            command, capture_output=True, text=True, env=environ, stdin=subprocess.DEVNULL,
            timeout=seconds,
        )  # fmt: skip
    request = json.dumps([starts_cold, list(arguments), dict(environ), str(Path.cwd())]).encode()
    reader, writer = os.pipe()
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        with _lock:
            files = [output.fileno(), errors.fileno(), writer]
            connection, _ = _server()
            socket.send_fds(connection, [len(request).to_bytes(_LENGTH, "big")], files)
            connection.sendall(request)
        os.close(writer)
        status = _wait(reader, command, seconds)
        texts = []
        for file in (output, errors):
            file.seek(0)
            texts.append(file.read().decode().replace("\r\n", "\n"))
    return subprocess.CompletedProcess(command, status, *texts)


def hook_command(layout: Layout, environ: Mapping[str, str]) -> list[str | Path]:
    """The launcher, except that a worker that its hook starts is a fork of the server. Just the
    launcher if it is not that of this installation, or if it is gone."""
    try:
        text = layout.launcher.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return [layout.launcher]
    hook = shlex.quote(str(hook_script()))
    run_by_launcher = f"{shlex.quote(sys.executable)} -I -S {hook} "
    if _needs_own_interpreter(environ) or run_by_launcher not in text:
        return [layout.launcher]
    with _lock:
        _, address = _server()
    script = shlex.quote(str(worker_handover.__file__))
    run_here = f"{shlex.quote(sys.executable)} -I -S {script} {shlex.quote(address)} {hook} "
    return ["/bin/sh", "-c", text.replace(run_by_launcher, run_here), layout.launcher]


def _needs_own_interpreter(environ: Mapping[str, str]) -> bool:
    return any(name.startswith(_OF_THE_INTERPRETER) for name in environ)


def _wait(reader: int, command: list[str], seconds: float) -> int:
    """The exit status; a command that takes longer is killed."""
    with open(reader, "rb", buffering=0) as pipe:
        pid = int.from_bytes(pipe.read(_LENGTH), "big")
        late = threading.Timer(seconds, os.kill, (pid, signal.SIGKILL))
        late.start()
        try:
            status = int.from_bytes(pipe.read(_LENGTH), "big", signed=True)
        finally:
            late.cancel()
    if status == -signal.SIGKILL and late.finished.is_set() and not late.is_alive():
        raise subprocess.TimeoutExpired(command, seconds)
    return status


@cache
def _server() -> tuple[socket.socket, str]:
    """The connection to that of this process of pytest, which ends with it, and the address for
    processes that hand over a worker."""
    ours, theirs = socket.socketpair()
    # Not where a test may look for its own temporary files; and the address has to be short.
    directory = tempfile.mkdtemp(prefix="workers-", dir="/tmp")
    address = f"{directory}/socket"
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(address)
    listener.listen(64)
    descriptors = [theirs.fileno(), listener.fileno()]
    process = subprocess.Popen(
        [sys.executable, "-c", f"from tests.command_server import serve; serve(*{descriptors})"],
        pass_fds=descriptors,
        # numpy must not start threads: a fork has none of them.
        env={"PATH": os.environ["PATH"], "HOME": "/", "OPENBLAS_NUM_THREADS": "1"},
        stdin=subprocess.DEVNULL,
    )
    theirs.close()
    listener.close()

    def end() -> None:
        ours.close()
        process.wait()
        shutil.rmtree(directory)

    atexit.register(end)
    return ours, address


def serve(commands: int, workers: int) -> None:
    for name in _USED_LATER:
        import_module(name)
    for module in pkgutil.iter_modules(cli.__path__):
        import_module(f"claude_mem.cli.{module.name}")
    gc.collect()
    gc.freeze()  # a collection in a fork would copy the pages of all these objects
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those that wait for commands
    connection, listener = socket.socket(fileno=commands), socket.socket(fileno=workers)
    address = str(listener.getsockname())
    while True:
        ready, _, _ = select.select([connection, listener], [], [])
        if listener in ready:
            with listener.accept()[0] as from_starter:
                if received := _receive(from_starter):
                    files, request = received
                    _fork([connection, listener], files, _become_worker, ast.literal_eval(request))
        if connection in ready:
            if (received := _receive(connection)) is None:
                return
            files, request = received
            _fork([connection, listener], files, _supervise, [address, *json.loads(request)])


def _receive(connection: socket.socket) -> tuple[list[int], str] | None:
    header, files, _, _ = socket.recv_fds(connection, _LENGTH, 3)
    if not header:
        return None
    length = int.from_bytes(header, "big")
    request = bytearray()
    while len(request) < length:  # and no more: the next request may follow at once
        if not (part := connection.recv(length - len(request))):  # killed while it sent it
            for file in files:
                os.close(file)
            return None
        request += part
    return files, request.decode()


def _fork(
    sockets: list[socket.socket],
    files: list[int],
    work: Callable[..., NoReturn],
    arguments: Sequence[object],
) -> None:
    if os.fork() == 0:
        for ours in sockets:
            ours.close()
        work(files, *arguments)
    for file in files:
        os.close(file)


def _supervise(
    files: list[int],
    server: str,
    starts_cold: bool,
    arguments: list[str],
    environ: dict[str, str],
    directory: str,
) -> NoReturn:
    """Tells the process id of the command and its status as subprocess does."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    output, errors, report = files
    pid = os.fork()
    if pid == 0:
        os.close(report)
        for file, number in ((output, 1), (errors, 2)):
            os.dup2(file, number)
            os.close(file)
        _set_environment(environ)
        os.chdir(directory)
        if not starts_cold:
            posix.execve = partial(worker_handover.hand_over, server)  # type: ignore[assignment]
        _run(_run_command, arguments)
    os.write(report, pid.to_bytes(_LENGTH, "big"))
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.write(report, status.to_bytes(_LENGTH, "big", signed=True))
    os._exit(0)


def _become_worker(
    files: list[int], directory: bytes, arguments: list[str], environ: dict[bytes, bytes]
) -> NoReturn:
    """Becomes a worker as `claude_mem.hook.worker_start` does it: the daemon is a child of init."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    if os.fork():
        os._exit(0)
    (lock,) = files
    null = os.open(os.devnull, os.O_RDWR)
    for file, number in ((lock, 3), (null, 0), (null, 1), (null, 2)):
        os.dup2(file, number)
    os.closerange(4, 65536)
    os.chdir(directory)
    _set_environment({os.fsdecode(k): os.fsdecode(v) for k, v in environ.items()})
    sys.path = [entry for entry in sys.path if entry]  # as -P has it
    sys.argv = [str(daemon.__file__), *arguments]
    _run(daemon.main, arguments)


def _set_environment(environ: Mapping[str, str]) -> None:
    os.environ.clear()
    os.environ.update(environ)
    reload(fault_injection)  # reads the environment when it is imported


def _run(work: Callable[[list[str]], int], arguments: list[str]) -> NoReturn:
    status = 1
    try:
        status = work(arguments)
    except SystemExit as exit_:
        status = _status_of(exit_.code)
    except BaseException:
        traceback.print_exc()
    finally:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _run_command(arguments: list[str]) -> int:
    sys.argv = ["claude-mem", *arguments]
    runpy.run_module("claude_mem", run_name="__main__", alter_sys=True)
    return 0


def _status_of(code: object) -> int:
    if code is None or isinstance(code, int):
        return code or 0
    print(code, file=sys.stderr)
    return 1
