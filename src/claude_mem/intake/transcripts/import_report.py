"""What an import did: of a file, of a project, of all."""

from dataclasses import dataclass, field
from pathlib import Path

from claude_mem.recall.tokens import estimate_tokens
from claude_mem.store.imported_sessions import ImportCounts
from claude_mem.types import PastSession, PastTurn, Project


@dataclass(frozen=True, slots=True)
class ReadFile:
    path: Path
    size: int
    modified_ns: int
    sessions: tuple[PastSession, ...] = ()
    lines: int = 0
    unreadable: int = 0
    text_chars: int = 0
    trouble: str = ""  # why the file could not be read


@dataclass(slots=True)
class Tally:
    """Counts of an import, for one project or for all."""

    sessions: set[str] = field(default_factory=set)
    turns: int = 0
    observations: int = 0
    summaries: int = 0
    existing: int = 0
    private: int = 0
    forgotten: int = 0
    records: int = 0  # filled in for turns that were known
    waiting: int = 0  # to be distilled
    memory_tokens: int = 0

    def add(self, session: PastSession, outcome: ImportCounts, tokens: int) -> None:
        self.sessions.add(session.session_id)
        self.turns += outcome.turns
        self.observations += outcome.observations
        self.summaries += outcome.summaries
        self.existing += outcome.existing
        self.private += outcome.private
        self.forgotten += outcome.forgotten
        self.records += outcome.records
        self.waiting += outcome.waiting
        self.memory_tokens += tokens

    def distilled(self, outcome: ImportCounts, tokens: int) -> None:
        """Counts the memories of turns that were counted as waiting before."""
        self.observations += outcome.observations
        self.summaries += outcome.summaries
        self.waiting = max(0, self.waiting - outcome.summaries)
        self.memory_tokens += tokens


@dataclass(slots=True)
class Report:
    files: int = 0
    unchanged: int = 0  # files that an earlier import read completely
    bytes: int = 0
    lines: int = 0
    unreadable: int = 0
    text_chars: int = 0
    waiting: int = 0  # turns that have no memories yet, also of earlier imports
    troubles: list[tuple[Path, str]] = field(default_factory=list)
    all: Tally = field(default_factory=Tally)
    projects: dict[Project, Tally] = field(default_factory=dict)

    def add_file(self, read: ReadFile) -> None:
        self.files += 1
        self.bytes += read.size
        self.lines += read.lines
        self.unreadable += read.unreadable
        self.text_chars += read.text_chars
        if read.trouble:
            self.troubles.append((read.path, read.trouble))

    def add(self, session: PastSession, outcome: ImportCounts) -> None:
        tokens = sum(map(_tokens, session.turns))
        for tally in (self.all, self.projects.setdefault(session.project, Tally())):
            tally.add(session, outcome, tokens)

    def distilled(self, project: Project, session: PastSession, outcome: ImportCounts) -> None:
        tokens = sum(map(_tokens, session.turns))
        for tally in (self.all, self.projects.get(project)):
            if tally is not None:
                tally.distilled(outcome, tokens)


def _tokens(turn: PastTurn) -> int:
    if turn.distillate is None:
        return 0
    summary = turn.distillate.summary
    texts = [summary.text, *summary.files_edited, *summary.files_read]
    for observation in turn.distillate.observations:
        texts += (observation.text, *observation.files_modified, *observation.files_read)
    return estimate_tokens("\n".join(texts))
