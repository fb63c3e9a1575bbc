"""Whether an English clause says something of its subject, or only names it.

Judged by the shape of the clause: a verb that agrees with the words before it, or a verb at the
start that tells a change. Where in doubt, a clause says nothing.
"""

import re
from functools import lru_cache

from claude_mem.observer.local.any_case import AnyCase
from claude_mem.title_rules import NAME, PREPOSITIONS, lower_words, specific_words, word_set

THIRD_PERSON = word_set(
    "adds allows applies appears asks assumes blocks breaks builds calls catches causes changes"
    " checks clears closes collapses comes compares computes contains converts copies costs counts"
    " covers crashes creates decides defaults defines deletes depends detects differs disables"
    " drops duplicates emits enables ends ensures equals expects exposes exports extends extracts"
    " fails falls fetches fills finds fires fixes follows forces gets gives goes handles happens"
    " has hides holds ignores implements includes inherits injects installs keeps lacks leads leaks"
    " leaves lets links lists lives loads logs looks loses makes matches means merges misses moves"
    " needs never omits opens overrides overwrites owns parses passes patches persists picks points"
    " predates prevents prints produces provides pushes raises reads reaches rebuilds receives"
    " records reduces references refers rejects relies remains removes renames renders replaces"
    " reports requires resets resolves restores returns reuses rewrites runs saves says scans sees"
    " sends serves sets shares ships shows silences sits skips sorts spawns splits stands starts"
    " stays stops stores strips supports switches takes tells tests throws times tracks treats"
    " triggers tries turns updates uses validates verifies waits walks wants warns works wraps"
    " writes"
)
_BASE_FORMS = frozenset(
    form for verb in THIRD_PERSON for form in (verb[:-1], verb.removesuffix("es")) if len(form) > 2
) - word_set("list time count cost cause change test point cover link record report state")
_LISTED = THIRD_PERSON | _BASE_FORMS
_AROUND_WORDS = ",.:;()\"'"
_AUXILIARY = (
    r"is|are|was|were|has|have|had|does|do|did|can|cannot|could|will|must|should|may|might"
    r"|became|broke|came|caused|crashed|failed|got|kept|led|left|lost|needed|ran|threw|took|used|went"
    r"|isn't|aren't|wasn't|weren't|doesn't|don't|didn't|can't|won't|hasn't|haven't|no longer"
)
_FINITE = AnyCase(
    rf"\b(?:(?:{_AUXILIARY})\b"
    r"|(?<![-/.`])[a-z]{2,}[^s\W]s"
    r" (?=(?:the|an?|its|each|every|all|no|any|only|both|\w+ly)\b|[`\d])"
    r"|(?:still|also|only|already|now|never|always|then|currently) [a-z]{3,}s\b)",
)
_PAST = re.compile(
    r"\b[A-Za-z\u0130\u0131\u017f\u212a]{3,}[Ee][Dd] (?=(?:the|an?|its|each|every|all|any)\b|`)"
)
_RELATIVE = AnyCase(
    r",? (?:that|which|who|whose|where|how|why|what|whether|because|so that|when|if|while|until"
    r"|unless|before|after|since)\b",
)
_CODE_PASSIVE = re.compile(r"`[^`]{1,80}` ([a-z]{3,}ed)\b")  # "`light()` called twice"
# "The lamp blinks", before "because".
_LAST_VERB = re.compile(r"(?<=[a-z`] )[a-z]{2,}(?:[^s\W]s|ed)$")
_SUBORDINATE = re.compile(
    r"(?:when|if|since|while|after|before|once|although|as|with|without|because)\b[^,]{1,120}, ",
    re.IGNORECASE,
)
_NO_OBJECT = PREPOSITIONS | {"to", "and", "so", "as"}
_IRREGULAR_PAST = word_set(
    "built cut hid kept made put rebuilt reset rewrote set shrank split wrote"
)
# Done while working; no change comes of it.
_PROCESS = word_set(
    "addressed analyzed analysed asked checked committed compared completed confirmed continued"
    " finished found identified investigated launched looked merged opened posted pushed rebased"
    " researched reviewed searched spawned started tested traced tried validated verified waited"
)
# Of these no noun of the trade has the form: "Stop hook", "Show page".
_CHANGE = re.compile(
    r"(?:add|allow|change|convert|create|disable|drop|enable|extract|fix|implement|improve"
    r"|introduce|move|prevent|reduce|refactor|remove|rename|replace|restore|rewrite|simplify"
    r"|update|upgrade)(?=\s)",
    re.IGNORECASE,
)
_WORK = re.compile(
    r"(?:align|apply|avoid|bump|clarify|clean|clear|collect|configure|consolidate|deduplicate"
    r"|deprecate|detect|document|emit|ensure|expand|expose|extend|filter|handle|hide|include"
    r"|inline|keep|limit|load|log|make|merge|migrate|normali[sz]e|parse|pass|persist|port|preserve"
    r"|propagate|redesign|render|require|resolve|retry|return|reuse|route|save|send|set|show|skip"
    r"|sort|split|stop|store|strip|support|switch|sync|tighten|trim|turn|unify|validate|wire"
    r"|wrap|write)(?=\s)",
    re.IGNORECASE,
)
_MEANS = re.compile(r"(?:used|using|relied on|relying on|switched to)\b", re.IGNORECASE)
# Nouns that stand for what the text before has told.
_STAND_INS = word_set(
    "angle tradeoff trade-off variation difference task tasks monitor verifier agent agents"
    " assertion bullet call calls check checks command comment comments component"
    " count diff entry example field fields function hash helper helpers image instructions label"
    " layout line lines literal message method mode name names number numbers page pages parameter"
    " notification pattern prompt row rows script section sentence spec string struct suite text"
    " user users value values variable word words failure failures reporter reviewer caller callers"
)


