"""The hook payloads of a transcript, in the order in which the session sent them."""

from collections.abc import Iterator
from pathlib import Path

from claude_mem.errors import BadInput
from claude_mem.intake.transcripts.transcript import Payload, Transcript
from claude_mem.store.turns import STATEMENT


def payloads(transcript: Path) -> Iterator[tuple[str, Payload]]:
    """Pairs of event name and payload. Statements have no hook; the worker reads them itself."""
    is_empty = True
    try:
        for event in Transcript(transcript).events():
            is_empty = False
            if event.kind != STATEMENT:
                yield event.kind, event.payload
    except OSError as error:
        raise BadInput(f"{transcript} cannot be read: {error.strerror}") from None
    if is_empty:
        raise BadInput(f"{transcript} contains no session: is it a Claude Code transcript?")


def session_and_directory(transcript: Path) -> tuple[str, str]:
    _, payload = next(payloads(transcript))
    return str(payload["session_id"]), str(payload["cwd"])
