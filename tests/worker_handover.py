"""Hands the start of a worker over to `tests/command_server.py`, whose fork need not import it.

As a script, `python -I -S <this file> <socket> <hook script> <arguments>`: the hook itself, except
that the worker that it starts is such a fork. Like the hook it has a bare interpreter.
"""

import sys


def hand_over(server: str, program: str, command: list[str], environ: dict[bytes, bytes]) -> None:
    """Hands over, in place of `posix.execve`, in the process that was to become the worker."""
    import _socket
    import posix

    assert command[:6] == [program, "-P", "-m", "claude_mem.daemon", "--lock-fd", "3"], command
    request = repr((posix.getcwdb(), command[4:], environ)).encode()
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    connection.connect(server)
    lock = (3).to_bytes(4, sys.byteorder)
    rights = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, lock)]
    connection.sendmsg([len(request).to_bytes(8, "big")], rights)
    connection.sendall(request)
    posix._exit(0)  # what was sent keeps the lock


def _run_hook(server: str, script: str) -> None:
    posix = sys.modules["posix"]
    posix.execve = lambda *arguments: hand_over(server, *arguments)  # type: ignore[attr-defined]
    with open(script, encoding="utf-8") as file:  # noqa: PTH123 (no pathlib here)
        code = compile(file.read(), script, "exec")
    exec(code, {"__name__": "__main__", "__file__": script})


if __name__ == "__main__":
    arguments = sys.argv[1:]
    sys.argv = arguments[1:]
    _run_hook(*arguments[:2])
