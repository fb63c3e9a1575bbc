"""Messages that the client sends in place of a prompt: reports of background tasks, monitors, and
the output of its own commands. They are not words of the user."""

import re

from claude_mem.types import ClientMessage

_TAGS = r"(?:[a-z]{1,30}-){0,3}(?:notification|event)|local-command-[a-z]{1,20}|bash-[a-z]{1,20}"
_MESSAGE = re.compile(rf"\s*<({_TAGS})>", re.IGNORECASE)
_LONGEST_ID = 200
_COMMAND = re.compile(
    r"(?:<command-.{0,4000})?<command-name>([^<]{1,200})</command-name>", re.DOTALL
)


def split_client_message(prompt: str) -> tuple[ClientMessage | None, str]:
    """The message of the client at the start, and what the user typed after it."""
    rest, messages = prompt, ""
    while begin := _MESSAGE.match(rest):
        _, end, after = rest.partition(f"</{begin[1]}>")
        messages += rest[: len(rest) - len(after)]
        rest = after
        if not end:
            break
    if not messages:
        return None, prompt
    return _message(messages.strip()), rest.strip()


def _message(text: str) -> ClientMessage:
    return ClientMessage(text, _identifier(text, "task-id"), _identifier(text, "tool-use-id"))


def _identifier(text: str, tag: str) -> str | None:
    value = tag_content(text, tag).strip()
    return value if 0 < len(value) <= _LONGEST_ID else None


def tag_content(text: str, tag: str) -> str:
    """Of the first such tag, up to its end or the end of the text; empty without it."""
    return text.partition(f"<{tag}>")[2].partition(f"</{tag}>")[0]


def is_command(text: str) -> bool:
    return _COMMAND.match(text) is not None


def command_as_typed(text: str) -> str:
    """A slash command that the client wrapped in tags: "/name arguments"; else the text itself."""
    command = _COMMAND.match(text)
    if command is None:
        return text
    name = command[1].strip().removeprefix("/")
    return f"/{name} {tag_content(text, 'command-args').strip()}".strip()
