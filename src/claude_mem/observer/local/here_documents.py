"""Here-documents in shell commands: `git commit -F - <<EOF`."""

import re
from collections import deque
from collections.abc import Iterator

LONGEST_OPTIONS = 2_000  # before the here-document; a quotation that does not end is read often

_START = re.compile(r"(?<!<)<<(?!<)-?[ \t]{0,9}['\"]?([A-Za-z_]\w{0,39})['\"]?([^\n]{0,200}\n)")
_STRING = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'[^']*'|\\\n", re.DOTALL)
_NEXT_COMMAND = re.compile(r"[;\n]|&&|\|\|")


def here_document_of(command: str, invocation: re.Pattern[str]) -> str | None:
    """The one that such an invocation reads, and not one that another command writes to a file."""
    for before, text in _here_documents(command):
        for last in deque(invocation.finditer(before), 1):
            if _are_options(before[last.end() :]):
                return text
    return None


def without_here_documents(command: str) -> str:
    """The commands alone: a script in a here-document is not run where it stands."""
    return "".join(before for before, _ in _here_documents(command))


def _are_options(text: str) -> bool:
    """Whether the text holds options of one command, and not the next one."""
    return len(text) <= LONGEST_OPTIONS and not _NEXT_COMMAND.search(_STRING.sub("", text))


def _here_documents(command: str) -> Iterator[tuple[str, str | None]]:
    """Each after what stands before it, then the rest. One that is cut off reaches to the end."""
    position, rest_of_line = 0, ""
    while start := _START.search(command, position):
        closing = re.compile(rf"^[ \t)\"']*{start[1]}[ \t)\"']*$", re.MULTILINE)
        last_line = closing.search(command, start.end())
        end = last_line.start() if last_line else len(command)
        text = command[start.end() : end].removesuffix("\n")
        yield rest_of_line + command[position : start.start()], text
        position, rest_of_line = end, start[2]
    yield rest_of_line + command[position:], None
