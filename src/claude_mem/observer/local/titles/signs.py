"""Signs by which a reader of an English title can tell what it is about, or cannot.

None decides alone: `clarity.py` has learned what each counts. A clause of a conversation
often leaves out what its readers knew.
"""

import re
from collections.abc import Callable, Iterable

from claude_mem.observer.local import cues
from claude_mem.observer.local.any_case import AnyCase
from claude_mem.observer.local.clause_grammar import (
    THIRD_PERSON,
    has_predicate,
    has_vague_subject,
    tells_change,
    tells_process,
    tells_work,
    verb_of,
)
from claude_mem.title_rules import NAME, PREPOSITIONS, has_name, names_in, specific_words, word_set

MOST_COUNTED = 8
_COUNTS_OF_NAMES = tuple(f"sign: names {count}" for count in range(MOST_COUNTED + 1))
_COUNTS_OF_SPECIFIC_WORDS = tuple(
    f"sign: specific words {count}" for count in range(MOST_COUNTED + 1)
)
LONGEST_PLACE = 6  # words before a colon
# Code that every file may have.
_ANY_CODE = word_set(
    "true false null nil none default main master if else for while return err error nan ok yes no"
    " string int bool object this self test tests eof go py js ts api url id json ci pr prs db ui"
    " os"
)
_DONE_TO = re.compile(
    r"[a-z]{2,}(?:ed|en|set|put|cut|split) (?:to|into|from|in|on|by|as|with|at|for|and|so)\b",
    re.IGNORECASE,
)
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


# Says that something was found, judged or measured, and not what.
_UNTOLD = AnyCase(
    r": (?:when|if|while|after|before|once|since)\b[^,]{0,150}$"
    r"|\b(?:fix|change|patch) is (?:small|simple|minimal|safe|correct|trivial|straight|well)"
    r"|:\s{1,3}~?\d"  # a figure after a colon: of what?
    r"|\blines? \d|\bworks?\W{0,9}$|\b(?:is|are) fine\b|\bnext (?:phase|step|one|task|batch)\b"
    r"|\b(?:things?|some(?:thing|one|body)|everything|anything|anyway|this machine"
    r"|previously staged|edge cases)\b"
)
# Each of these has one of the parts; a title of other letters than ASCII is searched anyway.
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
# Each of these has one of the parts, too.
_SCENARIO_PARTS = (
    " 0", " 1", " 2", " 3", " 4", " 5", " 6", " 7", " 8", " 9", "#", "all ", "e.g", "i.e", "please",
    "here's", "above", "below", "someone", "suppose", "let's", "both ", "the other", "makes sense",
    "is:", "are:", "as ", "still ", "report", "in the background", "somehow", " changes", "one ",
    "an ", "the new ", "the same ", "the old ", "the existing ", "the current ", "the remaining ",
    "the actual ", "the correct ", "meanwhile", "cons", "pros", "plus", "first", "second", "third",
    "fourth", "another", "other", "next", "user", ": it", ": th", " good", " nice", " great",
    " fine", " in order", "ly,", " it",
)  # fmt: skip
_SUPPOSED = word_set(
    "would could might maybe perhaps probably likely seem seems appear appears done clean green"
    " passes passing ready complete confirmed proven settled deliberately substantive genuine"
)
# A step of the work or of its review, which the project has nothing of.
_OF_THE_WORK = AnyCase(
    r"\b(?:amended|committed|folded|landed|merged|pushed|rebased|squashed|staged|unblocked|reverted"
    r"|candidates?|claims?|verifiers?|verdicts?|reviewers?|findings?|audit(?:ed)?|agents?|subagents?"
    r"|screenshots?|reproduction|report(?:ed)?|reporter|analysis|pass|reply|replies|threads?|scope"
    r"|phase|trade-?offs?)\b"
)
# A judgement: of what, and compared with what, the text before has told.
_JUDGES = AnyCase(
    r"\b(?:better|cleaner|simpler|easier|harder|harmful|safer|faster|slower|lighter|transparent"
    r"|close|exactly|wrong|correct|clean|fine|benign|consistent|inconsistent|feasible"
    r"|unlikely|likely|rare|trivial(?:ly)?|minor|obvious|idiomatic|complex|harmless|intentional"
    r"|deliberate(?:ly)?|literally|effort|good|bad|real|right)\b"
)
# "Task B", "draw 2+", "comment 1": one of several that were listed before.
_LISTED_THING = re.compile(
    r"(?<![.\w`-])(?!(?:in|with|for|of|the|and|to|by|from|at|on|than|exit|code|port|status)\b)"
    r"[a-z]{3,} \d{1,2}\+?(?='s\b|[,;:)]|\s[—–-]|\s(?:is|was|are|now|and|stays?)\b|$)"
)
_LISTED_STEP = re.compile(
    r"\b(?:task|option|session|step|case|item|agent|angle|variant|scenario|comment|fix|group|round"
    r"|batch|finding|requirement|user) (?:#?\d{1,2}\+?|(?-i:[A-HJ-Z]))(?![\w.])",
    re.IGNORECASE,
)
# What only the conversation knows: a commit by its hash, a quotation, what was said before.
_OUTSIDE = re.compile(
    r"\(|[\"“].{1,140}[\"”]$|(?:[Aa]fter|[Bb]efore|[Ww]ith|[Ii]n|[Bb]y) (?:that|this|which|these)\b"
    r"|.{0,150}\b(?=[0-9a-f]{0,39}\d)(?=[0-9a-f]{0,39}[a-f])[0-9a-f]{7,40}\b|.{0,150}`[0-9a-f]{7,40}`"
)
_DOCUMENT = re.compile(r"\.(?:md|mdx|txt|rst|html|json|ya?ml|toml|log)$", re.IGNORECASE)
_DEFINITE = re.compile(
    r"(?:the|both|all|each|every|an?|one|two|three|four|five|six|several|old|new|first|second"
    r"|existing|current|other)\b",
    re.IGNORECASE,
)
MOST_OF_SUBJECT, MOST_CODE = 3, 3
FEWEST_OF_SUBJECT = 2  # specific words of a subject without a name
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
    if words[:2] == ["no", "longer"]:
        return True
    if words[1:] and words[0] in ("now", "also", "already", "still"):
        del words[0]
    return bool(words) and (words[0] in THIRD_PERSON or bool(_DONE_TO.match(title)))


