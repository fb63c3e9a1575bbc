"""Whether a title can be understood alone, by someone who has not seen its turn.

In any language a title is judged by its shape: length, brackets, names, numbers. Only a title in
English is also judged by its words.
"""

import re
import string
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain
from typing import Literal, NamedTuple, get_args

SHORTEST, LONGEST = 8, 150
FEWEST_LETTERS = 4
FEWEST_COMMAS, WORDS_OF_ITEM = 4, 2  # of an enumeration
ENGLISH_SHARE = 0.1
NOTES_SHARE, FEWEST_NOTED_WORDS = 0.12, 8

_WIDE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0e7f]")
_LETTER = re.compile(r"[^\W\d_]")
_FOUR_LETTERS = re.compile(rf"[^\W\d_]{{{FEWEST_LETTERS}}}")
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
# For `bytes.translate`: all but letters in lower case and apostrophes becomes a space.
_LETTERS = bytes(
    code if chr(code) in string.ascii_lowercase + "'" else ord(" ") for code in range(256)
)
_ASCII = bytes(range(128))
# What the client or a tool wrote, and no sentence.
_MARKUP = re.compile(r"[<>|{]|\[Request interrupted|\(a background task|https?://\S+$")
_COMMAND = re.compile(r"/[\w:-]+(?:\s|$)")
_OPEN_ENDS = (*",:;([{—–+=&/-", "...", "…")
NAME = re.compile(
    r"`[^`\n]{2,120}`|--[a-z][\w-]{1,40}|#\d{1,7}\b|\b[A-Z]{1,10}-\d{1,7}\b"
    r"|\b(?:\w{1,60}+(?:[./]\w[\w./-]{0,100}+|\(\))"
    r"|[a-z]{1,40}+[A-Z]\w{1,60}+|[A-Z][a-z]{1,40}+[A-Z]\w{1,60}+|[A-Za-z]{1,40}_\w{1,60}"
    r"|[A-Z]{2,40}\b)"
)


def word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


