"""Payloads of other agents, rewritten as Claude Code's: one module for each agent.

Everything after this point knows one set of events and tools. A payload may become no event, such
as Qwen's empty prompts, or several, such as a patch of several files.
"""

from collections.abc import Callable
from dataclasses import replace

from claude_mem.hook.private_text import MARK
from claude_mem.intake.event_reader import EventHeader
from claude_mem.intake.normalisers import (
    codex,
    copilot,
    cursor,
    gemini,
    opencode,
    qwen,
    vscode,
    windsurf,
)
from claude_mem.intake.normalisers.payloads import Normalised, Payload

Normaliser = Callable[[str, Payload], list[Normalised]]

NORMALISERS: dict[str, Normaliser] = {
    "codex": codex.normalise,
    "copilot": copilot.normalise,
    "cursor": cursor.normalise,
    "gemini": gemini.normalise,
    "opencode": opencode.normalise,
    "qwen": qwen.normalise,
    "vscode": vscode.normalise,
    "windsurf": windsurf.normalise,
}


def normalise(header: EventHeader, payload: Payload) -> list[tuple[EventHeader, Payload]]:
    """The events of a payload, in the format of Claude Code's hooks."""
    normaliser = NORMALISERS.get(header.dialect)
    if normaliser is None:
        return [(header, payload)]
    events = []
    for event in normaliser(header.kind, payload):
        cwd = event.payload.get("cwd")
        # CLAUDE_PROJECT_DIR may be inherited from an agent that started this one.
        directory = cwd if isinstance(cwd, str) and cwd else header.project_dir
        marked = {MARK: payload[MARK]} if MARK in payload else {}
        header_of_event = replace(header, kind=event.kind, project_dir=directory)
        events.append((header_of_event, {**event.payload, **marked}))
    return events
