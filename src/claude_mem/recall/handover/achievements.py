"""Which titles say what came of some work, in contrast to a remark that was made on the way."""

import re
from collections.abc import Iterable

from claude_mem.recall.handover.digests import Result
from claude_mem.recall.handover.lines import LOCAL

FEWEST_WORDS = 3  # of a heading that says what it is about
_COMMIT_PREFIX = re.compile(r"[a-z]{2,15}(?:\([^()\s]{1,40}\))?!?: ")
_WORK = re.compile(
    r"(?:add|allow|appl|avoid|build|bump|cach|chang|clarif|clean|consolidat|convert|correct|creat"
    r"|default|defer|delet|deprecat|detect|disabl|document|drop|enabl|ensur|exclud|expand|expos"
    r"|extend|extract|filter|fix|format|gat|guard|handl|hid|implement|improv|includ|increas|inlin"
    r"|install|introduc|limit|link|log|mak|mark|merg|migrat|mov|optimi[sz]|pars|persist|pin|polish"
    r"|prefer|prepar|preserv|prevent|propagat|publish|reduc|refactor|reject|releas|remov|renam"
    r"|reorder|replac|report|requir|reset|resolv|restor|restrict|return|revert|rework|rewrit|rout"
    r"|scal|ship|show|simplif|skip|sort|split|stop|stor|strip|stub|support|surfac|switch|sync|test"
    r"|track|trim|unif|updat|upgrad|us|validat|wir|wrap|writ)"
    r"(?:e|ed|d|ing|y|ied|ning|ped|ting|ted)?\b",
    re.IGNORECASE,
)
# A line of a list whose subject stood above it, a reply, a line of a terminal.
_WITHOUT_SUBJECT = re.compile(
    r"(?:verifi|read|log|stor|return|check|handl|show|list|add|us|updat|remov|mak|creat|ensur|allow"
    r"|catch|set|get|test|run)e?s\b(?! (?:for|of)\b)|noted\b|no\b|need\b|[^\w`\"'(#.@/-]",
    re.IGNORECASE,
)
_FILE_ALONE = re.compile(r"(?:Changed|Updated|Edited) \S+$")
# A sentence about a state; a heading or a request has none of these.
_IS_STATEMENT = re.compile(
    r"\b(?:is|are|was|were|has|have|had|does|did|do|can|could|will|would|should|now|being|been|isn't"
    r"|aren't|wasn't|doesn't|didn't|can't|cannot|won't|confirmed|needs?)\b"
    r"|^(?:the|this|no|when|waiting)\b|^(?-i:[^A-Z])|,|→",
    re.IGNORECASE,
)


def says_what_was_done(title: str) -> bool:
    """A commit's subject, an action, or a heading."""
    return _starts_as_work(title) or _is_heading(title)


def achievements(results: Iterable[Result], goal: str = "") -> list[Result]:
    """Commits, then what says what was done, best first; no remarks of drafts.

    The goal of a session counts as what was done in it.
    """
    rows = [*([Result(goal)] if goal else []), *results]
    ranked = [(rank, row) for row in rows if (rank := _rank(row)) is not None]
    return [row for _, row in sorted(ranked, key=lambda pair: pair[0])]


def _rank(result: Result) -> int | None:
    if result.commit:
        return 0
    if _WITHOUT_SUBJECT.match(result.text):
        return None
    if _starts_as_work(result.text):
        return 1
    if _is_heading(result.text):
        return 2
    return None if is_draft(result) or _FILE_ALONE.match(result.text) else 3


def is_draft(result: Result) -> bool:
    """Whether no model has read its turn."""
    return result.observation is None or result.observation["observer"] == LOCAL


def _starts_as_work(title: str) -> bool:
    if _FILE_ALONE.match(title):
        return False
    return bool(_COMMIT_PREFIX.match(title) or _WORK.match(title))


def _is_heading(title: str) -> bool:
    is_long = len(title.split()) >= FEWEST_WORDS
    is_statement = _FILE_ALONE.match(title) or _IS_STATEMENT.search(title)
    return title.isascii() and is_long and not is_statement
