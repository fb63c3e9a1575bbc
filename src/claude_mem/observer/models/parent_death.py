"""Runs Claude Code so that it dies with the worker, whatever ends the worker.

`python -I -S parent_death.py COMMAND ARGUMENTS...`, with the worker's pid and a file for the
client's own pid in the environment. The client leads a process group of its own, so that its
children can be killed with it. Without a kernel that signals the death of a parent (Linux only),
the end of its stdin ends the client.
"""

import os
import signal
import sys

PARENT_PID, PID_FILE = "CLAUDE_MEM_CLIENT_PARENT_PID", "CLAUDE_MEM_CLIENT_PID_FILE"
PR_SET_PDEATHSIG = 1


def main(command: list[str]) -> None:
    parent = os.environ.pop(PARENT_PID, "")
    pid_file = os.environ.pop(PID_FILE, "")
    os.setpgid(0, 0)
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if parent and os.getppid() != int(parent):
        return  # the worker died before the signal was set
    if pid_file:
        descriptor = os.open(pid_file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.write(descriptor, b"%d" % os.getpid())
        os.close(descriptor)
    os.execv(command[0], command)


if __name__ == "__main__":
    main(sys.argv[1:])
