"""What a statement is about, which values it names, and what it does: demand, forbid, withdraw,
report a problem or its fix. The comparison of facts rests on it (`supersession`)."""

import re
from dataclasses import dataclass
from functools import lru_cache

from claude_mem.store.fact_comparison.comparison_words import CLASS_OF, LIGHT, QUALIFIERS, SYNONYM

LONGEST_COMPARED = 600
_CACHED = 4_096

_UNITS = (
    r"ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|days?|weeks?|months?"
    r"|kb|mb|gb|tb|kib|mib|gib|px|%|percent"
)
_MEASURE = re.compile(rf"\b(\d+(?:\.\d+)?)\s?({_UNITS})(?![\w-])")
_ONE = re.compile(r"\b(?:one|an?) (?=(?:second|minute|hour|day|week|month)\b)")
_DURATION = re.compile(r"\d[\d.]{0,9}(?:ms|mi|mo|s|se|m|h|hr|ho|da|we)")
_SIZE = re.compile(r"\d[\d.]{0,9}(?:[kmgt]i?b|[kmgt]i)")
_CLOCK = re.compile(r"\d{1,2}:\d\d")
# The language Go, not the verb.
_GO = re.compile(r"\bgo (?=(?:files?|code|tests?|templates?|modules?|packages?|services?)\b)"
                 r"|(?<=\bin )go(?=[.,;:]|$)")  # fmt: skip
# The adverb and the verb, not the task runners.
_NO_RUNNER = re.compile(r"(?<!with )(?<!use )(?<!using )(?<!to )(?<!of )\bjust (?!for\b)"
                        r"|\bmake (?=(?:that|the|it|an?|this|them|all|every|sure)\b)")  # fmt: skip
_PHRASES = (
    (re.compile(r"\bcheck(?:ed|ing|s)? in(?:to)?\b"), "commit"),
    (re.compile(r"\bany types?\b|\buse any(?= in\b|$)"), "anytype"),  # of TypeScript
    (re.compile(r"\bby hand\b"), "manually"),
    (re.compile(r"\bafter all\b|\b(?:in|on|for) this (?:repo|repository|project)\b"), " "),
)
_TO_WRITE = re.compile(
    r"(?:^|\b(?:always|never|don't|not|to|please|and) )(?:write|read)\b|\b(?:written|wrote)\b"
)
_TOKEN = re.compile(r"[\w@/~.-][\w.:@+#'/{}*=-]*+", re.ASCII)
_NUMBER = re.compile(r"\d[\d.]*e[+-]?\d+|v?\d[\d.,:_x-]*[a-z%]{0,4}|:\d+")
_FILE = re.compile(r"[\w.-]*\w\.[a-z][a-z0-9]{1,9}")
_ENDINGS = ("ations", "ation", "ings", "ing", "ments", "ies", "ied", "ed", "es", "s")
_NUMBER_WORDS = {
    word: str(number)
    for number, word in enumerate(
        ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"), start=2
    )
}

