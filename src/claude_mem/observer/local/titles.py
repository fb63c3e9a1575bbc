"""Titles that a person would write: a whole clause, never the beginning of one."""

import re

from claude_mem.observer.local.passages import plain, sentences, width
from claude_mem.observer.local.phrases import says_nothing, without_opening

LONGEST_TITLE, LONGEST_PLAN_TITLE = 100, 150
SHORTEST_TITLE = 8
FEWEST_WORDS = 3  # of a sentence; a request may be shorter

_KIND_OF_PLAN = re.compile(
    r"^(?:implementation )?(?:plan|task|proposal|spec|design)\s{0,3}(?:[:—–-]{1,3}|for|to)\s+",
    re.IGNORECASE,
)
_CONVENTIONAL = re.compile(r"^[a-z]{1,20}(?:\([^)]{0,60}\))?!?:\s+")
_ABOUT_A_FILE = re.compile(
    r"`[^`]{0,120}[./][^`]{1,120}`(?:\s\([^)]{0,60}\))?\s*(?:[:—–-]|→)+\s*(?=\S)"
)
# A word for what follows, which says it better.
_LABEL = re.compile(
    r"(?:root cause|cause|fix|the fix|solution|problem|issue|result|answer|note|important|summary"
    r"|what changed|changes?|update|ursache|lösung|cause racine|correction)\s*[:：]\s*",
    re.IGNORECASE,
)
_LEAD = re.compile(
    r"(?:the (?:fix|change|issue|problem|bug|root cause|cause|reason|solution|answer) (?:is|was)"
    r"(?: now| very)?(?: simple| done| complete| straightforward| in place)?\s*(?:[:—–]\s*|that\s+)"
    r"|(?:i|we)(?:'ve| have)?\s+(?:now\s+|also\s+|just\s+|successfully\s+)*"
    r"(?=[a-z]+ed\b|made|built|wrote|set|split|put|found|rewrote))",
    re.IGNORECASE,
)
# What stands before one of these is whole without what follows;
_STRONG_END = r"(?<!\s)\s++[—–]++\s+|;\s+|[.!?]\s+|[；。]"
# and before one of these, unless it is itself but half of a sentence.
_WEAK_END = (
    r"，|,\s+(?:which|so|but|because|since|where|while|causing|making|ensuring|and (?:the|it|now)"
    r"|aber|sodass|weil|mais|donc|car|pero|porque)\b"
    r"|(?<!\s)\s++(?:so that|because|in order to|instead of|rather than|sodass|weil|parce que)\b"
)
_WHOLE_END = re.compile(_STRONG_END)
_CLAUSE_END = re.compile(f"{_STRONG_END}|{_WEAK_END}")
_ASIDE = re.compile(r"\s\([^()]{0,200}\)")
_ENDS_OPEN = re.compile(
    r"(?:\b(?:the|a|an|of|to|in|on|at|for|with|and|or|from|by|is|are|was|so that|that|includes?"
    r"|including|contain(?:s|ing)?|covers?|covering|follows|following|shows?|like|as)|[,:(])$"
)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# What leans on the sentence before it is no title.
_LEANING = _words(
    "this that these those it its it's they he she but and so or otherwise previously however also"
    " both either there here before: after: need needs still then such same another again was were"
    " is are now has you"
)
# A clause that begins so is half of its sentence.
_HALF = _words("when if since because while after before once although until unless")
# "Commit", "continue", "yes": asked for, without saying what about.
_BARE = re.compile(
    r"(?:(?:and|then|now|please|ok(?:ay)?)[\s,]{1,3}){0,3}"
    r"(?:(?:com+it?|push|continue|go on|go ahead|proceed|retry|clear|try again|fix it|do it|weiter"
    r"|mach das)\b[\w\s,.!@'/]{0,40}"
    r"|(?:ok(?:ay)?|yes|no|thanks?(?: you)?|again|please|next|done|great|perfect|cool|nice|sure|ja"
    r"|nein|danke|oui|non|merci|sí|gracias)\b[\w\s,!@']{0,25}[.!]*"
    r"|(?:继续|好的?|是的?|谢谢|提交|はい|続けて|ありがとう|نعم|شكرا)\W*)$",
    re.IGNORECASE,
)
_TO_COMMIT = re.compile(
    r"(?:(?:and|then|now|please|ok(?:ay)?|great|perfect)[\s,.!]{1,3}){0,3}"
    r"(?:(?:re|git )?com+it?|push|release|tag|merge)\b",
    re.IGNORECASE,
)
_SAYS_NOTHING = re.compile(
    r"(?:the|this|a) (?:fix|change|issue|problem|bug|solution|root cause|reason|key|commit)s?"
    r"(?: (?:is|was|are|were))?(?: (?:simple|done|complete|straightforward|clear|here|in place"
    r"|(?:a )?(?:one|single)-\w+ \w+.*))?$|(?:both|all) .{0,30}\b(?:are|is|pass)"
    r"|(?:the|that) (?:other|same|first|second|last) (?:one|thing)s?$"
    r"|no (?:additional|further|other|more) (?:changes?|work)\b",
    re.IGNORECASE,
)
# What tells of a trouble, or asks, names it in passing; what was found says it better.
_REPORT = re.compile(
    r"(?:i|i've|i'm|i'd|we|it|it's|this|that|these|there|they|seems|looks? like|still|here|when|why"
    r"|what|how|which|where|who|are|is|do|does|did|should|not|wait|ok|now|but|so|great|warum|wie"
    r"|was|wo|pourquoi|comment|où|por qué|cómo)\b",
    re.IGNORECASE,
)
_OF_THE_AGENT = re.compile(r"\bI\b")
_OF_THE_PERSON = re.compile(r"\b(?:i|i've|i'm|i'd|me|my|we've|we're)\b", re.IGNORECASE)
_POLITE = re.compile(
    r"(?:(?:please|can you|could you|would you|now|then|also|and|hey|hi|you (?:can|should|must)"
    r"|we (?:should|must|need to)|let's|bitte|kannst du|könntest du|peux-tu|pourrais-tu"
    r"|s'il te plaît|por favor|puedes|help me(?: to)?)[\s,]{1,3}){1,4}(?:please\s|bitte\s)?",
    re.IGNORECASE,
)
_FOR_ME = re.compile(r"^(\w{2,12}) me\b(?= \w)", re.IGNORECASE)
_TAIL = re.compile(
    r"(?:,|\s[—–-])\s+(?:please|any ideas?|thanks?|fix (?:it|this)"
    r"|can you (?:fix|check) (?:it|this)|bitte|merci|corrige ça)\W*$",
    re.IGNORECASE,
)
_NAME_IN_SMALL = re.compile(r"[a-z]+[A-Z_./(0-9-]")


