"""Runs `python -m claude_mem` in processes that need not import it again.

A server imports the modules of all commands once and forks for each command: a process of its own,
with its own arguments, environment, directory and output. Importing takes most of the time of most
commands, and the tests run hundreds of them.
"""

import atexit
import json
import os
import pkgutil
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import NoReturn

# What an interpreter reads when it starts: with one of these, a command gets one of its own.
_OF_THE_INTERPRETER = ("PYTHON", "LC_", "LANG", "LD_", "COVERAGE")
_LENGTH = 8  # bytes before a request that tell its length
_lock = threading.Lock()


def run_command(
    arguments: Sequence[str], environ: Mapping[str, str], seconds: float
) -> subprocess.CompletedProcess[str]:
    """As subprocess.run does it, with captured output and nothing on stdin."""
    command = [sys.executable, "-m", "claude_mem", *arguments]
    if any(name.startswith(_OF_THE_INTERPRETER) for name in environ):
        return subprocess.run(
            command, capture_output=True, text=True, env=environ, stdin=subprocess.DEVNULL,
            timeout=seconds,
        )  # fmt: skip
    request = json.dumps([list(arguments), dict(environ), str(Path.cwd())]).encode()
    reader, writer = os.pipe()
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        with _lock:
            files = [output.fileno(), errors.fileno(), writer]
            socket.send_fds(_server(), [len(request).to_bytes(_LENGTH, "big")], files)
            _server().sendall(request)
        os.close(writer)
        status = _wait(reader, command, seconds)
        texts = []
        for file in (output, errors):
            file.seek(0)
            texts.append(file.read().decode().replace("\r\n", "\n"))
    return subprocess.CompletedProcess(command, status, *texts)


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
def _server() -> socket.socket:
    """Of this process of pytest. It ends when the connection is closed."""
    ours, theirs = socket.socketpair()
    process = subprocess.Popen(
        [sys.executable, "-c", f"from tests.command_server import serve; serve({theirs.fileno()})"],
        pass_fds=[theirs.fileno()],
        env={"PATH": os.environ["PATH"], "HOME": "/"},
        stdin=subprocess.DEVNULL,
    )
    theirs.close()

    def end() -> None:
        ours.close()
        process.wait()

    atexit.register(end)
    return ours


def serve(descriptor: int) -> None:
    from claude_mem import cli

    for module in pkgutil.iter_modules(cli.__path__):
        import_module(f"claude_mem.cli.{module.name}")
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those that wait for commands
    connection = socket.socket(fileno=descriptor)
    while True:
        header, files, _, _ = socket.recv_fds(connection, _LENGTH, 3)
        if not header:
            return
        length = int.from_bytes(header, "big")
        request = bytearray()
        while len(request) < length:  # and no more: the next request may follow at once
            request += connection.recv(length - len(request))
        if os.fork() == 0:
            connection.close()
            _supervise(files, *json.loads(request))
        for file in files:
            os.close(file)


def _supervise(
    files: list[int], arguments: list[str], environ: dict[str, str], directory: str
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
        _run(arguments, environ, directory)
    os.write(report, pid.to_bytes(_LENGTH, "big"))
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.write(report, status.to_bytes(_LENGTH, "big", signed=True))
    os._exit(0)


def _run(arguments: list[str], environ: dict[str, str], directory: str) -> NoReturn:
    os.environ.clear()
    os.environ.update(environ)
    os.chdir(directory)
    sys.argv = ["claude-mem", *arguments]
    status = 1
    try:
        runpy.run_module("claude_mem", run_name="__main__", alter_sys=True)
        status = 0
    except SystemExit as exit_:
        status = _status_of(exit_.code)
    except BaseException:
        traceback.print_exc()
    finally:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _status_of(code: object) -> int:
    if code is None or isinstance(code, int):
        return code or 0
    print(code, file=sys.stderr)
    return 1
