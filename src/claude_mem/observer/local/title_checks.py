"""Whether an English clause can be the title of a draft.

Stricter than for a title that a model or a user wrote (`title_rules.py`): of a draft there are
other candidates, and a clause of a conversation often leaves out what its readers knew.
"""

import re

from claude_mem.observer.local.any_case import AnyCase
from claude_mem.observer.local.predicates import THIRD_PERSON
from claude_mem.title_rules import PREPOSITIONS, names_in, word_set

READ_END = 24  # characters: longer than any verdict
# Code that every file may have.
_ANY_CODE = word_set(
    "true false null nil none default main master if else for while return err error nan ok yes no"
    " string int bool object this self test tests go py js ts api url id json ci pr prs db ui os"
)
_DONE_TO = re.compile(
    r"[a-z]{2,}(?:ed|en|set|put|cut|split) (?:to|into|from|in|on|by|as|with|at|for|and|so)\b",
    re.IGNORECASE,
)
_VERDICT = AnyCase(
    r"\b(?:clean|green|passing|confirmed|refuted|verified|approved|rejected|landed|done|complete|completed|unchanged"
    r"|finished|merged|in progress|all green|looks good|as expected|as planned)\W{0,3}$",
)
_SAYS_VERDICT = re.compile(r"\b(?:was|were|is|are|be|been|not|until|when|never|get|gets)\s+\S+\W*$")
# Words before a colon that announce a statement and say nothing of it.
_LABEL = re.compile(
    r"(?:(?:found|got) it|effect|impact|decision|consequence|symptom|trigger|reason|net|key point"
    r"|the (?:\w+ )?(?:gap|tension|catch|difference|trick|risk|point|upshot|takeaway)"
    r"(?:, [a-z ]{1,30})?|fix (?:direction|shape)(?: is \w+)?|rule moved"
    r"|[a-z]{0,12} ?(?:fix|solution|win|change|approach|state|result|case|step"
    r"|note|finding|answer|cause|problem|issue|idea|plan|option|default|proposal|recommendation)"
    r"(?: (?:found|confirmed|fixed|done|live|now|here|and fixed|found and fixed))?|clean|testable"
    r"|ready|update|wip|fixed|done|summary|context|ack|(?:the )?verdict|confirmed|severe|major"
    r"|minor|critical|blocker|nit|verified|verify|high|medium|low"
    r"|(?:bug|issue|fix|optimi[sz]ation|change|finding|point"
    r"|problem|gap|risk|case|test|task|step|phase|part|option|item|conflict|amendment|section|round|batch"
    r"|agent|stage|wave|lens|angle) ?#?\d{1,2})"
    r"\s*(?::|\s[—–-])\s+(?=\S)",
    re.IGNORECASE,
)


def _start_and_within(patterns: tuple[str, ...]) -> tuple[AnyCase, AnyCase]:
    """One to match, and one to search for, of those that begin with `.*`: each of these would go
    through a title from its end."""
    within = [pattern for pattern in patterns if pattern.startswith(".*")]
    start = [pattern for pattern in patterns if pattern not in within]
    return (
        AnyCase("|".join(start)),
        AnyCase("|".join(pattern[2:] for pattern in within)),
    )