# The commonest words of English that few other languages have.
_FUNCTION_WORDS = word_set(
    "the of and with that this is for are not it to from was be by you now when which have has"
    " should would can will but they there what your i'm it's don't doesn't"
)
_REFERRING = word_set(
    "this that these those it its it's that's they them he she but and so or nor otherwise"
    " previously however also both either neither there here such same another was were is are has"
    " had you your i i'm i've i'll i'd we we've we'll my our me let let's which who whose where"
    " because rather instead than to not then still yet only even though unless until whether"
)
_SUBORDINATE = word_set("when if since while after before once although as")
PREPOSITIONS = word_set(
    "from in with of by for per on at under via about through despite into onto without within"
    " across between during towards toward against like"
)
_LAST_WORDS = word_set(
    "the a an of to in on at for with and or from by is are was were be been that which who as into"
    " than but so if when while because its their this these those includes including contains"
    " following covers like via per not no only it now both there here above below documents"
)
# Words of any work: with these alone a title does not say what it is about.
_GENERIC = word_set(
    "a about above across actually add added adding adds adjust after again agree ahead all allow"
    " already also am an analysis analyze and answer any apply approach approve are as ask at"
    " available back bad based be because before begin being below better big both bug bugs but by"
    " can cannot case cases cause change changed changes check checked checking clean cleanup"
    " clear code commit commits committed complete completed confirm confirmed continue continuing"
    " correct could create created current delegate details did do does doing done draft each edit"
    " edits either else ensure error errors every everything exactly expected explain fail failed"
    " failing fails feature feedback file files final find finding findings fine finish finished"
    " first fix fixed fixes fixing follow following for found from full fully further get give go"
    " going good great had handle has have help here how i if implement implementation implemented"
    " implementing improve improvements in into investigate investigation is issue issues it its"
    " item items job just keep key know last later left let like list look looked looking looks"
    " made main make makes making manually many may me mean means merge merged minor missing more"
    " most move much must my need needed needs new next no not note notes nothing now of ok okay"
    " old on once one ones only open option options or other our out over overview own part pass"
    " passed passes passing path perfect phase plan point possible pr present problem problems"
    " proceed project propose proposed proposal push pushed put question questions quick read"
    " ready real really recommendation recommended remaining remove removed report request"
    " requested resolve resolved rest result results resume retry review reviewed right root run"
    " running runs same save see should show simple single so solution solve solved some something"
    " specific stage start started state status step steps still stop stuff successfully such"
    " suggest suggested summary sure task tasks team test tested testing tests than that the their"
    " them then there these they thing things think this those three through to today together too"
    " try trying two type under update updated updates up us use used user uses using valid"
    " validate verification verified verify version very via wait want was way we well went were"
    " what when where whether which while who why will with without work worked working works"
    " worth would write wrong yes yet you your critical important per vs answers everyone whole"
    " different thanks please can't don't doesn't i'm i'll it's let's that's we're isn't wasn't"
    " didn't won't shouldn't"
)
# Names of the trade that every language uses, and words that other languages have as well.
_NOTED_WORDS = _GENERIC - word_set(
    "commit commits test tests testing push merge code bug bugs file files error errors status"
    " review update feature job team option options version plan draft a am an do go has i in is me"
    " no on or so two us was we will"
)
# A pronoun whose noun is missing: "write that down", "fix it".
_BARE_PRONOUN = re.compile(
    r"\b(?:it|them|this|that|these|those)(?:$|[:,;]|\s+[—–-]|\s+(?:down|up|out|in|to|for|with|on|now|again|too"
    r"|instead|as|from|at|into|back|off|over)\b)",
    re.IGNORECASE,
)
# "never renders one", "the six new ones": of what, only the text before has told.
_UNNAMED_ONE = re.compile(
    r"\b(?:the|these|those) (?:[a-z]+ ){0,2}ones\b"
    r"|\b(?!(?:new|old|single|each|every|this|that|the|no|an?|first|last|next|other|another|by|than"
    r"|to|as|only|\d+) )[a-z]+ ones?\W*$",
    re.IGNORECASE,
)
_ASKS = re.compile(
    r"(?:which|what|why|who|can|can't|could|should|shall|would|will|do|does|did|is|are|isn't"
    r"|how (?:do|does|did|can|could|should|would|is|are|about|many|much))\b",
    re.IGNORECASE,
)
# "When the lamp burns, if the fuse holds": no main clause.
_ONLY_CONDITIONS = re.compile(
    r"(?:when|if|since|while|after|before|once|although|as|with|without)\b[^,]{1,120},"
    r"\s+(?:if|when|while|since|because|although|unless|especially|including)\b",
    re.IGNORECASE,
)
_CODE_SPAN = re.compile(r"`[^`]{0,200}`")
_PAIRED = re.compile(r"[`\"“”()\[\]{}（）「」]")
_BRACKET = re.compile(r"[()\[\]{}（）「」]")
_BRACKETS = ("()", "[]", "{}", "（）", "「」")
_IN_BRACKETS = re.compile(r"\([^()]{0,200}\)")
# Perhaps behind a label; a span of code in two backticks may have one within it.
_CODE_ALONE = re.compile(
    r"(?:[A-Z][a-z]{1,20}: )?(?:`[^`]{0,200}`|``(?:[^`]|`(?!`)){0,200}``)\W{0,3}$"
)
_EMPTY = re.compile(
    "|".join((
        r"(?:let(?:'s| me| us)|here(?:'s| is| are)|now (?:i|let|we)|want me to|shall i|should i"
        r"|would you|do you want|feel free|you're welcome|looking (?:at|good))\b",
        r"(?:yes|no|ok(?:ay)?|hm+|ah|oh|uh|well|wait|sure|thanks?|great|perfect|right|good|nice|lgtm|ack|true|correct"
        r"|agreed|understood|confirmed)\b\s?[,.!:—–]",
        r"(?:waiting (?:on|for)|(?:double|re)[- ]?check|all set|nothing (?:left|local|to)\b)",
        r"lines? \d{1,6}\b(?! of code)",
        r"(?:the )?\w{1,20} (?:is|are|was) (?:now )?(?:ready|live|up|available|in place|here)\b",
        # a status or a count
        r"(?:all|both|everything|\d[\d,]*) (?:\S+ ){0,3}(?:pass(?:ed|es|ing)?|done|clean|green"
        r"|committed|pushed|complete[d]?|good|set|fixed|addressed|updated|changed|resolved)\b\W*$",
        r"(?:the )?(?:build|tests?|lint\w*|type ?check\w*|ci|suite)\b.{0,40}"
        r"\b(?:pass\w*|clean|succe\w+|green)\b\W*$",
        r"(?:solved|fixed|done|committed|pushed|merged|rebased|deployed|released|reverted)"
        r"(?:,? (?:and|as|to|on|in|at|locally|with) .{0,60}| ?\(.{0,60})?\W*$",
        r"\d[\d,]* (?:\w+ )?(?:tests?|files?|changes?|errors?|warnings?|issues?|commits?|lines?"
        r"|items?|tasks?|steps?|insertions?|bytes|findings?|problems?)\W*$",
        r"(?:pr|pull request|commit|branch|tag|release) (?:#?\d+ |is |was |has been )*"
        r"(?:created|open(?:ed)?|merged|pushed|ready|updated|up)\b",
        r"(?:the )?(?:audit|clean-?up|implementation|merge|migration|rebase|refactoring|review)"
        r" (?:is |was )?(?:clean|completed?|done|finished)\b",
        # a measurement, of what is not said: "11 seconds for everything"
        r"[~≈]?\d[\d.,]*(?:[–-]\d[\d.,]*)? ?"
        r"(?:ms|s|secs?|seconds?|min|minutes?|hours?|[KMG]i?B|%|x)\b",
        r"no (?:additional |further |other |more |new )?(?:changes?|work|issues?|errors?|action"
        r"|findings?)\b",
        r"(?:working tree|branch) (?:is )?(?:clean|up to date)",
        r"(?:step|phase|task|part|option|round|batch|item) ?\w{1,3}\b(?:\W*$|:)",
        r"(?:\d+|one|two|three|four|five|six|all) of (?:\d+|the)\b",
        r"agent .{0,80}\b(?:finished|completed|failed)\b",
        r"(?:the|that|this) (?:fix|change|issue|problem|bug|cause|reason|other|same|first|second"
        r"|last)\b(?: (?:is|was|one|thing)s?)?\W*$",
    )),
    re.IGNORECASE,
)  # fmt: skip


