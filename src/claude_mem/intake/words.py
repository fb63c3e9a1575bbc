"""What an event adds to the record: words of the user, the agent and its subagents.

Payloads arrive here redacted but not yet truncated. Tool output is not part of the record; what a
model wrote about its tools is (plans, questions, reports, commit messages, descriptions, tasks).
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain

from claude_mem.types import Json, RecordKind, RecordPart, Speaker

LONGEST_PART = 32_768
_NOTIFICATION = "<task-notification>"
_NOTIFICATION_TEXT = re.compile(r"<(summary|result)>(.{0,200000}?)</\1>", re.DOTALL)
_SUBAGENT_TOOLS = ("Task", "Agent")
_COMMIT = re.compile(r"\bgit\b[^|;&\n]{0,200}?\bcommit\b")
_PULL_REQUEST = re.compile(r"\bgh\s+pr\s+(?:create|edit)\b")
_HEREDOC = re.compile(r"<<-?\s*['\"]?(\w{1,40})['\"]?\n(.{0,40000}?)\n[ \t]*\1\b", re.DOTALL)
_QUOTED = r"""(?:"((?:[^"\\]|\\.){1,20000})"|'([^']{1,20000})')"""
_MESSAGE = re.compile(rf"(?:\s-[a-zA-Z]*m|\s--message)[\s=]+{_QUOTED}")
_TITLE = re.compile(rf"\s(?:--title|-t)[\s=]+{_QUOTED}")
_BODY = re.compile(rf"\s(?:--body|-b)[\s=]+{_QUOTED}")

Payload = Mapping[str, Json]


def words_of(kind: str, payload: Payload) -> tuple[RecordPart, ...]:
    """The parts of the record that an event of this kind holds."""
    reader = _TOOL_KINDS.get(kind) or _MESSAGE_KINDS.get(kind)
    return tuple(reader(payload)) if reader is not None else ()


def record_of(prompt: str | None, words: Iterable[Iterable[RecordPart]]) -> tuple[RecordPart, ...]:
    """The record of a turn: its prompt and the words of its events, each once, in their order.

    The last message arrives by a hook and by the transcript, a task list with every change of it.
    """
    parts: dict[tuple[str, str], RecordPart] = {}
    for part in chain(_prompt(prompt or ""), *words):
        parts.setdefault((part.speaker, " ".join(part.text.split())), part)
    return tuple(parts.values())


def _prompt(prompt: str) -> tuple[RecordPart, ...]:
    """The user's words, unless the client put the report of a background task in their place."""
    if prompt.lstrip().startswith(_NOTIFICATION):
        texts = [text.strip() for _, text in _NOTIFICATION_TEXT.findall(prompt[:LONGEST_PART])]
        return tuple(part for text in texts for part in _part("report", "subagent", text))
    return tuple(_part("prompt", "user", prompt))


def _part(kind: RecordKind, speaker: Speaker, text: Json) -> Iterator[RecordPart]:
    if isinstance(text, str) and (stripped := text.strip()):
        yield RecordPart(kind, speaker, _cut_in_middle(stripped))


def _cut_in_middle(text: str) -> str:
    if len(text) <= LONGEST_PART:
        return text
    half = LONGEST_PART // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half} characters cut …]\n{text[-half:]}"


# Messages


def _statement(payload: Payload) -> Iterator[RecordPart]:
    yield from _part("statement", "agent", payload.get("statement"))


def _last_message(payload: Payload) -> Iterator[RecordPart]:
    yield from _part("statement", "agent", payload.get("last_assistant_message"))


def _subagent_message(payload: Payload) -> Iterator[RecordPart]:
    yield from _part("report", "subagent", payload.get("last_assistant_message"))


def _compaction(payload: Payload) -> Iterator[RecordPart]:
    yield from _part("compaction", "agent", payload.get("compact_summary"))


