"""The files of our own Claude Code conversations: transcripts, and the pid files of clients.

Claude Code keeps a transcript of each conversation under its configuration directory. Ours run in
a directory of their own, so theirs are told apart from the user's by the folder.
"""

import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

MAX_FOLDER_CHARS = 200  # Claude Code shortens a longer name and appends a hash
_SESSION_ID = re.compile(r"[0-9a-fA-F][0-9a-fA-F-]{7,63}\Z")


@dataclass(frozen=True, slots=True)
class ClaudeFiles:
    directory: Path  # the working directory of the clients
    config_dir: Path  # of Claude Code

    def transcript(self, provider_session_id: str) -> Path | None:
        if not _SESSION_ID.match(provider_session_id):
            return None
        paths = (folder / f"{provider_session_id}.jsonl" for folder in self._folders())
        return next((path for path in paths if path.is_file()), None)

    def has_transcripts(self) -> bool:
        return bool(self._folders())

    def delete_transcripts(self, resumable: set[str]) -> None:
        """All but those of conversations that may be resumed."""
        for folder in self._folders():
            for path in folder.glob("*.jsonl"):
                if path.stem not in resumable:
                    path.unlink(missing_ok=True)
            with suppress(OSError):
                folder.rmdir()  # if it is empty

    def delete_pid_files(self) -> None:
        """Deletes these files, only while no client runs: clients that were killed with their
        worker left theirs."""
        for path in self.directory.glob("client-*"):
            path.unlink(missing_ok=True)

    def _folders(self) -> list[Path]:
        name = re.sub(r"[^a-zA-Z0-9]", "-", str(self.directory.resolve()))
        projects = self.config_dir / "projects"
        if len(name) <= MAX_FOLDER_CHARS:
            return [projects / name] if (projects / name).is_dir() else []
        return [path for path in projects.glob(f"{name[:MAX_FOLDER_CHARS]}-*") if path.is_dir()]