# Says that something was found, judged or measured, and not what.
_UNTOLD_AT_START, _UNTOLD_WITHIN = _start_and_within(
    (
        r"(?:the )?root cause\b(?! (?:is|was|of)\b|:)", r"needs?\b", r"looks? like\b", r"seems?\b",
        r"(?:the )?(?:fix|change|solution|answer) (?:would|could|should|might|may)\b",
        r"(?:writing|downloading|fetching|building|compiling|installing|running|checking|reading"
        r"|searching|looking|waiting|testing|verifying|continuing|starting)\b",
        r"(?:breakdown|overview|recap|timeline|comparison|status|state) (?:of|from|for|by)\b",
        r"(?:confirmed|verified|validated|checked|tested|reproduced|measured) (?:against|with|by|in"
        r"|on|via|from|end)\b", r"false alarm\b", r"scenario\b", r"usage:", r"additional\b",
        r"(?:using|having|being)\b", r".*: (?:when|if|while|after|before|once|since)\b[^,]{0,150}$",
        r"(?:test |bench\w* )?results?\b", r"\w+able with\b", r"\w+ \(",
        r"(?:\w+ly )?(?:identical|equal|equivalent|similar|same)\b", r"(?:[\w.]+: )?recommend\b",
        r"(?:strongest|biggest|largest|best|worst|main) (?:is|are|ones?)\b",
        r"(?:no|some|every|else)where\b", r"(?:mostly|likely|probably|maybe|perhaps|possibly)\b",
        r"users? (?:\w+ed|made|ran|saw)\b",
        r"the (?:two|three|four|five|six|seven|eight|other|rest|following|first|second|third)\b",
        # of which there is more than one
        r"the (?:\w+ )?(?:values?|pattern|logic|approach|strategy|consolidation|implementation"
        r"|spec|docs?|document|plan|code|change|value|result|output|behaviou?r|script|section|table|list|tests?|pages?"
        r"|function|method|class|field|option|parent) (?:is|are|was|were|now|has|have|had|will|can"
        r"|already|only|added|\w+s)\b",
        r".{1,60}\b(?:is|are|was|were|looks?|works?) (?:now )?(?:ok(?:ay)?|good|right|correct"
        r"|unchanged|intact|in place|now|again|as intended)\W{0,9}$",
        r"(?:the |an? )?[^,;:]{1,40} (?:problem|issue|question|verdict|situation|story|changes"
        r"|results?|details|summary|overview|findings?)\W{0,9}$",
        r".*\b(?:fix|change|patch) is (?:small|simple|minimal|safe|correct|trivial|straight|well)",
        r".*:\s{1,3}~?\d",  # a figure after a colon: of what?
        r"[^:]*: [^:]*: ", r".*\blines? \d", r".*\bworks?\W{0,9}$", r".*\b(?:is|are) fine\b",
        r".*\bnext (?:phase|step|one|task|batch)\b",
        r".*\b(?:things?|some(?:thing|one|body)|everything|anything|anyway|this machine"
        r"|previously staged|edge cases)\b",
    ),
)  # fmt: skip
# Each of those within has one of these; a title of other letters than ASCII is searched anyway.
_UNTOLD_PARTS = (
    ":", " is ", "line", "work", " fine", "next ", "thing", "some", "anyway", "this machine",
    "previously staged", "edge cases",
)  # fmt: skip
# Printed by a program, or a cheer.
_PRINTED = re.compile(
    "|".join((
        r"^`(?:var|const|let|func|def|import|if|return|export)\b",
        r"/tmp/", r"\b[A-Z]:\\", r"\w ?> \w", r"\$ \S", r"\s/[a-z]", r"[.!?] [A-Z`]", r"[!！]",
        r"\b(?=[0-9a-f]{0,39}\d)[0-9a-f]{7,40}\b",  # a commit: it tells a status
        r"\b(?:CONFIRMED|REFUTED|VERIFIED|PASS(?:ED)?|DONE|OK)\b",
        r"\b[Tt]he (?:PR|branch|commit|diff)\b",  # which one is known only in the turn
        r"[\U0001F300-\U0001FAFF\u2600-\u27BF]",
    ))
)  # fmt: skip
# The same for what is printed, and for a commit a digit.
_PRINTED_PARTS = (
    "/", "\\", ">", "$", ". ", "!", "? ", "he PR", "he branch", "he commit", "he diff", "CONFIRMED",
    "REFUTED", "VERIFIED", "PASS", "DONE", "OK", "`", *"0123456789",
)  # fmt: skip
_DEMONSTRATIVE = AnyCase(
    r"\b(?:these|those|this)\s+(?!repo|project|package|branch|session|directory|version)\w",
)
_LIST_NUMBER = re.compile(r"^(?:[>*•-]|#{1,6}|\d{1,2}[.)]|#\d{1,2}:)\s+")
_STARTS_WITH_COUNT = re.compile(
    r"(?:\d|(?:one|two|three|four|five|six|seven|eight|nine|ten|several|some|few|many)\s+\w)",
    re.IGNORECASE,
)
_LIST_PART_WORDS = 2
_SEPARATOR = re.compile(r", (?:and )?| (?:and|→|->|/) ")
# A noun with more about it, and no verb of its own; and a text from which something was cut.
_ONLY_NOUN = re.compile(r"(?:the|a|an)\b[^,]{1,80}, (?:which|who|whose)\b", re.IGNORECASE)
_CUT = re.compile(r"\[(?:\.\.\.|…)\]|…")
_INQUIRY = re.compile(
    r"(?:[\w.#/ -]{1,40}: )?(?:analy[sz]e|audit|check|compare|consider|continue|debug|discuss"
    r"|confirm|double-check|examine|explain|explore|find|gather|inspect|investigate|launch|look|plan|read"
    r"|report|research|review|run|search|see|study|summari[sz]e|test|think|trace|try|understand"
    r"|verify|wait)\b",
    re.IGNORECASE,
)
# Told of a case that was made up, of a number in a list, or of what the text before has named.
_SCENARIO = re.compile(
    r"(?<![.\w])(?!(?:[Ii]n|[Ww]ith|[Ff]or|[Oo]f|[Tt]he|[Aa]nd)\b)"
    r"[A-Za-z][a-z]{2,} [A-HJ-Z](?![\w.'/+#-])"  # "Session B"
    r"|\s=\s"
    r"|^(?:\(|[A-Z]\d\b|[A-Z]{3,} [A-Z]{3,}\b|(?i:add|do|fix|make|try|update) .*\bfirst$)"
    # what a pronoun stands for
    r"|\b(?:(?:again|too|also)$"
    r"|(?:between|of|for|with|to|from|in|on|by|fix|limit|make|keep|do)"
    r" (?:them|it|these|those|that)(?= (?:more|less|to|and|as|in|is|for|with|now)\b|[,;.]|$))"
)
_SCENARIO_WORDS = AnyCase(
    r"\b(?:(?:tests?|steps?|options?|phase|items?|cases?|points?|rounds?|agents?|layers?|scenarios?"
    r"|proposal|section|angle|finding|fix|issue|bug|problem|change|comment|gap|reason) #?\d{1,2}"
    r"|all (?:\d+|two|three|four|five) (?:[a-z]+ )?(?:bugs|issues|findings|tests|comments"
    r"|tasks|fixes|points|items|checks|problems)"
    r"|e\.g|i\.e|please|here's|above|below|someone|suppose|let's"
    r"|both (?:places|cases|files|tests|of|methods|functions|edits|changes|ones)"
    r"|the other|makes sense|(?:is|are):|as (?:designed|intended|expected|planned)"
    # what goes on
    r"|still (?:running|watching|waiting|pending|open|in progress)|will report|report back"
    r"|in the background|somehow|as well"
    r"|(?:latest|recent|requested|following|necessary|needed) changes"
    r"|(?:one|an) (?:additional|more|other|further)"
    r"|the (?:new|same|old|existing|current|other|remaining|actual|correct) (?:behaviou?r"
    r"|code|approach|tests?|function|logic|version|one|method|way|check|format|pattern))\b"
    r"|(?:^|: )(?:meanwhile|cons|pros|plus|first|second|third|fourth|another|other|next"
    r"|(?:the |an? )?users? (?:[a-z]+ed|[a-z]+s))\b"
    r"|: (?:it|they|this|that|these|those)\b"
    r"|(?:,| [—–-]) (?:good|nice|great|fine|in order)$"
    r"|^(?:[a-z]{5,}ly,|[a-z]+ it\b)"
)
_SUPPOSED = AnyCase(
    r"\b(?:would|could|might|maybe|perhaps|probably|likely|seems?|appears?|done|clean|green|passes"
    r"|passing|ready|complete|confirmed|proven|settled|deliberately|as-is|substantive|genuine)\b",
)
# What the reader is told to do.
_ORDER = re.compile(
    r"(?:[\w./-]{1,60}: )?(?:use|copy|clean|open|click|press|type|set|start|restart|go|give|say"
    r"|note|remember|install|clone|export|call|pass|pick|choose|decide|ask|tell|send|delete|commit"
    r"|push)\b",
    re.IGNORECASE,
)
# Who speaks to whom is known only in the turn.
_PERSON = re.compile(
    r"(?<![\w/.-])(?:I|I'\w{1,2}|(?i:you|your|you're|yours|we|we're|we've|our|my|me))(?![\w/-])"
)


