"""Commands that a running worker answers: search, context and status, without click or settings.

An interpreter that starts, asks and prints takes a fraction of the time that the modules of the
command take. Whatever is not plain (an unknown option, an error, no worker, a worker of another
version, variables that the worker may not have) is left to the command itself.
"""

import posix
import sys

from claude_mem import __version__, paths
from claude_mem.hook.response import ask

SECONDS = 10.0
OPTIONS = {
    "status": {},
    "context": {"--project": "project"},
    "search": {
        "--project": "project",
        "--type": "type",
        "--concept": "concepts",
        "--file": "files",
        "--since": "dateStart",
        "--until": "dateEnd",
        "--session": "session",
        "--status": "status",
        "--order": "orderBy",
        "--limit": "limit",
        "--offset": "offset",
    },
}
VERBOSE = "-v", "--verbose"  # of a search
_SAME_IN_THE_WORKER = (b"CLAUDE_MEM_DATA_DIR", b"CLAUDE_MEM_WORKER_PORT")
_NOT_PLAIN = 0o010000, 0o100000, 0o140000  # a pipe, a file, a socket on stdin: perhaps a payload


def run(arguments: list[str]) -> bool:
    """Whether the worker answered, and the answer was printed."""
    values = parse(arguments)
    if values is None or not _is_plain(posix.environ):
        return False
    is_plain_context = arguments == ["context"]
    if is_plain_context and _may_have_payload() and _has_payload():
        return False
    reply = _ask(arguments[0], values)
    if reply is None:
        return False
    try:
        sys.stdout.write(reply.decode("utf-8") + "\n")
        sys.stdout.flush()
    except UnicodeEncodeError:
        return False  # nothing was written yet
    except BrokenPipeError:
        posix.dup2(posix.open("/dev/null", posix.O_WRONLY), 1)
    return True


def parse(arguments: list[str]) -> dict[str, str] | None:
    """The values by the names that the worker knows; None where click has to decide."""
    options = OPTIONS.get(arguments[0]) if arguments else None
    if options is None:
        return None
    values: dict[str, str] = {}
    words: list[str] = []
    rest = iter(arguments[1:])
    for argument in rest:
        name, equals, value = argument.partition("=")
        if argument == "--json":
            values["json"] = "yes"
        elif arguments[0] == "search" and argument in VERBOSE:
            values["verbose"] = "yes"
        elif name in options:
            text = value if equals else next(rest, None)
            if text is None or options[name] in values:
                return None
            values[options[name]] = text
        elif _is_option(argument, arguments[0]):
            return None
        else:
            words.append(argument)
    if arguments[0] == "search":
        values["query"] = " ".join(words)
    return None if words and arguments[0] != "search" else values


def _is_option(argument: str, command: str) -> bool:
    """Whether the argument is an option; in a search, `-word` is a word that must not match."""
    if command == "search":
        return argument == "-h" or argument.startswith("--")
    return argument.startswith("-")


def _is_plain(environ: dict[bytes, bytes]) -> bool:
    """Whether the worker would read the same settings, and the same clock."""
    return b"TZ" not in environ and not any(
        name.startswith(b"CLAUDE_MEM_") and name not in _SAME_IN_THE_WORKER for name in environ
    )


def _may_have_payload() -> bool:
    try:
        return posix.fstat(0).st_mode & 0o170000 in _NOT_PLAIN
    except OSError:
        return False


def _has_payload() -> bool:
    """Reads stdin; what it holds is put back for the command."""
    payload = b"".join(iter(lambda: posix.read(0, 65536), b""))
    if not payload.strip():
        return False
    import tempfile

    with tempfile.TemporaryFile() as file:
        file.write(payload)
        file.seek(0)
        posix.dup2(file.fileno(), 0)
    return True


def _ask(name: str, values: dict[str, str]) -> bytes | None:
    data_dir = paths.data_dir(posix.environ)
    if not data_dir:
        return None
    try:
        directory = posix.environ.get(b"CLAUDE_PROJECT_DIR") or posix.getcwdb()
        here = posix.open(b".", posix.O_RDONLY)
    except OSError:
        return None
    values |= {"version": __version__, "terminal": "yes" if posix.isatty(1) else ""}
    fields = [part.encode("utf-8", "surrogateescape") for pair in values.items() for part in pair]
    body = b"\0".join([*fields, b"directory", directory])
    try:
        return ask(data_dir, b"/command/" + name.encode(), body, SECONDS)
    except OSError:
        return None
    finally:
        posix.fchdir(here)
        posix.close(here)
