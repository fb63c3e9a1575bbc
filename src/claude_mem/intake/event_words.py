"""The words in an event: of the user, the agent and its subagents, and what the client sends in
place of a prompt (reports of background tasks, monitors, the output of its own commands).

Payloads arrive here redacted but not yet truncated. The observer distils these parts, and they are
the record of the turn. Tool output is no part; what a model wrote about its tools is (plans,
questions, reports, commit messages, descriptions, tasks).
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain

from claude_mem.observer.local.here_documents import here_document_of, without_here_documents
from claude_mem.types import ClientMessage, Json, RecordKind, RecordPart, Speaker

LONGEST_PART = 32_768
_FIRST_WORDS = 8  # by which most parts of a turn differ
_NOTIFICATION_TAGS = ("summary", "result")
SUBAGENT_TOOLS = ("Task", "Agent")
_COMMIT = re.compile(r"\bgit\b[^|;&\n]{0,200}?\bcommit\b")
_COMMIT_WORD, _PULL_REQUEST_WORD = "commit", "gh"  # without them, the patterns do not match
_PULL_REQUEST = re.compile(r"\bgh\s+pr\s+(?:create|edit)\b")
# What the client writes around a compaction summary when it gives it to the agent.
_CONTINUED = "This session is being continued from a previous conversation"
_CONTINUED_SUMMARY = "\nSummary:\n"
_AFTER_SUMMARY = (
    "\nIf you need specific details from before compaction",
    "\nPlease continue the conversation from where we left",
    "\nContinue the conversation from where it left off",
    "\nRecent messages are preserved verbatim",
)
_QUOTED = r"""(?:"((?:[^"\\]|\\.){1,20000})"|'([^']{1,20000})')"""
_MESSAGE = re.compile(rf"(?:\s-[a-zA-Z]*m|\s--message)[\s=]+{_QUOTED}")
_TITLE = re.compile(rf"\s(?:--title|-t)[\s=]+{_QUOTED}")
_BODY = re.compile(rf"\s(?:--body|-b)[\s=]+{_QUOTED}")

_TAGS = r"(?:[a-z]{1,30}-){0,3}(?:notification|event)|local-command-[a-z]{1,20}|bash-[a-z]{1,20}"
_CLIENT_MESSAGE = re.compile(rf"\s*<({_TAGS})>", re.IGNORECASE)
_LONGEST_ID = 200
_COMMAND = re.compile(
    r"(?:<command-.{0,4000})?<command-name>([^<]{1,200})</command-name>", re.DOTALL
)

Payload = Mapping[str, Json]


def event_parts(kind: str, payload: Payload) -> tuple[RecordPart, ...]:
    """The parts of the record that an event of this kind holds.

    What a subagent does is not part of it: transcripts do not tell it. Its report is: it comes
    with the result of the tool that started it, or as a notification.
    """
    if payload.get("agent_id"):
        return ()
    reader = _TOOL_KINDS.get(kind) or _MESSAGE_KINDS.get(kind)
    return tuple(reader(payload)) if reader is not None else ()


def record_of(
    prompt: str | None, parts_of_events: Iterable[Iterable[RecordPart]]
) -> tuple[RecordPart, ...]:
    """The record of a turn: its prompt and the words of its events, each once, in their order.

    The last message arrives by a hook and by the transcript, a task list with every change of it.
    """
    parts: list[RecordPart] = []
    first_parts: dict[tuple[str, ...], RecordPart] = {}  # by speaker and first words
    texts: dict[tuple[str, ...], set[str]] = {}  # of parts that begin with the same words
    for part in chain(_prompt(prompt or ""), *parts_of_events):
        beginning = (part.speaker, *part.text.split(None, _FIRST_WORDS)[:_FIRST_WORDS])
        first = first_parts.setdefault(beginning, part)
        if first is not part:
            known = texts.setdefault(beginning, {_on_one_line(first.text)})
            text = _on_one_line(part.text)
            if text in known:
                continue
            known.add(text)
        parts.append(part)
    return tuple(parts)


def _on_one_line(text: str) -> str:
    return " ".join(text.split())


def _prompt(prompt: str) -> Iterator[RecordPart]:
    """The user's words, and the report of a background task that the client put before them."""
    message, typed = split_client_message(prompt)
    for tag in _NOTIFICATION_TAGS if message is not None else ():
        yield from _part("report", "subagent", tag_content(message.text, tag) if message else "")
    yield from _part("prompt", "user", typed)


def _between(text: str, begin: str, end: str) -> str:
    """Empty where the first is missing; up to the end of the text where the second is."""
    return text.partition(begin)[2].partition(end)[0]


