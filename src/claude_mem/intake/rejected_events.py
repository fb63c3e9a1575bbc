"""Records that could not be processed, kept for a while so that the user can look at them.

Rejected: what could not be read as an event. Set aside: what made its worker hang or die twice.
Neither holds private text or secrets, and both are bounded in number, size and age.
"""

import json
import logging
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from claude_mem.config import Layout, write_private
from claude_mem.hook.private_text import strip_private
from claude_mem.hook.spooling import MAX_RECORD, SUFFIX
from claude_mem.intake.untrusted_files import UntrustedFileError, read_whole
from claude_mem.redaction import Redactor

log = logging.getLogger("claude_mem.intake")

MAX_FILES = 200  # in each directory
MAX_FILE_BYTES = 1024 * 1024
REDACTION_SECONDS = 20.0
MEGABYTE, DAY_SECONDS = 1024 * 1024, 86_400

_SUFFIX = SUFFIX.decode()
_CUT = "\n[cut: the payload is longer]"


def reject(layout: Layout, path: Path, redactor: Redactor) -> None:
    """The caller deletes the record."""
    layout.rejected.mkdir(mode=0o700, exist_ok=True)
    try:
        content = redacted_record(read_whole(path, MAX_RECORD), redactor)
    except UntrustedFileError as error:
        content = str(error).encode()
    write_private(layout.rejected / path.name, content)


def rejected(layout: Layout) -> list[Path]:
    return sorted(layout.rejected.glob("*" + _SUFFIX))


def set_aside(layout: Layout, path: Path, allow: Iterable[str]) -> None:
    """Sets a record aside in a process of its own, since redaction may be what hangs; if it does,
    only the header. The caller deletes the record."""
    layout.set_aside.mkdir(mode=0o700, exist_ok=True)
    target = layout.set_aside / path.name
    module = "claude_mem.intake.rejected_events"
    command = [sys.executable, "-P", "-m", module, str(path), str(target), *allow]
    try:
        subprocess.run(command, check=True, timeout=REDACTION_SECONDS, stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
    except (subprocess.SubprocessError, OSError):
        write_private(target, _header(path))


def _header(path: Path) -> bytes:
    try:
        return read_whole(path, MAX_RECORD)[:4096].partition(b"\n")[0] + b"\n"
    except (OSError, UntrustedFileError) as error:
        return str(error).encode()


def records_set_aside(layout: Layout) -> list[Path]:
    return sorted(layout.set_aside.glob("*" + _SUFFIX))


def redacted_record(data: bytes, redactor: Redactor) -> bytes:
    """Redacts a record as JSON where it is JSON: in the raw text an escape may split a secret."""
    head, separator, payload = strip_private(data).partition(b"\n")
    if not separator:
        head, payload = b"", head
    text = payload.decode("utf-8", "replace")
    try:
        text = json.dumps(redactor.redact_json(json.loads(text)), ensure_ascii=False)
    except (ValueError, RecursionError):
        text = redactor.redact(text)
    if len(text) > MAX_FILE_BYTES:
        text = text[:MAX_FILE_BYTES] + _CUT
    head = redactor.redact(head.decode("utf-8", "replace")).encode("utf-8", "replace")
    return head + separator + text.encode("utf-8", "replace")


def trim(layout: Layout, days: int, megabytes: int, now_s: float) -> int:
    """Deletes what is too old or too much, the oldest first; returns how many files."""
    deleted = 0
    for paths in (rejected(layout), records_set_aside(layout)):
        size = 0
        for number, path in enumerate(reversed(paths)):
            status = path.lstat()
            size += status.st_size
            is_old = status.st_mtime < now_s - days * DAY_SECONDS
            if is_old or number >= MAX_FILES or size > megabytes * MEGABYTE:
                deleted += delete(path)
    return deleted


def delete(path: Path) -> bool:
    """Deletes a file; one that cannot be deleted must not stop the worker."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        log.warning("%s cannot be deleted: %s", path, error)
        return False
    return True


def abandoned(layout: Layout, before_epoch: float) -> list[Path]:
    """Lists half-written records of hooks that died before they printed their line."""
    hidden = [path for path in layout.spool.glob(".*") if path.is_file()]
    return [path for path in hidden if path.stat().st_mtime < before_epoch]


def delete_all(layout: Layout) -> None:
    """Deletes all of these files, also what a hook or worker was writing when it died."""
    unfinished = abandoned(layout, time.time() - 60)
    for directory in (layout.rejected, layout.set_aside):
        unfinished += [path for path in directory.glob("*") if path.is_file()]
    for path in unfinished:
        path.unlink(missing_ok=True)


def _main(source: str, target: str, *allow: str) -> None:
    write_private(
        Path(target), redacted_record(read_whole(Path(source), MAX_RECORD), Redactor(allow))
    )


if __name__ == "__main__":
    _main(*sys.argv[1:])