TopicKind = Literal["asked", "plan", "branch", "files", "about"]  # where a topic is from


class Topic(NamedTuple):
    """What a turn was about."""

    kind: TopicKind
    text: str  # without square brackets


_TOPICS = re.compile(rf" \[(?:{'|'.join(get_args(TopicKind))}): [^\[\]]+\]$")


def with_topics(title: str, topics: Sequence[Topic]) -> str:
    """ "It stays at 20 watts [asked: how bright is the lamp?; files: lamp.py]"."""
    told = "; ".join(f"{topic.kind}: {topic.text}" for topic in topics)
    return f"{title} [{told}]" if told else title


def without_topics(title: str) -> str:
    return _TOPICS.sub("", title)


def stands_alone(title: str, *, is_english: bool | None = None) -> bool:
    """Whether to show it. Where the language of its turn is unknown, plain ASCII is English."""
    english = title.isascii() if is_english is None else is_english
    return is_complete(title, is_english=english) and names_subject(title, is_english=english)


def is_complete(title: str, *, is_english: bool) -> bool:
    """Whether it is a clause of its own: not cut, no command, no reply, no count."""
    if not width(title) >= SHORTEST or len(title) > LONGEST:
        return False
    if _MARKUP.match(title) or _COMMAND.match(title) or title.endswith(_OPEN_ENDS):
        return False
    if _CODE_ALONE.match(title) or not is_balanced(title) or not _has_letters(title):
        return False
    if count_words(title) < 2 or _is_enumeration(title):
        return False
    return not is_english or _is_english_clause(title)


def _is_enumeration(title: str) -> bool:
    """Whether it lists things, perhaps under a label, and says nothing of them."""
    if title.count(",") < FEWEST_COMMAS:
        return False
    items = _IN_BRACKETS.sub("", title).split(": ", 1)[-1].split(",")
    short = sum(len(item.split()) <= WORDS_OF_ITEM for item in items)
    return len(items) > FEWEST_COMMAS and short >= len(items) - 1


