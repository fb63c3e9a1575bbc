"""What of transcripts is imported, and how they are read."""

import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from claude_mem.intake.event_reader import EventReader, split_skipped_tools
from claude_mem.intake.project_access import Access, TrustDialog
from claude_mem.intake.projects import Exclusions, Projects
from claude_mem.redaction import Redactor
from claude_mem.types import PastTurn, Project, Verbosity

Reads = Literal["all", "newest", "record", "memories"]


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """The options of an import, pickled for every process that reads."""

    own_root: str  # the data directory: sessions in it are the observer's own
    home: str
    keep_raw_since: int
    skip_tools: tuple[str, ...] = ()
    redact_allow: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    project: str = ""
    since_ms: int = 0
    keep_record_since: int = 0
    known_projects: tuple[tuple[str, Project], ...] = ()  # by directory
    verbosity: Verbosity = "normal"
    # newest: sessions that are not among the newest get their memories later; record: all do;
    # memories: only these, of turns that are stored
    reads: Reads = "all"
    # Of turns that get their memories later, the raw texts of events come with them.
    raw_later: bool = False
    trust: TrustDialog = field(default_factory=TrustDialog)
    access: Access = field(default_factory=lambda: Access(is_import=True))

    def reader(self) -> EventReader:
        skipped, unobserved = split_skipped_tools(self.skip_tools)
        return EventReader(
            redactor=Redactor(self.redact_allow),
            projects=Projects(self.home_path, dict(self.known_projects), lambda: self.access),
            skip_tools=skipped,
            unobserved_tools=unobserved,
        )

    def of_memories(self, keep_raw_since: int) -> "ImportOptions":
        """Returns options to read what was imported without memories."""
        return replace(self, reads="memories", keep_raw_since=keep_raw_since, raw_later=False)

    @property
    def home_path(self) -> Path | None:
        return Path(self.home) if self.home else None

    def includes(self, project: Project, directory: str) -> bool:
        if self.reads == "memories":
            return True  # it was selected when it was stored
        roots = (self.own_root, os.path.realpath(self.own_root))
        if any(directory == root or directory.startswith(root + "/") for root in roots):
            return False
        if Exclusions(self.excluded, self.home).cover(project, directory):
            return False
        return self.project in ("", project.key, project.name, directory)

    def includes_turn(self, turn: PastTurn) -> bool:
        last = turn.events[-1].arrived_ms if turn.events else turn.started_ms
        return last >= self.since_ms