def addresses_someone(title: str) -> bool:
    """Whether it has "I", "we" or "you": no draft gets such a title, a model's may."""
    return bool(_PERSON.search(title.replace("’", "'")))


def refers_outside(title: str) -> bool:
    """Whether it needs what only the conversation has: "Task B", a commit, a quotation."""
    return _LISTED_STEP.search(title) is not None or _OUTSIDE.match(title) is not None


def only_labels(title: str) -> bool:
    """Whether it is a label and what it labels, and says nothing: "Spare lamps: rare (in winter)".

    Of 250 that readers judged, 60% are not understood alone, and 13% are clear.
    """
    label, _, said = title.partition(": ")
    is_label = bool(said) and _kind_of_place(label) in ("word", "words")
    return is_label and len(label.split()) <= LONGEST_PLACE and _form_of(said) == "no verb"


def signs_of(title: str) -> list[str]:
    """What is known of an English title besides its words: what it names, says and leaves open."""
    signs = [name for name, has_sign in _SIGNS if has_sign(title)]
    names = names_in(title)
    specific = specific_words(NAME.sub(" ", title) if names else title)
    signs += (
        _COUNTS_OF_NAMES[min(len(set(names)), MOST_COUNTED)],
        _COUNTS_OF_SPECIFIC_WORDS[min(len(set(specific)), MOST_COUNTED)],
    )
    place, _, said = title.partition(": ")
    if said and len(place.split()) <= LONGEST_PLACE:
        signs += [name for name, has_sign in _SIGNS_OF_SAID if has_sign(said)]
    else:
        place, said = "", title
    kind, form = _kind_of_place(place), _form_of(said)
    signs += (
        f"sign: place: {kind}",
        f"sign: form: {form}",
        f"sign: {form} after {kind}",
        f"sign: code {min(title.count('`') // 2, MOST_CODE)}",
    )
    return signs


def _kind_of_place(place: str) -> str:
    """What stands before a colon."""
    if not place:
        return "nothing"
    if " " in place:
        return "named words" if is_anchored(place) else "words"
    bare = place.strip("`")
    if is_document(bare):
        return "document"
    if "." in bare or "/" in bare:
        return "test" if "test" in bare else "file"
    return "symbol" if has_name(place) else "word"


def has_plain_label(title: str) -> bool:
    """Whether words that name nothing stand before its colon: "Lighting: the lamp burns"."""
    label, _, said = title.partition(": ")
    if not said or len(label.split()) > LONGEST_PLACE:
        return False
    return _kind_of_place(label) in ("word", "words")


