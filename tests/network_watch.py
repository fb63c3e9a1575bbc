"""Every connection that any process of a test run attempts, as the kernel sees it.

A seccomp filter sends each connect, bind and addressed send of this process and of everything
that descends from it to a thread here, which reads the address. Unlike an audit hook it needs
nothing inside the watched process: it sees hooks in a bare `-I -S` interpreter, daemons that
forked twice with a scrubbed environment, copied installations, and C code. What would go beyond
this machine is written down and refused. Linux 5.5 or newer on x86-64 or arm64; no privileges.

The address is read from memory that a hostile process could change in between. Ours is not.
"""

import ctypes
import errno
import fcntl
import ipaddress
import os
import platform
import socket
import struct
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# The numbers of: seccomp, connect, bind, sendto, sendmsg, sendmmsg; and the kernel's name of it.
_MACHINES = {
    "x86_64": ((317, 42, 49, 44, 46, 307), 0xC000003E),
    "aarch64": ((277, 203, 200, 206, 211, 269), 0xC00000B7),
}
_ALLOWED_FAMILIES = (socket.AF_UNIX, socket.AF_UNSPEC, 16)  # 16: netlink, the kernel itself
_DNS = 53

_SET_MODE_FILTER, _CONTINUE, _SYS_PTRACE = 1, 1, 19
_FLAGS = 8 | 4  # a listener; and no slower mode of the processor for whoever has a filter
_RECEIVE, _ANSWER = 0xC0502100, 0xC0182101
_NOTICE, _NOTICE_BYTES = struct.Struct("=QIIiIQ6Q"), 80


class CannotWatchError(Exception):
    """Why this machine does not let us."""


@dataclass(frozen=True, slots=True)
class Attempt:
    place: str
    process: str

    def __str__(self) -> str:
        return f"{self.place}\t{self.process}"


def beyond(call: str, address: bytes) -> str | None:
    """What of a socket address lies beyond this machine; None where nothing does."""
    (family,) = struct.unpack_from("=H", address) if len(address) >= 2 else (0,)
    if family in _ALLOWED_FAMILIES:
        return None
    if family == socket.AF_INET:
        port, packed = struct.unpack_from("!H4s", address, 2)
    elif family == socket.AF_INET6:
        port, _, packed = struct.unpack_from("!HI16s", address, 2)
    else:
        return f"{call} to an address of family {family}"
    host = ipaddress.ip_address(packed)
    host = getattr(host, "ipv4_mapped", None) or host
    # A question for a name leaves the machine, even where a resolver on it takes it first.
    if host.is_loopback and not (port == _DNS and call != "bind"):
        return None
    return f"{call} {host}:{port}"


class NetworkWatch:
    """Once begun it watches until this process ends: a filter cannot be taken off again."""

    def __init__(self, record: Path, not_ours: Path | None, clients: Path | None = None) -> None:
        """What programs below `clients` attempt is refused, but it is no failure of ours."""
        self._record, self._not_ours, self._clients = record, not_ours, clients
        numbers, self._arch = _numbers()
        self._seccomp, *calls = numbers
        names = ("connect", "bind", "sendto", "sendmsg", "sendmmsg")
        self._calls = dict(zip(calls, names, strict=True))

    def begin(self) -> None:
        _require_readable_daemons()
        listener = self._install()
        threading.Thread(target=self._serve, args=(listener,), daemon=True).start()

    def _install(self) -> int:
        libc = ctypes.CDLL(None, use_errno=True)
        program = _filter(self._arch, self._calls)
        instructions = ctypes.create_string_buffer(program)
        head = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(instructions))
        call = (self._seccomp, _SET_MODE_FILTER, _FLAGS, ctypes.create_string_buffer(head))
        listener = int(libc.syscall(*call))
        if listener < 0 and ctypes.get_errno() == errno.EACCES:
            libc.prctl(38, 1, 0, 0, 0)  # no new privileges: what the kernel asks of who is not root
            listener = int(libc.syscall(*call))
        if listener < 0:
            raise CannotWatchError(f"the kernel refuses: {os.strerror(ctypes.get_errno())}")
        return listener

    def _serve(self, listener: int) -> None:
        while True:
            notice = bytearray(_NOTICE_BYTES)
            try:
                fcntl.ioctl(listener, _RECEIVE, notice)
            except OSError:
                continue  # the process died before it was heard
            identity, pid, _, number, _, _, *arguments = _NOTICE.unpack(notice)
            refused = self._judge(pid, self._calls[number], arguments)
            answer = struct.pack(
                "=QqiI", identity, 0, -errno.ENETUNREACH if refused else 0,
                0 if refused else _CONTINUE,
            )  # fmt: skip
            try:
                fcntl.ioctl(listener, _ANSWER, bytearray(answer))
            except OSError:
                continue

    def _judge(self, pid: int, call: str, arguments: list[int]) -> bool:
        """Whether it is written down and refused."""
        try:
            if self._not_ours and is_within(pid, self._not_ours):
                return False
            places = [beyond(call, address) for address in _addresses(pid, call, arguments)]
        except OSError as error:
            places = [f"{call} to an address that cannot be read: {error.strerror}"]
            if not Path(f"/proc/{pid}").exists():
                return False
        found = [place for place in places if place]
        if found and self._clients and runs_below(pid, self._clients):
            return True
        for place in found:
            self._write(Attempt(place, _name_of(pid)))
        return bool(found)

    def _write(self, attempt: Attempt) -> None:
        with self._record.open("a") as file:
            file.write(f"{attempt}\n")