def from_plan(title: str) -> str:
    return as_title(_KIND_OF_PLAN.sub("", title, count=1), LONGEST_PLAN_TITLE)


def from_commit(subject: str) -> str:
    return as_title(_CONVENTIONAL.sub("", subject, count=1))


def from_sentence(sentence: str, fewest: int = FEWEST_WORDS) -> str:
    """The main clause; empty where it cannot be had whole in a title's length."""
    text = without_opening(plain(sentence))
    for before in (_ABOUT_A_FILE, _LABEL, _LEAD):
        if found := before.match(text):
            text = text[found.end() :]
    text = text.rstrip(".!?。！？:： ")
    if _first_word(text) in _LEANING or says_nothing(text.lower()) or _OF_THE_AGENT.search(text):
        return ""
    if len(text) > LONGEST_TITLE:
        text = _ASIDE.sub("", text)
    title = as_title(text) if len(text) <= LONGEST_TITLE else _clause_of(text)
    return title if _words_in(title) >= fewest else ""


def _clause_of(text: str) -> str:
    """The longest whole beginning that fits."""
    pattern = _WHOLE_END if _first_word(text) in _HALF else _CLAUSE_END
    ends = [end.start() for end in pattern.finditer(text[: LONGEST_TITLE + 20])]
    for end in reversed(ends):
        if end <= LONGEST_TITLE and (title := as_title(text[:end])):
            return title
    return ""


def from_request(words: str) -> str:
    """A short request is its own title; of a long one the first sentence, if it is whole."""
    lines = [line.strip() for line in words.splitlines() if line.strip()]
    if not lines or is_bare(words):
        return ""
    line = without_opening(lines[0])
    if _REPORT.match(line):
        return ""
    asked = sentences(line[: 4 * LONGEST_TITLE])[0]
    polite = _POLITE.match(asked)
    first = _TAIL.sub("", asked[polite.end() :] if polite else asked)
    first = _FOR_ME.sub(r"\1", first)
    if len(first) > LONGEST_TITLE or _OF_THE_PERSON.search(first):
        return ""
    return from_sentence(first, fewest=1)


def from_question(words: str) -> str:
    """A question that is one line, as it was asked."""
    text = plain(words) if "\n" not in words.strip() else ""
    is_whole = text.endswith(("?", "？", "؟")) and len(sentences(text)) == 1
    return as_title(text) if is_whole and not _OF_THE_PERSON.search(text) else ""


def from_files(paths: list[str], created: bool) -> str:
    names = [path.replace("\\", "/").rsplit("/", 1)[-1] for path in paths]
    verb = "Created" if created else "Changed"
    if len(names) <= 3:
        return f"{verb} " + " and ".join(", ".join(names).rsplit(", ", 1))
    return f"{verb} {names[0]}, {names[1]} and {len(names) - 2} more files"


def is_bare(words: str) -> bool:
    """It asks ("commit", "continue", "yes") but does not say what about."""
    words = words.strip()
    return bool(_BARE.match(words)) or width(words) < 6


def asks_to_commit(words: str) -> bool:
    """To commit or release what was done before."""
    return bool(_TO_COMMIT.match(words.strip()))


def as_title(text: str, longest: int = LONGEST_TITLE) -> str:
    text = plain(text).strip(" .:;—–-'")
    if text.count('"') % 2:
        text = text.strip('"').strip(" .:;—–-'")
    if width(text) < SHORTEST_TITLE or len(text) > longest or not _is_balanced(text):
        return ""
    if _SAYS_NOTHING.match(text) or _ENDS_OPEN.search(text):
        return ""
    return text[0].upper() + text[1:] if text[0].islower() and not _is_name(text) else text


def _words_in(title: str) -> int:
    """A script without spaces writes a word with about two signs."""
    return len(title.split()) + (width(title) - len(title)) // 4


def _first_word(text: str) -> str:
    return text[:40].split(" ", 1)[0].lower().rstrip(",")


def _is_balanced(text: str) -> bool:
    """Neither code, nor a quotation, nor an aside is left open."""
    return (
        text.count("`") % 2 == 0
        and text.count('"') % 2 == 0
        and text.count("(") <= text.count(")")
        and text.count("“") == text.count("”")
    )


def _is_name(text: str) -> bool:
    """A name that begins small is spelled so."""
    return bool(_NAME_IN_SMALL.match(text))