_LIFTED = (
    r"\b(?:no (?:more )?need\b"
    r"|no longer (?:need|necessary|required|have to|has to|must|applies|apply|valid|wanted)"
    r"|not? (?:need|necessary|required) .{0,60}any ?more"
    r"|(?:do not|don't|need not|needn't|doesn't|does not) (?:need|have|apply|hold|care|insist)\b"
    r"|need not|needn't|not (?:necessary|required|needed)|unnecessary|optional"
    r"|(?:may|can|ok(?:ay)?|fine|free|allowed|go ahead) .{0,60}without \w+ing)\b"
)
_PERMITS = (
    r"\b(?:you|we|it|everyone|agents?)(?:'s| is| are|'re)? (?:may|can|allowed|free|ok(?:ay)?|fine"
    r"|permitted|welcome)\b|\b(?:ok(?:ay)?|fine|allowed|permitted|free|all ?right|acceptable)"
    r" (?:now |again )?(?:to|for)\b|\b(?:is|are) (?:now |again )?(?:ok(?:ay)?|fine|allowed"
    r"|permitted|acceptable|welcome)\b|\bfeel free\b|\bgo back to\b|\bno longer (?:forbidden"
    r"|prohibited|banned|off[- ]limits|disallowed)|\b(?:ban|freeze|restriction|embargo|prohibition)"
    r" .{0,60}(?:lifted|over|gone|ended)"
)
_CANCELS = (
    r"^(?:ok(?:ay)?,? |please )?(?:forget|never ?mind|disregard) "
    r"|\b(?:forget|ignore|skip|drop|scrap|scratch|disregard|cancel|withdraw|retract|undo|lift|revoke"
    r"|abandon|discard|never ?mind)\b.{0,40}\b(?:rule|instruction|what i said|requirement|request"
    r"|convention|policy|guideline|ban|constraint|preference|thing about|my remark|restriction)\b"
    r"|\b(?:rule|instruction|requirement|policy|convention|ban|restriction|preference)\b.{0,80}"
    r"\b(?:no longer|is gone|is off|is over|withdrawn|lifted|dropped|obsolete|cancelled|revoked"
    r"|doesn't apply|does not apply|outdated|void)\b"
    r"|\bi (?:take|took) (?:it |that )?back\b|\bi changed my mind\b"
)
_ENDS = r"\b(?:no longer|any ?more|any longer|stop(?: \w+ing)?|cease|quit|enough)\b"
_FORBIDS = (
    r"\b(?:never|don't|dont|do not|must not|mustn't|should not|shouldn't|may not|cannot|can't|avoid"
    r"|forbidden|prohibited|banned|not allowed|refrain|off[- ]limits|stop|without ever|no"
    r"|skip(?:s|ping)?|omit(?:s|ting)?|bypass(?:es|ing)?)\b"
)
_NEVER_SKIP = re.compile(r"\b(?:never|don't|dont|do not|must not|mustn't|no|not|cannot|can't)"
                         r" (?:skip|omit|bypass)(?:p?ing|ting)?\b")  # fmt: skip
_NO_PROBLEM = re.compile(r"(?<=\bis )no (?:problem|issue)\b|(?<=\bare )no (?:problem|issue)\b")
_NOT_WITHOUT = re.compile(r"\b(?:no|never|don't|do not|not|nothing)\b.{1,80}\b(?:without|unless"
                          r"|until|before|except)\b")  # fmt: skip