def has_predicate(title: str) -> bool:
    """Whether it tells a change, or its main clause has a verb after a subject."""
    return tells_change(title) or verb_of(title) is not None


def tells_work(title: str) -> bool:
    """Whether a task or a request starts with what is to be done."""
    return tells_change(title) or bool(_WORK.match(title) and len(title.split(None, 2)) > 2)


def is_proposal(title: str) -> bool:
    """Whether the change that it tells is to be made: "Add a retry", not "Added a retry"."""
    return bool(_CHANGE.match(title))


def tells_means(title: str) -> bool:
    """Whether it starts with how something was done, and not with what: "Used a lock so that …"."""
    return _MEANS.match(title) is not None


def tells_process(title: str) -> bool:
    """Whether it starts with a step of the work: "Confirmed that the lamp burns"."""
    return next(iter(lower_words(title[:40])), "") in _PROCESS


@lru_cache(maxsize=256)  # like the verb, several signs of a title ask for it
def tells_change(title: str) -> bool:
    """Whether it starts with what was done: "Added a retry to the upload", "Add a retry"."""
    words = title.split(None, 2)
    if len(words) < 3 or words[1].lower() in _NO_OBJECT or words[1].endswith(":"):
        return False
    first = words[0].lower()
    is_past = first in _IRREGULAR_PAST or (
        len(first) > 4 and first.isalpha() and first.endswith("ed")
    )
    return (is_past and first not in _PROCESS) or bool(_CHANGE.match(title))


def has_verb(title: str) -> bool:
    """Whether it says something: "Lamps (old ones)" does not."""
    first = title.split(None, 1)[0].lower()
    return first in THIRD_PERSON or tells_change(title) or verb_of(title) is not None


def has_vague_subject(title: str) -> bool:
    """Whether the words before the verb stand for something told before: "The failures are …"."""
    verb = verb_of(title)
    if verb is None or tells_change(title):
        return False
    subject = title[:verb]
    if NAME.search(subject):
        return False
    return not any(
        word not in _STAND_INS and word not in THIRD_PERSON and not word.endswith("ly")
        for word in specific_words(subject)
    )


@lru_cache(maxsize=256)  # each check of a title asks for it
def verb_of(title: str) -> int | None:
    """Where the verb of the main clause begins; None if there is none, or no subject before it."""
    start = condition.end() if (condition := _SUBORDINATE.match(title)) else 0
    relative = _RELATIVE.search(title, start + 1)
    end = relative.start() if relative else len(title)
    if passive := _CODE_PASSIVE.match(title, start):
        return passive.start(1)
    verbs = _FINITE.search(title, start + 1, end), _PAST.search(title, start + 1, end)
    places = [verb.start() for verb in verbs if verb]
    if relative and (last := _LAST_VERB.search(title, start + 1, end)):
        places.append(last.start())
    places += _listed_verbs(title, start, end)
    return min((place for place in places if place > start), default=None)


def _listed_verbs(title: str, start: int, end: int) -> list[int]:
    places: list[int] = []
    words = [word.strip(_AROUND_WORDS) for word in title[:end].lower().split()]
    if _LISTED.isdisjoint(words):
        return places
    previous = ""
    for word in re.finditer(r"\S+", title[:end]):
        text = word[0].lower().strip(_AROUND_WORDS)
        is_plural = previous[-1:] == "s" != previous[-2:-1] and text in _BASE_FORMS
        if word.start() > start and (text in THIRD_PERSON or is_plural):
            places.append(word.start())
            break
        previous = text
    return places
