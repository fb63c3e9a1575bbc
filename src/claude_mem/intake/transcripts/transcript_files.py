"""Finds the transcripts that agents keep. Imports little: `install` counts them for its offer."""

from collections.abc import Iterable
from pathlib import Path


def find_transcripts(places: Iterable[Path]) -> list[Path]:
    """Files of sessions; those of subagents are left out, because hooks report their work as
    part of the parent session."""
    transcripts: dict[Path, None] = {}
    for place in map(Path.absolute, places):
        if place.is_dir():
            files = (path for path in place.rglob("*.jsonl") if _is_session_file(path, place))
            transcripts.update(dict.fromkeys(sorted(files)))
        elif place.exists():
            transcripts[place] = None
    return list(transcripts)


def find_agent_transcripts(home: Path, pattern: str) -> list[Path]:
    """The sessions of another agent: the files below its directory that match."""
    return sorted(path for path in home.glob(pattern) if path.is_file()) if pattern else []


def _is_session_file(path: Path, root: Path) -> bool:
    of_subagent = path.name.startswith("agent-") or "subagents" in path.relative_to(root).parts
    return not of_subagent and path.is_file()