_PROBLEM = (
    r"\b(?:fails?|failed|failing|failure|broken|breaks?|errors?|flaky|crash\w*|leaks?|hangs?|hung"
    r"|stuck|times? out|timeouts?|bugs?|missing|not found|don't work"
    r"|cannot|can't|slow|wrong|corrupt\w*|unavailable|down|red|denied|refused|deadlock\w*|race"
    r"|does(?:n't| not)|won't|segfaults?|unable|exceptions?|panics?|not installed|loses?|lost)\b"
)
_FIXED = (
    r"\b(?:fixed|works? (?:now|again|fine)|now (?:works?|passes"
    r"|succeeds|runs|builds|starts|installed|stable|green|available)|works|passes|pass again"
    r"|passing|(?:starts|runs|builds|installs|loads|connects|responds|renders) (?:again|fine|now)"
    r"|resolved|solved|succeeds|no longer (?:fails?|crash\w*|leaks?|hangs?|flaky|broken"
    r"|breaks?|times? out|slow|missing|occurs?|happens?|loses?|throws?|deadlocks?|errors?"
    r"|stuck|down|unavailable|panics?|corrupts?|duplicates?|appears?)|repaired|cured|back up|green"
    r"|stable(?: now)?|installed now|is (?:now )?installed|is gone|are gone|went away|healthy)\b"
)
_CHANGES = (
    r"\b(?:moved|switched|switch|migrated|replaced?|replaces|instead|renamed|reverted|changed"
    r"|dropped|went back|go back|going back|upgraded|bumped|downgraded|raised|lowered|rather than"
    r"|no longer|any longer|any ?more|from now on|now|away from|abandoned"
    r"|swapped|became|becomes|increased|reduced)\b"
)
_SWITCHES = r"\b(?:switched|migrated|moved|went back|changed) (?:back )?to\b"
_NOT_FIXED = re.compile(
    r"\b(?:not|never|isn't|aren't|wasn't|nearly|almost|partly|partially|half|to be|should be"
    r"|must be|will be|needs?|once|if|when|until) (?:\w+ ){0,2}?(?:fixed|resolved|solved|done"
    r"|works?|passes|passing|green|stable)\b|\bstill\b"
)
_DONE = r"\b(?:done|finished|completed?|implemented|written|added|applied|merged|landed|in place)\b"
# What follows explains a problem or its fix.
_REASON = re.compile(r",? (?:because|since|by|due to|thanks to|after)\b.*")
_PAIR = re.compile(r"\b([\w-]+) (?:and|or) ([\w-]+)")
_COUNTED = re.compile(r"\b(\d+|two|three|four|five|six|seven|eight|nine|ten)-(?=[a-z])")
_FORMER = re.compile(
    r"\b(?:instead of|rather than|replaced|replaces|replace|dropped|drop|away from|moved from"
    r"|switched from|migrated from|went from|no longer(?: use| on| in| with)?|abandoned|swapped"
    r"|reverted|removed|renamed|off|got rid of|changed from|from|not)"
    r"(?: in| on| with| at)? (?:the )?([\w@./:+-]+)"
)
_PATTERNS = {
    name: re.compile(pattern)
    for name, pattern in (
        ("lifted", _LIFTED), ("permits", _PERMITS), ("cancels", _CANCELS), ("ends", _ENDS),
        ("forbids", _FORBIDS), ("problem", _PROBLEM), ("fixed", _FIXED), ("changes", _CHANGES),
        ("switches", _SWITCHES), ("done", _DONE), ("without", r"\bwithout\b"),
    )
}  # fmt: skip
# Words of the patterns above name no subject either.
_MARKERS_WORDS = """\
skip omit bypass
forget ignore drop scrap scratch disregard cancel withdraw retract undo lift revoke abandon
discard instruct instruction requirement convention guideline ban constraint restriction apply
applies mind said say lifted gone off over obsolete stop cease quit enough free allowed allow
permitted welcome feel forbidden prohibited avoid refrain don't dont mustn't shouldn't can't
cannot needn't necessary unnecessary optional hold care insist moved move switched switch migrat
migrate migrated replace replaced rename renamed revert reverted changed swapped became become
upgrad upgrade upgraded bumped bump raised raise lowered lower increased reduced henceforth
forward going future from fixed resolv resolve resolved solv solve solved pass passe passing
green stable repaired cured happen occur problem issue issues bug error fail fails flaky wrong
went been away said told remark request back thing about acceptable henceforth whole entire
directly straight away means mean"""
_MARKERS = frozenset(_MARKERS_WORDS.split())


@dataclass(frozen=True, slots=True)
class Wording:
    topic: frozenset[str]  # stems of the words that name the subject
    qualifiers: frozenset[str]  # of them, those that tell one of several things
    values: frozenset[tuple[str, str]]  # (class, value): numbers, paths, files, rival names
    former: frozenset[str]  # what the statement says was before
    marks: frozenset[str]  # names of `_PATTERNS`
    pairs: frozenset[tuple[str, str]]  # stems of "one and other"
    demands_by_ban: bool  # "no commit without a test"

    def has(self, *names: str) -> bool:
        return not self.marks.isdisjoint(names)

    @property
    def forbids(self) -> bool:
        return self.has("forbids") and not self.demands_by_ban

    @property
    def excludes(self) -> bool:
        return self.has("without") and not self.demands_by_ban

    def of_class(self, group: str) -> frozenset[str]:
        return frozenset(value for name, value in self.values if name == group)

    @property
    def classes(self) -> frozenset[str]:
        return frozenset(name for name, _ in self.values)

    @property
    def terms(self) -> frozenset[str]:
        return self.topic | {value for _, value in self.values}


