"""Transcripts of Cursor: `projects/<folder>/agent-transcripts/<session>/<session>.jsonl`.

A line is a message: `{"role": …, "message": {"content": […]}}`, with texts and calls of tools.
There are no ids, no times and no results of tools. The directory of the session is only in the
name of the folder, in which every character but letters and digits became a dash.
"""

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

from claude_mem.errors import BadInput
from claude_mem.hook.private_text import MARK
from claude_mem.intake.normalisers.payloads import first, mapping, plain_text, text
from claude_mem.intake.transcripts.agent_conversation import Conversation
from claude_mem.intake.transcripts.transcript import Payload, TranscriptEvent
from claude_mem.store.turns import counted_prompt_id
from claude_mem.types import Json

_OTHER_CHARACTERS = re.compile(r"[^a-zA-Z0-9]+")
_PATH_FIELDS = ("path", "file_path", "target_file", "working_directory", "cwd", "target_directory")
_MOST_DIRECTORIES = 2000  # that are listed to resolve a name


def is_message(line: Payload) -> bool:
    is_role = line.get("role") in ("user", "assistant")
    return is_role and "sessionId" not in line and "content" in mapping(line.get("message"))


def read_cursor(lines: list[Payload], path: Path) -> Iterator[TranscriptEvent]:
    messages = [(line, _parts(line)) for line in lines if is_message(line)]
    directory = _directory(path, [part for _, parts in messages for part in parts])
    chat = Conversation(path.stem, directory, path)
    yield from chat.start(path.stat().st_mtime_ns // 1_000_000)
    prompts = 0
    for number, (line, parts) in enumerate(messages):
        texts = [text(part, "text") for part in parts if part.get("type") == "text"]
        if line.get("role") == "assistant":
            yield from chat.say("\n".join(texts), None, f"{chat.session_id}:{number}")
            yield from _tools(chat, parts, number)
        elif parts:
            prompts += 1
            prompt_id = counted_prompt_id(chat.session_id, prompts)
            yield from chat.prompt(prompt_id, "\n".join(texts), None,
                                   had_private=line.get(MARK))  # fmt: skip
    yield from chat.end()


def _tools(chat: Conversation, parts: list[Payload], number: int) -> Iterator[TranscriptEvent]:
    calls = (part for part in parts if part.get("type") == "tool_use")
    for nth, call in enumerate(calls):
        call_id = text(call, "id") or f"{chat.session_id}:{number}:{nth}"
        yield from chat.tool(text(call, "name"), call.get("input"), "", None, call_id=call_id,
                             reports_outcome=False)  # fmt: skip


def _parts(line: Payload) -> list[Payload]:
    content = mapping(line.get("message")).get("content")
    if isinstance(content, list):
        return [mapping(part) for part in content]
    return [{"type": "text", "text": plain_text(content)}]


def _directory(path: Path, parts: list[Payload]) -> str:
    folder = path.parent.parent.parent.name
    named = {d for part in parts for d in _parents(part.get("input")) if folder_name(d) == folder}
    candidates = named or set(directories_called(folder))
    if len(candidates) != 1:
        raise BadInput(f"the directory of this session is not known: {folder}")
    return candidates.pop()


def _parents(arguments: Json) -> Iterator[str]:
    """The directories above a path that a tool got, and the path."""
    value = first(mapping(arguments), *_PATH_FIELDS)
    if isinstance(value, str) and value.startswith("/"):
        yield value
        yield from map(str, PurePosixPath(value).parents)


def folder_name(directory: str) -> str:
    return _OTHER_CHARACTERS.sub("-", directory).strip("-")


def directories_called(folder: str, root: str = "/") -> Iterator[str]:
    """The existing directories with this folder name; the name alone does not say which."""
    below, listed = [root], 0
    while below and listed < _MOST_DIRECTORIES:
        directory = below.pop()
        listed += 1
        for child in _subdirectories(directory):
            name = folder_name(child)
            if name == folder:
                yield child
            elif name == folder_name(directory) or folder.startswith(f"{name}-"):
                below.append(child)


def _subdirectories(directory: str) -> Iterable[str]:
    try:
        with os.scandir(directory) as entries:
            return sorted(e.path for e in entries if e.is_dir(follow_symlinks=False))
    except OSError:
        return ()
