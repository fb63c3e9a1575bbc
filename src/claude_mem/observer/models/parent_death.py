"""Becomes the model's client, so that it dies with the worker, whatever the worker dies of.

`python -I -S leash.py CLIENT ARGUMENTS...`, with the worker's pid in CLAUDE_MEM_LEASH_PARENT and a
file in CLAUDE_MEM_LEASH_PID. The client leads a process group of its own: what it starts can be
ended with it. Where the kernel knows no death signal, the end of its stdin ends the client.
"""

import os
import signal
import sys

PARENT, PID_FILE = "CLAUDE_MEM_LEASH_PARENT", "CLAUDE_MEM_LEASH_PID"
PR_SET_PDEATHSIG = 1


def main(command: list[str]) -> None:
    parent = os.environ.pop(PARENT, "")
    pid_file = os.environ.pop(PID_FILE, "")
    os.setpgid(0, 0)
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if parent and os.getppid() != int(parent):
        return  # it died before the leash was on
    if pid_file:
        descriptor = os.open(pid_file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.write(descriptor, b"%d" % os.getpid())
        os.close(descriptor)
    os.execv(command[0], command)


if __name__ == "__main__":
    main(sys.argv[1:])