def is_within(pid: int, program: Path) -> bool:
    """Whether a process is this program, or was started by it without a Python in between: the
    real client asks git and ssh of its own accord, but its hooks are ours. False also if one of the
    processes above it ends meanwhile: what it connects to then decides."""
    try:
        while pid > 1:
            executable = Path(f"/proc/{pid}/exe")
            if executable.samefile(program):
                return True
            if executable.readlink().name.startswith("python"):
                return False
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        pass
    return False


def runs_below(pid: int, directory: Path) -> bool:
    """Whether a process is a program in this directory, or a script of it, or was started by one
    without a Python in between."""
    roots = (str(directory), str(directory.resolve()))
    while pid > 1:
        try:
            executable = str(Path(f"/proc/{pid}/exe").readlink())
            words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
            parent = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]
        except OSError:
            return False
        if Path(executable).name.startswith("python"):
            return False
        if any(word.startswith(root) for word in (executable, *words[:2]) for root in roots):
            return True
        pid = int(parent)
    return False


def attempts(record: Path) -> list[Attempt]:
    lines = record.read_text().splitlines() if record.exists() else []
    return [Attempt(*line.split("\t", 1)) for line in lines]


def _numbers() -> tuple[tuple[int, ...], int]:
    if sys.platform != "linux" or platform.machine() not in _MACHINES or sys.maxsize < 2**32:
        raise CannotWatchError(f"not on {sys.platform} {platform.machine()}")
    return _MACHINES[platform.machine()]


def _require_readable_daemons() -> None:
    """Yama shows a process's memory to its ancestors alone; a daemon's is init."""
    scope = Path("/proc/sys/kernel/yama/ptrace_scope")
    if not scope.exists() or scope.read_text().strip() == "0":
        return
    status = Path("/proc/self/status").read_text()
    effective = int(status.partition("CapEff:")[2].split()[0], 16)
    if not effective >> _SYS_PTRACE & 1:
        raise CannotWatchError(f"{scope} is not 0, and CAP_SYS_PTRACE is missing")


def _filter(arch: int, calls: dict[int, str]) -> bytes:
    """Tells of these calls; of `sendto` only where it names an address."""
    load, equal, give = 0x20, 0x15, 0x06
    allow, tell = 0x7FFF0000, 0x7FC00000
    steps = [
        (load, 0, 0, 4), (equal, 1, 0, arch), (give, 0, 0, allow),  # another machine's numbers
        (load, 0, 0, 0),
    ]  # fmt: skip
    for number, name in calls.items():
        if name == "sendto":
            steps += [
                (equal, 0, 6, number),
                (load, 0, 0, 16 + 4 * 8), (equal, 0, 2, 0),
                (load, 0, 0, 20 + 4 * 8), (equal, 1, 0, 0),
                (give, 0, 0, tell), (give, 0, 0, allow),
            ]  # fmt: skip
        else:
            steps += [(equal, 0, 1, number), (give, 0, 0, tell)]
    return b"".join(struct.pack("HBBI", *step) for step in [*steps, (give, 0, 0, allow)])


def _addresses(pid: int, call: str, arguments: list[int]) -> Iterator[bytes]:
    """Reads the addresses that a call names, from the memory of who made it."""
    if call in ("connect", "bind"):
        yield _read(pid, arguments[1], arguments[2])
    elif call == "sendto":
        yield _read(pid, arguments[4], arguments[5])
    else:
        count = arguments[2] if call == "sendmmsg" else 1
        for number in range(min(count, 64)):
            name, length = struct.unpack("=QI", _read(pid, arguments[1] + 64 * number, 12))
            if name:
                yield _read(pid, name, length)


def _read(pid: int, start: int, length: int) -> bytes:
    memory = os.open(f"/proc/{pid}/mem", os.O_RDONLY)
    try:
        return os.pread(memory, min(length & 0xFFFFFFFF, 128), start)
    finally:
        os.close(memory)


def _name_of(pid: int) -> str:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        words = ["gone"]
    return " ".join(f"pid {pid}: {' '.join(words)}".split())[:300]