def is_anchored(title: str) -> bool:
    """Whether a name in it tells where it belongs: a file, a symbol, an issue, a product.

    The same statement without one may be about anything.
    """
    if any(map(_is_anchor, names_in(title))):
        return True
    # A capital within the text is a name, unless all words have one.
    words = title.split()[1:]
    capitals = sum(word.lstrip("(\"'")[:1].isupper() for word in words)
    return 0 < capitals < max(2, len(words) / 2)


def _is_anchor(name: str) -> bool:
    bare = name.strip("`").lower()
    is_choice = "/" in bare and "." not in bare and name == bare  # "on/off", but not "src/lamp.py"
    return bare not in _ANY_CODE and not is_choice


def lacks_subject(title: str) -> bool:
    """Whether a verb comes first, without the noun before it: "Lists all types", "Moved to"."""
    words = title.lower().split()
    first = words[1] if words[0] in ("now", "also", "already", "still") and words[1:] else words[0]
    return first in THIRD_PERSON or bool(_DONE_TO.match(title))


def is_inquiry(title: str) -> bool:
    """Whether it tells what was looked for, and not what came of it."""
    return _INQUIRY.match(title) is not None


def is_supposed(title: str) -> bool:
    """Whether it tells what may be, or that the work is over."""
    return _SUPPOSED.search(title) is not None


