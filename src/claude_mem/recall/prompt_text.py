"""What the user typed of a prompt, as far as it can say what the work is about.

Tags, fenced blocks, quoted lines and lines of logs are pasted. Commands and messages of the client
are not typed at all. Of a URL only the end counts: the rest is the same in every prompt.
"""

import re

MAX_PROMPT = 8_000  # characters that are read
MAX_TYPED = 800  # a prompt says first what it is about
MAX_WORD = 200

_COMMAND = re.compile(r"/[A-Za-z][\w:-]*(?:\s|$)")
_MESSAGES = (
    "<task-notification", "<command-", "<local-command", "<bash-", "<system-reminder",
    "[Request interrupted", "Caveat: The messages below", "This session is being continued from",
)  # fmt: skip
_PLAN = re.compile(r"implement the following plan:", re.IGNORECASE)
_HEADING = re.compile(
    r"#{1,6} (?:(?:plan: ?)|(?:context|summary|goal|overview|background)$)?", re.I
)
_OPENING = re.compile(r"<([A-Za-z][\w-]{0,60})")
_PASTED_LINE = re.compile(
    r">|\[?\d{4}-\d\d-\d\d[T ]|\[?\d\d:\d\d:\d\d|\[[A-Za-z ]{2,30}\]|at \S{1,100} ?\(|[+-]{3} |@@"
    r"|\d{1,6} *[|│→]|[$❯%] |(?:ERROR|WARN|WARNING|INFO|DEBUG|Traceback)\b|File \"|\S{1,120}:\d+:"
)
# What the client adds to a plan.
_ADDED_LINES = ("If you need specific details from before exiting plan mode",)
_FENCE = ("```", "~~~")
_URL = re.compile(r"https?://([^\s<>\"')\]]+)")
_URL_PARTS = re.compile(r"[/#?&=]")


def typed_text(prompt: str) -> str:
    """Empty for commands, messages of the client, and prompts that are pasted as a whole."""
    typed = "\n".join(_HEADING.sub("", line, count=1).strip() for line in typed_lines(prompt))
    return _URL.sub(_end_of_url, _PLAN.sub("", typed, count=1)).strip()[:MAX_TYPED]


def typed_lines(prompt: str) -> list[str]:
    """Also of a plan, which the user confirmed."""
    text = prompt.strip()[:MAX_PROMPT]
    if _COMMAND.match(text) or text.startswith(_MESSAGES):
        return []
    return [line for line in _lines_outside_blocks(text) if not _is_pasted(line)]


def _lines_outside_blocks(text: str) -> list[str]:
    """Without fenced blocks, and without elements that begin a line."""
    lines: list[str] = []
    closing = ""
    rest = text
    while rest:
        line, _, rest = rest.partition("\n")
        line = line.strip()
        if closing:
            closing = "" if closing in line else closing
        elif line.startswith(_FENCE):
            closing = line[:3] if line[:3] not in line[3:] else ""
        elif opening := _OPENING.match(line):
            end = f"</{opening[1]}>"
            closing = end if end not in line and end in rest else ""
        else:
            lines.append(line)
    return lines


def _is_pasted(line: str) -> bool:
    if line.startswith(_ADDED_LINES):
        return True
    return bool(_PASTED_LINE.match(line)) or max(map(len, line.split()), default=0) > MAX_WORD


def _end_of_url(match: re.Match[str]) -> str:
    """ "issues 12" of https://host/owner/name/issues/12."""
    parts = [part for part in _URL_PARTS.split(match[1]) if part]
    return " ".join(parts[-2:] if len(parts) > 3 else parts[1:][-1:])