@lru_cache(_CACHED)
def read_wording(text: str) -> Wording:
    text = " ".join(text[:LONGEST_COMPARED].lower().replace("’", "'").replace("`", " ").split())
    text = _NO_PROBLEM.sub("fine", _NEVER_SKIP.sub("always", text))
    marks = _marks(text)
    is_verb = bool(_TO_WRITE.search(text))
    for pattern, plain in _PHRASES:
        text = pattern.sub(plain, text)
    text = _NO_RUNNER.sub(" ", text)
    text = text.replace("package manager", " ").replace("pull request", "pullrequest")
    if marks & {"problem", "fixed"}:
        text = _REASON.sub("", text)
    text = _GO.sub("golang ", text)
    text = _COUNTED.sub(r"\1 ", text)
    text = _ONE.sub("1 ", text)
    text = _MEASURE.sub(lambda match: f"{match[1]}{match[2][:2]}", text)
    topic: set[str] = set()
    values: set[tuple[str, str]] = set()
    for token in _TOKEN.findall(text):
        word = token.strip(".:,'\"-") if not token.startswith("-") else token.lstrip("-")
        if (value := _value(word)) is not None:
            values.add(value)
        else:
            topic.update(_stems(word))
    if is_verb and any(group == "spoken language" for group, _ in values):
        topic -= _VERB_STEMS  # "Write comments in English": comments are in English
    names = [name.strip(".,:") for name in _FORMER.findall(text)]
    former = frozenset(names) | frozenset(map(canonical, names))
    return Wording(
        frozenset(topic),
        frozenset(topic & _QUALIFYING_STEMS - (_VERB_STEMS if is_verb else frozenset())),
        frozenset(values),
        former,
        marks,
        frozenset((canonical(first), canonical(second)) for first, second in _PAIR.findall(text)),
        bool(_NOT_WITHOUT.search(text)),
    )


def _marks(text: str) -> frozenset[str]:
    marks = {name for name, pattern in _PATTERNS.items() if pattern.search(text)}
    return frozenset(marks - {"fixed", "done"} if _NOT_FIXED.search(text) else marks)


def _value(word: str) -> tuple[str, str] | None:
    name = word if word in CLASS_OF else word.removesuffix("s")
    if name in CLASS_OF:
        return CLASS_OF[name], name
    if stem_of(word) in _MERGING:
        return CLASS_OF["rebase"], _MERGING[stem_of(word)]
    if word in _NUMBER_WORDS:
        return "number", _NUMBER_WORDS[word]
    if _NUMBER.fullmatch(word):
        return _class_of_number(word), word.removeprefix("v").lstrip(":")
    if "/" in word:
        return "path", word.rstrip("/").removeprefix("./")
    return ("file", word) if _FILE.fullmatch(word) else None


def _class_of_number(word: str) -> str:
    """A duration is no other value of a size."""
    for name, pattern in (("duration", _DURATION), ("size", _SIZE), ("clock", _CLOCK)):
        if pattern.fullmatch(word):
            return name
    return "number"


def _stems(word: str) -> list[str]:
    parts = re.split(r"[-_.:+#@=']", word) if "'" not in word else [word]
    return [
        stem
        for part in parts
        if len(part) > 1 and part not in LIGHT and part not in _MARKERS
        if (stem := canonical(part)) not in LIGHT and stem not in _MARKERS
    ]


def canonical(word: str) -> str:
    stem = stem_of(word)
    return SYNONYM.get(word) or _STEM_SYNONYM.get(stem, stem)


def stem_of(word: str) -> str:
    """Returns a crude stem, the same for all forms of the words that statements use."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            word = word[: -len(ending)]
            if ending in ("ies", "ied"):
                return word + "y"
            if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "sl":
                word = word[:-1]
            break
    return word.removesuffix("e") if len(word) > 3 else word


_STEM_SYNONYM = {stem_of(word): first for word, first in SYNONYM.items()}
_QUALIFYING_STEMS = frozenset(canonical(word) for word in QUALIFIERS)
_VERB_STEMS = frozenset(map(canonical, ("write", "read")))
_MERGING = {stem_of(name): name for name in ("squash", "rebase")}  # they are verbs too