def is_clear_remark(title: str) -> bool:
    """Whether a clause of the conversation needs no scenario, list or order to be understood."""
    return not (_ORDER.match(title) or _SCENARIO.search(title) or _SCENARIO_WORDS.search(title))


def addresses_someone(title: str) -> bool:
    """Whether it has "I", "we" or "you": no draft gets such a title, a model's may."""
    return bool(_PERSON.search(title.replace("’", "'")))


def is_draft_title(title: str) -> bool:
    """Whether to propose an English text as a title. Stricter than for a title that a model or a
    user wrote: of a draft there are other candidates."""
    words = title.lower().split()
    if not words or "?" in title or "://" in title or addresses_someone(title):
        return False
    if words[0].strip("`\"'") in PREPOSITIONS or _STARTS_WITH_COUNT.match(title):
        return False
    if _UNTOLD_AT_START.match(title) or _is_untold_within(title) or _is_printed(title):
        return False
    if words[0] == "the" and _is_capitalised(title):
        return False  # a heading that names a thing and says nothing of it
    if _ONLY_NOUN.match(title) or _CUT.search(title):
        return False
    if title[0] in "\"'“" or _DEMONSTRATIVE.search(title) or _is_bare_list(title):
        return False
    return not (
        _VERDICT.search(title, max(0, len(title) - READ_END)) and not _SAYS_VERDICT.search(title)
    )


def _is_untold_within(title: str) -> bool:
    lowered = title.lower()
    is_possible = not title.isascii() or any(map(lowered.__contains__, _UNTOLD_PARTS))
    return is_possible and _UNTOLD_WITHIN.search(title) is not None


def _is_printed(title: str) -> bool:
    is_possible = not title.isascii() or any(map(title.__contains__, _PRINTED_PARTS))
    return is_possible and _PRINTED.search(title) is not None


def _is_capitalised(title: str) -> bool:
    words = [word for word in title.split()[1:] if len(word) > 3]
    return len(words) > 1 and all(word[0].isupper() for word in words)


def without_label(title: str) -> str:
    """Without the number of a list, and without "Suggested fix:" before the statement itself."""
    if number := _LIST_NUMBER.match(title):
        title = title[number.end() :]
    has_mark = ":" in title or "-" in title or not title.isascii()
    label = _LABEL.match(title) if has_mark else None
    return title[label.end() :] if label else title


def _is_bare_list(title: str) -> bool:
    """Names in a row, without a word about them."""
    parts = _SEPARATOR.split(" ".join(title.split()))
    return len(parts) > 1 and all(len(part.split()) <= _LIST_PART_WORDS for part in parts)