def is_document(name: str) -> bool:
    return _DOCUMENT.search(name) is not None


def has_definite_stand_in(title: str) -> bool:
    """Whether its subject is something that the text before has told: "The writer still exists"."""
    verb = None if tells_change(title) else verb_of(title)
    if verb is None or not _DEFINITE.match(title) or has_name(title[:verb]):
        return False
    return len(specific_words(title[:verb])) < FEWEST_OF_SUBJECT


def _form_of(said: str) -> str:
    """How a title says it: a change, or what of its subject."""
    if tells_change(said):
        return "change named" if is_anchored(said) else "change"
    if lacks_subject(said):
        return "no subject"
    verb = verb_of(said)
    if verb is None:
        return "no verb, named" if names_in(said) else "no verb"
    subject, rest = said[:verb], said[verb:]
    if has_name(subject):
        return "named subject, named rest" if has_name(rest) else "named subject"
    words = min(len(specific_words(subject)), MOST_OF_SUBJECT)
    is_definite = "definite" if _DEFINITE.match(said) else "bare"
    return f"{is_definite} subject {words}{', named rest' if has_name(rest) else ''}"


def _starts_with_preposition(title: str) -> bool:
    return title.partition(" ")[0].lower().strip("`\"'") in PREPOSITIONS


def _has_supposition_word(title: str) -> bool:
    return not _SUPPOSED.isdisjoint(cues.words(title))


def _omits_content(title: str) -> bool:
    return _may_have(title, _UNTOLD_PARTS) and _UNTOLD.search(title) is not None


def _is_scenario(title: str) -> bool:
    return _SCENARIO.search(title) is not None


def _has_words_of_scenario(title: str) -> bool:
    return _may_have(title, _SCENARIO_PARTS) and _SCENARIO_WORDS.search(title) is not None


def _may_have(title: str, parts: tuple[str, ...]) -> bool:
    """Looking for these takes a fraction of the time of a pattern."""
    return not title.isascii() or any(map(title.lower().__contains__, parts))


def _is_demonstrative(title: str) -> bool:
    return _may_have(title, ("this", "these", "those")) and bool(_DEMONSTRATIVE.search(title))


def _is_printed(title: str) -> bool:
    is_possible = not title.isascii() or any(map(title.__contains__, _PRINTED_PARTS))
    return is_possible and _PRINTED.search(title) is not None


def without_label(title: str) -> str:
    """Removes the number of a list, and "Suggested fix:" before the statement itself."""
    if number := _LIST_NUMBER.match(title):
        title = title[number.end() :]
    has_mark = ":" in title or "-" in title or not title.isascii()
    label = _LABEL.match(title) if has_mark else None
    return title[label.end() :] if label else title


def _is_bare_list(title: str) -> bool:
    """Names in a row, without a word about them."""
    parts = _SEPARATOR.split(" ".join(title.split()))
    return len(parts) > 1 and all(len(part.split()) <= _LIST_PART_WORDS for part in parts)


def _signs(
    prefix: str, signs: Iterable[tuple[str, Callable[[str], object]]]
) -> tuple[tuple[str, Callable[[str], object]], ...]:
    return tuple((f"{prefix}{name}", has_sign) for name, has_sign in signs)


_SIGNS = _signs("sign: ", (
    ("has a predicate", has_predicate),
    ("tells a change", tells_change),
    ("tells work", tells_work),
    ("tells a step", tells_process),
    ("vague subject", has_vague_subject),
    ("is anchored", is_anchored),
    ("lacks its subject", lacks_subject),
    ("starts with a preposition", _starts_with_preposition),
    ("starts with a count", _STARTS_WITH_COUNT.match),
    ("supposed", _has_supposition_word),
    ("scenario", _is_scenario),
    ("words of a scenario", _has_words_of_scenario),
    ("untold", _omits_content),
    ("printed", _is_printed),
    ("demonstrative", _is_demonstrative),
    ("list of names", _is_bare_list),
    ("of the work", _OF_THE_WORK.search),
    ("judges", _JUDGES.search),
    ("listed thing", _LISTED_THING.search),
    ("listed step", _LISTED_STEP.search),
))  # fmt: skip
_SIGNS_OF_SAID = _signs("sign: after a place: ", (
    ("vague subject", has_vague_subject), ("is anchored", is_anchored), ("untold", _omits_content),
))  # fmt: skip
