"""Runs a program in a pseudo terminal, sends keys and records what it shows."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
import threading
from pathlib import Path

_CONTROL = re.compile(
    rb"\x1b\[[0-9;?<>=]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b.|[\r\n]"
)


class Terminal:
    def __init__(self, command: list[str], cwd: Path, env: dict[str, str]) -> None:
        controller, terminal = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        self._controller = controller
        self.process = subprocess.Popen(command, cwd=cwd, env={**env, "TERM": "xterm-256color"},
                                        stdin=terminal, stdout=terminal, stderr=terminal,
                                        start_new_session=True)  # fmt: skip
        os.close(terminal)
        self.shown = b""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        try:
            while chunk := os.read(self._controller, 65536):
                self.shown += chunk
        except OSError:
            pass  # Linux returns EIO when the program has exited

    def press(self, keys: str) -> None:
        os.write(self._controller, keys.encode())

    def shows(self, text: str) -> bool:
        """Ignores spaces, which are often drawn by moving the cursor."""
        plain = _CONTROL.sub(b"", self.shown).replace(b" ", b"")
        return text.replace(" ", "").encode() in plain

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._controller)
        self._reader.join(5)
