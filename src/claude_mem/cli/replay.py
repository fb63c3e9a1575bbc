"""A transcript as the hook payloads that its session would have sent, in order."""

from collections.abc import Iterator
from pathlib import Path

from claude_mem.errors import BadInput
from claude_mem.intake.transcripts.transcript import Payload, Transcript
from claude_mem.store.turns import STATEMENT


def payloads(transcript: Path) -> Iterator[tuple[str, Payload]]:
    """Pairs of event name and payload; what hooks are never told is left to the worker to read."""
    found = False
    try:
        for event in Transcript(transcript).events():
            found = True
            if event.kind != STATEMENT:
                yield event.kind, event.payload
    except OSError as error:
        raise BadInput(f"{transcript} cannot be read: {error.strerror}") from None
    if not found:
        raise BadInput(f"{transcript} holds no session: is it a Claude Code transcript?")


def session_and_directory(transcript: Path) -> tuple[str, str]:
    _, payload = next(payloads(transcript))
    return str(payload["session_id"]), str(payload["cwd"])
