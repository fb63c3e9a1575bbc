"""The former hook commands: `claude-mem new < payload.json` does what the launcher does.

They also take payloads that no client sends: without a session id, which is then made up for this
one event, or with the field names of the HTTP API.
"""

import json
import os
import sys
import tempfile
import uuid

import click

from claude_mem.hook.private_text import strip_payload

_EVENTS = {
    "new": ("UserPromptSubmit", "Record a submitted prompt."),
    "save": ("PostToolUse", "Record a tool use."),
    "summary": ("Stop", "Record the end of a turn."),
    "cleanup": ("SessionEnd", "Record the end of a session."),
}
# The fields of hook payloads, and what other clients call them.
_ALIASES = {
    "session_id": ("claudeSessionId", "contentSessionId", "sessionId"),
    "tool_response": ("tool_output", "toolResponse", "toolOutput"),
    "prompt": ("userPrompt", "user_prompt"),
}


def _command(name: str, event: str, text: str) -> click.Command:
    def run() -> None:
        if sys.stdin.isatty():
            raise click.UsageError(f"expected a {event} hook payload on stdin")
        run_hook_on(event, sys.stdin.buffer.read())

    help_text = f"{text} Reads the {event} payload as JSON from stdin."
    return click.Command(name, callback=run, help=help_text, short_help=text, hidden=True)


def run_hook(event: str) -> None:
    from claude_mem.hook.capture import run

    sys.stdout.flush()
    run(["claude", event])


def run_hook_on(event: str, payload: bytes) -> None:
    """The hook reads file descriptor 0, so the payload is put back there."""
    with tempfile.TemporaryFile() as stdin:
        stdin.write(complete_payload(strip_payload(payload)))
        stdin.seek(0)
        os.dup2(stdin.fileno(), 0)
        run_hook(event)


def complete_payload(payload: bytes) -> bytes:
    """Adds the fields that a payload lacks; returns the same bytes if it has them, or is no
    object."""
    try:
        fields = json.loads(payload)
    except (ValueError, RecursionError):
        return payload
    if not isinstance(fields, dict):
        return payload
    missing = {
        name: next((fields[alias] for alias in aliases if fields.get(alias) is not None), None)
        for name, aliases in _ALIASES.items()
        if fields.get(name) in (None, "")
    }
    if "session_id" in missing and not missing["session_id"]:
        missing["session_id"] = f"command-{uuid.uuid4()}"
    added = {name: value for name, value in missing.items() if value is not None}
    return json.dumps(fields | added).encode() if added else payload


commands = [_command(name, *rest) for name, rest in _EVENTS.items()]
