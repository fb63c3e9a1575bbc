"""What a text that may become a title is, and where it comes from."""

from typing import Literal, NamedTuple

from claude_mem.observer.local import cues

TitleSource = Literal[
    "commit", "pull request", "request heading", "plan heading", "final heading", "emphasis",
    "subagent task", "task", "final", "request", "statement", "report", "announcement",
]  # fmt: skip
SOURCES: tuple[TitleSource, ...] = (
    "commit", "pull request", "request heading", "plan heading", "final heading", "emphasis",
    "subagent task", "task", "final", "request", "statement", "report", "announcement",
)  # fmt: skip
# Written to be read alone; and what was said to somebody who knew the rest.
TITLES: tuple[TitleSource, ...] = ("commit", "pull request", "request heading", "plan heading")
SPOKEN: tuple[TitleSource, ...] = (
    "final", "request", "statement", "report", "final heading", "emphasis", "announcement",
)  # fmt: skip
# How much of its text a candidate is.
Cut = Literal["all", "first clause", "later clause", "clauses", "start", "scope", "subject"]
CUTS: tuple[Cut, ...] = (
    "all", "first clause", "later clause", "clauses", "start", "scope", "subject",
)  # fmt: skip
MAX_NAMES = 4  # that count


class TitleCandidate(NamedTuple):
    text: str
    source: TitleSource
    cut: Cut
    number: int  # among the texts of its source
    messages_after: int
    is_question: bool
    named_text: str  # where its names are counted: what it was cut from, if it is all of that
    place: str = ""  # the file, symbol or heading under which it was said

    @property
    def names(self) -> int:
        return cues.count_names(self.named_text, MAX_NAMES)