_MESSAGE_KINDS: dict[str, Callable[[Payload], Iterator[RecordPart]]] = {
    "Statement": _statement,
    "Stop": _last_message,
    "StopFailure": _last_message,
    "SubagentStop": _subagent_message,
    "PostCompact": _compaction,
}


# Tools


def _tool(payload: Payload) -> Iterator[RecordPart]:
    reader = _TOOLS.get(str(payload.get("tool_name")))
    tool_input = payload.get("tool_input")
    if reader is not None and isinstance(tool_input, dict):
        yield from reader(tool_input, payload.get("tool_response"))


def _failed_tool(payload: Payload) -> Iterator[RecordPart]:
    """Only what was meant: a commit that failed was not made."""
    tool_input = payload.get("tool_input")
    if isinstance(tool_input, dict):
        yield from _part("description", "agent", tool_input.get("description"))


def _plan(tool_input: Payload, response: Json) -> Iterator[RecordPart]:
    plan = tool_input.get("plan") or (response.get("plan") if isinstance(response, dict) else None)
    yield from _part("plan", "agent", plan)


def _question(tool_input: Payload, response: Json) -> Iterator[RecordPart]:
    """Each question with the answer that the user chose."""
    answers = response.get("answers") if isinstance(response, dict) else None
    questions = tool_input.get("questions")
    for item in questions if isinstance(questions, list) else ():
        question = item.get("question") if isinstance(item, dict) else None
        if not isinstance(question, str):
            continue
        answer = answers.get(question) if isinstance(answers, dict) else None
        text = f"{question}\nAnswer: {answer}" if isinstance(answer, str) and answer else question
        yield from _part("question", "user", text)


def _subagent(tool_input: Payload, response: Json) -> Iterator[RecordPart]:
    yield from _part("description", "agent", tool_input.get("description"))
    content = response.get("content") if isinstance(response, dict) else response
    yield from _part("report", "subagent", _plain_text(content))


def _command(tool_input: Payload, response: Json) -> Iterator[RecordPart]:
    yield from _part("description", "agent", tool_input.get("description"))
    command = tool_input.get("command")
    if not isinstance(command, str):
        return
    command = command[:LONGEST_PART]
    if _COMMIT.search(command):
        yield from _part("commit", "agent", _message(command, _MESSAGE))
    if _PULL_REQUEST.search(command):
        title, body = _quoted(command, _TITLE), _message(command, _BODY)
        yield from _part("pull_request", "agent", "\n\n".join(filter(None, (title, body))))


def _message(command: str, option: re.Pattern[str]) -> str:
    heredoc = _HEREDOC.search(command)
    return heredoc[2] if heredoc else _quoted(command, option)


def _quoted(command: str, option: re.Pattern[str]) -> str:
    return "\n\n".join(double or single for double, single in option.findall(command))


def _task(tool_input: Payload, response: Json) -> Iterator[RecordPart]:
    yield from _part("task", "agent", tool_input.get("subject"))


def _todos(tool_input: Payload, response: Json) -> Iterator[RecordPart]:
    todos = tool_input.get("todos")
    for item in todos if isinstance(todos, list) else ():
        if isinstance(item, dict):
            yield from _part("task", "agent", item.get("content"))


def _plain_text(content: Json) -> str:
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    texts = [block.get("text") for block in blocks if isinstance(block, dict)]
    return "\n".join(text for text in texts if isinstance(text, str))


_TOOLS: dict[str, Callable[[Payload, Json], Iterator[RecordPart]]] = {
    "ExitPlanMode": _plan,
    "AskUserQuestion": _question,
    **dict.fromkeys(_SUBAGENT_TOOLS, _subagent),
    "Bash": _command,
    "TaskCreate": _task,
    "TodoWrite": _todos,
}
WORDED_TOOLS = frozenset(_TOOLS)
_TOOL_KINDS: dict[str, Callable[[Payload], Iterator[RecordPart]]] = {
    "PostToolUse": _tool,
    "PostToolUseFailure": _failed_tool,
}
