"""Whether an English title says something that lasts: what was found, decided or changed.

A task does not say what came of it, and what did not change, what failed for a moment or where a
branch stands is no news weeks later. Subjects of commits and pull requests are not judged by it.
"""

import re

from claude_mem.observer.local.any_case import AnyCase
from claude_mem.observer.local.titles.signs import LONGEST_PLACE
from claude_mem.title_rules import has_name

_TASK = AnyCase(
    r"^(?:analy[sz]e|check|confirm|investigate|look into|research|review|verify) "
    r"(?!(?:if|that|whether)\b)"
    r"|^(?:analysis|assessment|overview|report|review|summary): [^`]+$"
    # A step for the user
    r"|^(?:open|press|reload|restart|start) (?:an?|your)\b"
)
_UNCHANGED = AnyCase(
    r"\b(?:identical|same) (?:[\w-]+ ){0,2}(?:to|as) before\b|\bas before$|\bbyte-identical\b"
    r"|\b(?:are|is|remains?|stays?) (?:now )?(?:unchanged|untouched)\b|\bpreserved exactly\b"
    r"|\bstill (?:an? )?(?:exact|identical)\b|\b(?:itself|themselves) (?:are|is) still\b"
    r"|^left alone\b|\bno (?:[a-z]+ )?`[^`]+` (?:was|were) (?:added|changed|needed)\b"
    r"|\bno (?:[\w-]+ ){0,2}(?:errors?|failures?|regressions?|warnings?)(?:$|[,;])|\bindeed\b"
)
# "The key is unchanged when only comments differ" is how it works.
_CONDITION = AnyCase(r"\b(?:because|if|since|unless|until|when|whenever)\b")
_STATE_OF_BRANCH = AnyCase(
    r"^(?:[a-z]+ )?(?:branch )?`?[\w/.-]+`? (?:now )?(?:has|is) (?:now )?(?:\d+|one|two|three|four"
    r"|five|several) commits?\b|\bcommits? (?:that )?diverged?\b"
    r"|\bbranches are (?:now )?(?:ahead|behind|diverged|even|gone|in sync|lying|merged|pushed"
    r"|up to date)\b"
    r"|\b(?:is|are) (?:now |still )?(?:uncommitted|unpushed|unstaged)\b"
)
# Of a turn with edits: "the relay was already closed", unless it tells why something was done.
_ALREADY, _REASON = AnyCase(r"\balready\b"), AnyCase(r"\b(?:as|because|since|so)\b")
# "`12 → 15`, as bright as asked", "2 lamps, 2 relays, 3 fuses"
_VALUES = re.compile(r"`[^`A-Za-z]{1,80}`|\d+ [^,]{1,60}, (?:all\b|\d+ [^,]{1,60}, )")
# "Swap the relay, not the fuse": of what?
_NOT_NAMED = re.compile(r".{1,150}, not (?:an?|the) [a-z ]{1,40}$")


def says_nothing_lasting(title: str, *, has_edits: bool) -> bool:
    """`has_edits`: whether the title tells what a turn has changed."""
    statement = _statement(title)
    return (
        _TASK.search(statement) is not None
        or (_UNCHANGED.search(statement) is not None and _CONDITION.search(statement) is None)
        or _STATE_OF_BRANCH.search(statement) is not None
        or _VALUES.match(statement) is not None
        or (_NOT_NAMED.match(statement) is not None and not has_name(title))
        or (has_edits and _tells_what_was_so(statement))
    )


def _tells_what_was_so(statement: str) -> bool:
    return _ALREADY.search(statement) is not None and _REASON.search(statement) is None


def _statement(title: str) -> str:
    """What it says of the place before a colon, if there is one."""
    place, _, statement = title.partition(": ")
    is_place = has_name(place) and len(place.split()) <= LONGEST_PLACE
    return statement if statement and is_place else title