def _has_letters(title: str) -> bool:
    return bool(_FOUR_LETTERS.search(title)) or len(_LETTER.findall(title)) >= FEWEST_LETTERS


def names_subject(title: str, *, is_english: bool) -> bool:
    """Whether it says what it is about: by a name, or by a word that not every work has."""
    return not is_english or has_name(title) or bool(specific_words(title))


def has_name(title: str) -> bool:
    """Whether it names a file, an identifier, an option, a ticket or the like."""
    return bool(names_in(title))


@lru_cache(maxsize=64)  # several checks of a title ask for them
def names_in(title: str) -> tuple[str, ...]:
    return tuple(NAME.findall(title))


def specific_words(title: str) -> list[str]:
    """Returns the words that not every work has."""
    return [word for word in lower_words(title) if len(word) > 2 and word not in _GENERIC]


def is_english_text(text: str) -> bool:
    """Whether a text of some sentences is mostly English; a text without words is not."""
    words = lower_words(text[:4_000])
    common = sum(word in _FUNCTION_WORDS for word in words)
    if len(words) > 0 and common >= ENGLISH_SHARE * len(words):
        return True
    # Notes leave out articles and verbs: "Task B verified, waiting on tests".
    of_work = sum(word in _NOTED_WORDS for word in words)
    return len(words) >= FEWEST_NOTED_WORDS and of_work >= NOTES_SHARE * len(words)


def width(text: str) -> int:
    """The length, where a character of a script without spaces counts as half a word."""
    return len(text) + 2 * len(_WIDE.findall(text)) if not text.isascii() else len(text)


def count_words(text: str) -> int:
    """Counts words; in a script without spaces, about two characters make a word."""
    if text.isascii():
        return len(text.split())
    return len(text.split()) + (width(text) - len(text)) // 4


def _is_english_clause(title: str) -> bool:
    words = title.lower().replace("’", "'").split()
    first, last = words[0].strip("\"'(,.:;!?"), words[-1].strip("\"').:;!?,")
    if first.split("'", 1)[0] in _REFERRING or first in _REFERRING or last in _LAST_WORDS:
        return False
    if (first in _SUBORDINATE or first in PREPOSITIONS) and "," not in title:
        return False
    if _ASKS.match(title) or _ONLY_CONDITIONS.match(title) or _UNNAMED_ONE.search(title):
        return False
    if _BARE_PRONOUN.search(title) and not NAME.search(title):
        return False
    return not _EMPTY.match(title) and " I " not in f" {title} "


def lower_words(text: str) -> list[str]:
    lowered = text.lower().replace("’", "'")
    if not lowered.isascii() and _has_letters_beyond_ascii(lowered):
        return _WORD.findall(lowered)
    # Twice as fast as the pattern, which is needed for words with an apostrophe only.
    words = lowered.encode("ascii", "replace").translate(_LETTERS).decode("ascii").split()
    if "'" not in lowered:
        return words
    parts = (_WORD.findall(word) if "'" in word else (word,) for word in words)
    return list(chain.from_iterable(parts))


def _has_letters_beyond_ascii(text: str) -> bool:
    beyond = text.encode("utf-8", "surrogatepass").translate(None, _ASCII)
    return any(map(str.isalnum, set(beyond.decode("utf-8", "surrogatepass"))))


def is_balanced(text: str) -> bool:
    """Whether every code span, quotation and bracket is closed. Brackets in code do not count."""
    if not _PAIRED.search(text):
        return True
    if text.count("`") % 2 or text.count('"') % 2 or text.count("“") != text.count("”"):
        return False
    if not _BRACKET.search(text):
        return True
    prose = _CODE_SPAN.sub("", text)
    return all(_closes(prose, pair) for pair in _BRACKETS)


def _closes(text: str, pair: str) -> bool:
    count = text.count(pair[0])
    if count != text.count(pair[1]):
        return False
    depth = 0
    for character in text if count else "":
        depth += (character == pair[0]) - (character == pair[1])
        if depth < 0:
            return False
    return depth == 0
