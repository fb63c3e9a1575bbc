"""Titles that a person would write: a whole clause, never the beginning of one."""

import re

from claude_mem.observer.passages import plain

LONGEST_TITLE, LONGEST_PLAN_TITLE = 100, 150
SHORTEST_TITLE = 8

_KIND_OF_PLAN = re.compile(
    r"^(?:implementation )?(?:plan|task|proposal|spec|design)\s*(?:[:—–-]+|for|to)\s+",
    re.IGNORECASE,
)
_CONVENTIONAL = re.compile(r"^[a-z]+(?:\([^)]*\))?!?:\s+")
_LEAD = re.compile(
    r"^(?:(?:done|great|perfect|all set|ok(?:ay)?|yes|good (?:news|catch)|fixed)[.!,:—–-]+\s*)*"
    r"(?:(?:i|we)(?:'ve| have)?\s+(?:now\s+|also\s+|just\s+|successfully\s+)?"
    r"(?=[a-z]+ed\b|made|built|wrote|set|split|put|found|rewrote))?",
    re.IGNORECASE,
)
_CLAUSE_END = re.compile(
    r"\s+[—–]+\s+|;\s+|\.\s+|,\s+(?:which|so|but|because|since|where|while|causing|making|ensuring"
    r"|and (?:the|it|now))\b|\s+(?:so that|because|in order to|instead of|rather than)\b"
)
_ASIDE = re.compile(r"\s*\([^()]*\)")
_ABOUT_A_FILE = re.compile(r"^`[^`]+`(?:\s*\([^)]*\))?\s*(?:[:—–-]|→)+\s*(?=\S)")
_ENDS_OPEN = re.compile(
    r"(?:\b(?:the|a|an|of|to|in|on|at|for|with|and|or|from|by|is|are|was)|[,:(])$", re.IGNORECASE
)
_BARE = re.compile(
    r"^(?:(?:and|then|now|please|ok(?:ay)?)[\s,]+)*(?:commit|push|continue|go on|ok(?:ay)?|yes|no"
    r"|thanks?(?: you)?|clear|retry|again|please|do it|go ahead|proceed|next|done|great|perfect"
    r"|cool|nice|sure|fix it)\b[\w\s,.!@']{0,40}$",
    re.IGNORECASE,
)


_SAYS_NOTHING = re.compile(
    r"(?:the|this|a) (?:fix|change|issue|problem|bug|solution|root cause|reason|key|commit)s?"
    r"(?: (?:is|was|are|were))?(?: (?:simple|done|complete|straightforward|clear|here|in place))?$"
    r"|commit\b.{0,40}\b(?:created|succeeded|done)|done\b|(?:both|all) .{0,30}\b(?:are|is|pass)",
    re.IGNORECASE,
)
# What tells of a trouble names it in passing; what was found says it better.
_REPORT = re.compile(
    r"\s*(?:i(?:'ve|'m|'d| )|we |it |it's|this |that |these |there |they |seems|looks? like|still"
    r"|here|when |why |what |how |are |is |do |does |did |should |not |wait|ok |now |but |so"
    r"|great)",
    re.IGNORECASE,
)
_POLITE = re.compile(
    r"^\s*(?:(?:please|can you|could you|would you|now|then|also|and|hey|hi|you (?:can|should|must)"
    r"|we (?:should|must|need to))[\s,]+)+(?:please\s+)?",
    re.IGNORECASE,
)


def from_plan(title: str) -> str:
    return as_title(_KIND_OF_PLAN.sub("", title), LONGEST_PLAN_TITLE)


def from_commit(subject: str) -> str:
    return as_title(_CONVENTIONAL.sub("", subject))


def from_sentence(sentence: str) -> str:
    """The main clause; empty where it cannot be had whole in a title's length."""
    text = _LEAD.sub("", _ABOUT_A_FILE.sub("", plain(sentence))).rstrip(".!?。！？:： ")
    if len(text) > LONGEST_TITLE:
        text = _ASIDE.sub("", text)
    if len(text) <= LONGEST_TITLE:
        return as_title(text)
    for end in reversed(list(_CLAUSE_END.finditer(text))):
        clause = text[: end.start()]
        if len(clause) <= LONGEST_TITLE and clause.count("`") % 2 == 0:
            return as_title(clause)
    return ""


def from_request(words: str) -> str:
    """A short request is its own title; of a long one the first sentence, if it is whole."""
    lines = [line.strip() for line in words.splitlines() if line.strip()]
    if not lines or is_bare(words) or _REPORT.match(lines[0]):
        return ""
    first = _POLITE.sub("", re.split(r"(?<=[.!?。！？])\s+(?=\S)", lines[0])[0])
    return from_sentence(first) if len(first) <= LONGEST_TITLE else ""


def from_files(paths: list[str], created: bool) -> str:
    names = [path.replace("\\", "/").rsplit("/", 1)[-1] for path in paths]
    verb = "Created" if created else "Changed"
    if len(names) <= 3:
        return f"{verb} " + " and ".join(", ".join(names).rsplit(", ", 1))
    return f"{verb} {names[0]}, {names[1]} and {len(names) - 2} more files"


def is_bare(words: str) -> bool:
    """It asks ("commit", "continue", "yes") but does not say what about."""
    return bool(_BARE.match(words.strip())) or len(words.strip()) < 6


def as_title(text: str, longest: int = LONGEST_TITLE) -> str:
    text = plain(text).strip(" .:;—–-'")
    if text.count('"') % 2:
        text = text.strip('"')
    if _SAYS_NOTHING.match(text):
        return ""
    if len(text) < SHORTEST_TITLE and not re.search(r"[^\x00-\x7f]", text):
        return ""
    if len(text) > longest or _ENDS_OPEN.search(text):
        return ""
    return text[:1].upper() + text[1:] if text[:1].islower() and not _is_name(text) else text


def _is_name(text: str) -> bool:
    """A name that begins small is spelled so."""
    return bool(re.match(r"[a-z]+[A-Z_./(]", text))