def _part(kind: RecordKind, speaker: Speaker, text: Json) -> Iterator[RecordPart]:
    if isinstance(text, str) and (stripped := text.strip()):
        yield RecordPart(kind, speaker, _cut_in_middle(stripped))


def _cut_in_middle(text: str) -> str:
    if len(text) <= LONGEST_PART:
        return text
    half = LONGEST_PART // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half} characters cut …]\n{text[-half:]}"


# In place of a prompt


def split_client_message(prompt: str) -> tuple[ClientMessage | None, str]:
    """The message of the client at the start, and what the user typed after it."""
    rest, messages = prompt, ""
    while begin := _CLIENT_MESSAGE.match(rest):
        _, end, after = rest.partition(f"</{begin[1]}>")
        messages += rest[: len(rest) - len(after)]
        rest = after
        if not end:
            break
    if not messages:
        return None, prompt
    return _identified(messages.strip()), rest.strip()


def _identified(text: str) -> ClientMessage:
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


# Messages


def _client_message(payload: Payload) -> Iterator[RecordPart]:
    """The report of a background task; what the user typed is kept as the turn's prompt."""
    prompt = payload.get("prompt")
    if isinstance(prompt, str):
        yield from (part for part in _prompt(prompt) if part.kind == "report")


def _statement(payload: Payload) -> Iterator[RecordPart]:
    yield from _part("statement", "agent", payload.get("statement"))


def _last_message(payload: Payload) -> Iterator[RecordPart]:
    yield from _part("statement", "agent", payload.get("last_assistant_message"))


def _compaction(payload: Payload) -> Iterator[RecordPart]:
    summary = payload.get("compact_summary")
    if isinstance(summary, str):
        yield from _part("compaction", "agent", _bare_summary(summary))


def _bare_summary(text: str) -> str:
    """The same from a hook, which gets the model's reply, and from a transcript."""
    if summary := _between(text, "<summary>", "</summary>"):
        return summary
    if not text.startswith(_CONTINUED):
        return text
    _, heading, summary = text.partition(_CONTINUED_SUMMARY)
    summary = summary if heading else text.partition("\n")[2]
    ends = [end for end in map(summary.rfind, _AFTER_SUMMARY) if end >= 0]
    return summary[: min(ends, default=len(summary))]


_MESSAGE_KINDS: dict[str, Callable[[Payload], Iterator[RecordPart]]] = {
    "UserPromptSubmit": _client_message,
    "Statement": _statement,
    "Stop": _last_message,
    "StopFailure": _last_message,
    "PostCompact": _compaction,
}


# Tools


def _tool(payload: Payload) -> Iterator[RecordPart]:
    name, tool_input = payload.get("tool_name"), payload.get("tool_input")
    reader = _TOOLS.get(name) if isinstance(name, str) else None
    if reader is not None and isinstance(tool_input, dict):
        yield from reader(tool_input, payload.get("tool_response"))


def _failed_tool(payload: Payload) -> Iterator[RecordPart]:
    """Only what was meant: a commit that failed was not made."""
    tool_input = payload.get("tool_input")
    if isinstance(tool_input, dict) and payload.get("tool_name") in ("Bash", *SUBAGENT_TOOLS):
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
    if _COMMIT_WORD in command and _COMMIT.search(command):
        yield from _part("commit", "agent", _message(command, _COMMIT, _MESSAGE))
    if _opens_pull_request(command):
        title = _quoted(without_here_documents(command), _TITLE)
        body = _message(command, _PULL_REQUEST, _BODY)
        yield from _part("pull_request", "agent", "\n\n".join(filter(None, (title, body))))


def may_have_message(command: str) -> bool:
    """Whether it may commit, or open a pull request, with a text; before it is redacted."""
    return _COMMIT_WORD in command or _opens_pull_request(command)


def _opens_pull_request(command: str) -> bool:
    return _PULL_REQUEST_WORD in command and _PULL_REQUEST.search(command) is not None


def _message(command: str, invocation: re.Pattern[str], option: re.Pattern[str]) -> str:
    text = here_document_of(command, invocation)
    return text or _quoted(without_here_documents(command), option)


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
    **dict.fromkeys(SUBAGENT_TOOLS, _subagent),
    "Bash": _command,
    "TaskCreate": _task,
    "TodoWrite": _todos,
}
TOOLS_WITH_PARTS = frozenset(_TOOLS)
_TOOL_KINDS: dict[str, Callable[[Payload], Iterator[RecordPart]]] = {
    "PostToolUse": _tool,
    "PostToolUseFailure": _failed_tool,
}
