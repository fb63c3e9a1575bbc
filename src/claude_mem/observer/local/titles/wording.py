"""Titles from plans, commits, sentences, requests and rules, a complete clause and never part of
one; from the edits themselves; and what a turn was about, for a title that may not be understood
without it.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterator
from itertools import islice

from claude_mem.observer.local.any_case import AnyCase
from claude_mem.observer.local.content_words import content_words, novelty
from claude_mem.observer.local.empty_phrases import is_empty_phrase, without_opening
from claude_mem.observer.local.evidence import TurnEvidence, UserRequest
from claude_mem.observer.local.markdown import sentences, width, without_markup
from claude_mem.observer.local.titles.signs import is_anchored
from claude_mem.observer.local.tool_uses import FileWork, file_name
from claude_mem.text import COLONS, QUESTION_MARKS, one_line, shorten
from claude_mem.title_rules import (
    NAME,
    PREPOSITIONS,
    Topic,
    TopicKind,
    count_words,
    is_balanced,
    is_complete,
    names_in,
    specific_words,
)
from claude_mem.types import BRANCH, Turn

LONGEST_TITLE, LONGEST_PLAN_TITLE = 100, 150
LONGEST_RULE, LONGEST_CUT_RULE = 120, 150
SHORTEST_TITLE = 8
LONGEST_EDIT = 150
MOST_NAMES = 2  # of what an edit defines, or of what a turn was about
READ_END = 12  # characters: the longest word with which no title ends
MIN_WORDS = 3  # of a sentence; a request may be shorter

_PLAN_PREFIX = re.compile(
    r"^(?:implementation )?(?:plan|task|proposal|spec|design)\s{0,3}(?:[:—–-]{1,3}|for|to)\s+",
    re.IGNORECASE,
)
_CONVENTIONAL = re.compile(r"^[a-z]{1,20}(?:\([^)]{0,60}\))?!?:\s+")
_ABOUT_A_FILE = re.compile(
    r"`[^`]{0,120}[./][^`]{1,120}`(?:\s\([^)]{0,60}\))?\s*(?:[:—–-]|→)+\s*(?=\S)"
)
# Labels before a sentence.
_LABEL = re.compile(
    r"(?:root cause|cause|fix|the fix|solution|problem|issue|result|answer|note|important|summary"
    r"|what changed|changes?|update|ursache|lösung|cause racine|correction)\s*[:：]\s*",
    re.IGNORECASE,
)
_LEAD = re.compile(
    r"(?:the (?:fix|change|issue|problem|bug|root cause|cause|reason|solution|answer) (?:is|was)"
    r"(?: now| very)?(?: simple| done| complete| straightforward| in place)?\s*(?:[:—–]\s*|that\s+)"
    r"|the (?:\w+ )?(?:approach|fix|solution|option|way|idea) (?:is|would be) to\s+"
    r"|(?:i|we)(?:'ve| have)?\s+(?:now\s+|also\s+|just\s+|successfully\s+)*"
    r"(?=[a-z]+ed\b|made|built|wrote|set|split|put|found|rewrote))",
    re.IGNORECASE,
)
# The text before one of these is a complete clause;
_STRONG_END = r"(?<!\s)\s++[—–]++\s+|;\s+|[.!?]\s+|[；。]"
# also before one of these, unless it starts with a conjunction.
_WEAK_END = (
    r"，|,\s+(?:which|so|but|because|since|where|while|causing|making|ensuring|and (?:the|it|now)"
    r"|aber|sodass|weil|mais|donc|car|pero|porque)\b"
    r"|(?<!\s)\s++(?:so that|because|in order to|instead of|rather than|sodass|weil|parce que)\b"
)
_MAIN_CLAUSE_END = re.compile(_STRONG_END)
_CLAUSE_END = re.compile(f"{_STRONG_END}|{_WEAK_END}")
ASIDE = re.compile(r"\s\([^()]{0,200}\)")
_ENDS_OPEN = re.compile(
    r"(?:\b(?:the|a|an|of|to|in|on|at|for|with|and|or|from|by|is|are|was|so that|that|includes?"
    r"|including|contain(?:s|ing)?|covers?|covering|follows|following|shows?|like|as|reads|says)|[,:(])$"
)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# First words of sentences that refer to the one before: not understandable alone.
_REFERRING = _words(
    "this that these those it its it's they he she but and so or otherwise previously however also"
    " both either there here before: after: need needs still then such same another again was were"
    " is are now has you"
)
# Conjunctions that start a subordinate clause.
_SUBORDINATE = _words("when if since because while after before once although until unless")
# Requests that do not name their subject: "commit", "continue", "yes".
_BARE_REQUEST = re.compile(
    r"(?:(?:and|then|now|please|ok(?:ay)?)[\s,]{1,3}){0,3}"
    r"(?:(?:com+it?|push|continue|go on|go ahead|proceed|retry|clear|try again|fix it|do it|weiter"
    r"|mach das)\b[\w\s,.!@'/]{0,40}"
    r"|(?:ok(?:ay)?|yes|no|thanks?(?: you)?|again|please|next|done|great|perfect|cool|nice|sure|ja"
    r"|nein|danke|oui|non|merci|sí|gracias)\b[\w\s,!@']{0,25}[.!]*"
    r"|(?:继续|好的?|是的?|谢谢|提交|はい|続けて|ありがとう|نعم|شكرا)\W*)$",
    re.IGNORECASE,
)
_COMMIT_REQUEST = re.compile(
    r"(?:(?:and|then|now|please|ok(?:ay)?|great|perfect)[\s,.!]{1,3}){0,3}"
    r"(?:(?:re|git )?com+it?|push|release|tag|merge)\b",
    re.IGNORECASE,
)
_EMPTY_TITLE = re.compile(
    r"(?:the|this|a) (?:fix|change|issue|problem|bug|solution|root cause|reason|key|commit)s?"
    r"(?: (?:is|was|are|were))?(?: (?:simple|done|complete|straightforward|clear|here|in place"
    r"|(?:a )?(?:one|single)-\w+ \w+.*))?$|(?:both|all) .{0,30}\b(?:are|is|pass)"
    r"|(?:the|that) (?:other|same|first|second|last) (?:one|thing)s?$"
    r"|(?:\S+ )?fix(?:es)? for [\w-]+$"
    r"|no (?:additional|further|other|more) (?:changes?|work)\b",
    re.IGNORECASE,
)
# Reports of a problem, and questions: the answer makes a better title.
_REPORT = re.compile(
    r"(?:i|i've|i'm|i'd|we|it|it's|this|that|these|there|they|seems|looks? like|still|here|when|why"
    r"|what|how|which|where|who|are|is|do|does|did|should|not|wait|ok|now|but|so|great|warum|wie"
    r"|was|wo|pourquoi|comment|où|por qué|cómo)\b",
    re.IGNORECASE,
)
_FIRST_PERSON_AGENT = re.compile(r"\bI\b")
_FIRST_PERSON = re.compile(r"\b(?:i|i've|i'm|i'd|me|my|we've|we're)\b", re.IGNORECASE)
_POLITE = re.compile(
    r"(?:(?:please|can you|could you|would you|now|then|also|and|hey|hi|you (?:can|should|must)"
    r"|we (?:should|must|need to)|let's|bitte|kannst du|könntest du|peux-tu|pourrais-tu"
    r"|s'il te plaît|por favor|puedes|help me(?: to)?)[\s,]{1,3}){1,4}(?:please\s|bitte\s)?",
    re.IGNORECASE,
)
# What the user wishes follows.
_WISH = re.compile(
    r"(?:(?:ok(?:ay)?|now|so|then|and|also)[\s,]{1,3}){0,2}"
    r"(?:i|we)(?:'d| would)? (?:want|like|need)(?: you)? to\s+(?=\S)",
    re.IGNORECASE,
)
_FOR_ME = re.compile(r"^(\w{2,12}) me\b(?= \w)", re.IGNORECASE)
_TAIL = re.compile(
    r"(?:,|\s[—–-])\s+(?:please|any ideas?|thanks?|fix (?:it|this)"
    r"|can you (?:fix|check) (?:it|this)|bitte|merci|corrige ça)\W*$",
    re.IGNORECASE,
)
# Before a rule. A "no" without a comma is part of it: "No comments in tests".
_NOD = re.compile(
    r"(?:(?:yes|no|ok(?:ay)?)(?:[,.!]{1,3}\s{0,3}|\s(?=(?:and|so|but|also)\b))"
    r"|(?:and|also|but|so)\b[\s,]{1,3}){1,3}",
    re.IGNORECASE,
)
# A name with an ending, or a path: not "i.e.", "I/O", "1/2" or "//nolint".
_FILE_IN_TEXT = re.compile(
    r"(?<!\bi)(?<!\be)(?<=\w)\.[a-z]{1,6}\b|(?<![\w/.-])[./~]{0,3}[\w.-]{2,}[/\\][\w.-]{2,}"
)
_LOWER_CASE_NAME = re.compile(r"[a-z]+[A-Z_./(0-9-]")


def from_plan(title: str) -> str:
    return as_title(_PLAN_PREFIX.sub("", title, count=1), LONGEST_PLAN_TITLE)


def from_commit(subject: str) -> str:
    return as_title(_CONVENTIONAL.sub("", subject, count=1))


def from_sentence(sentence: str, min_words: int = MIN_WORDS) -> str:
    """The main clause; empty if it is too long for a title."""
    text = without_lead(without_markup(sentence)).rstrip(".!?。！？:： ")
    if (
        _first_word(text) in _REFERRING
        or is_empty_phrase(text.lower())
        or _FIRST_PERSON_AGENT.search(text)
    ):
        return ""
    if len(text) > LONGEST_TITLE:
        text = ASIDE.sub("", text)
    title = as_title(text) if len(text) <= LONGEST_TITLE else clause_of(text)
    return title if count_words(title) >= min_words else ""


def without_lead(text: str) -> str:
    """Removes "Done." or "Root cause:" before the sentence itself, and "I have"."""
    text = without_opening(text)
    for prefix in (_ABOUT_A_FILE, _LABEL, _LEAD):
        if (match := prefix.match(text)) and match.end() < len(text):
            text = text[match.end() :]
    return text


def file_before(text: str) -> str:
    """The name of the file that a sentence is about: "`src/lamp.py` — blinks now"."""
    match = _ABOUT_A_FILE.match(text)
    path = match[0].split("`")[1] if match else ""
    return file_name(path).partition(":")[0]


def clause_of(text: str, longest: int = LONGEST_TITLE) -> str:
    """The longest start of the text that is complete and short enough; empty if there is none."""
    ends = [end.start() for end in _CLAUSE_END.finditer(text[: longest + 20])]
    if _first_word(text) in _SUBORDINATE:
        # What ends before its main clause is no clause of its own.
        main = text.find(", ")
        strong = {end.start() for end in _MAIN_CLAUSE_END.finditer(text[: longest + 20])}
        ends = [end for end in ends if end in strong or 0 < main < end]
    for end in reversed(ends):
        if end <= longest and (title := as_title(text[:end], longest)):
            return title
    return ""


def from_request(text: str) -> str:
    """The first sentence, if it is short enough."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines or is_bare_request(text):
        return ""
    line = _WISH.sub("", without_opening(lines[0]), count=1)
    if _REPORT.match(line):
        return ""
    sentence = sentences(line[: 4 * LONGEST_TITLE])[0]
    polite = _POLITE.match(sentence)
    first = _TAIL.sub("", sentence[polite.end() :] if polite else sentence)
    first = _FOR_ME.sub(r"\1", first)
    if len(first) > LONGEST_TITLE or _FIRST_PERSON.search(first):
        return ""
    return from_sentence(first, min_words=1)


def from_rule(text: str) -> str:
    """Returns the rule as typed, without "yes and" before it; of a long one its first clauses."""
    if nod := _NOD.match(text):
        text = text[nod.end() :]
    return text if len(text) <= LONGEST_RULE else clause_of(text, LONGEST_CUT_RULE) or text


def from_edits(files: Collection[FileWork]) -> str:
    """Which symbols or sections were added or removed, or which line became what; empty if the
    edits are too large to tell."""
    ordered = by_weight(files)
    for tell in (_definitions, _replacements):
        told = (f"{file_name(work.path)}: {text}" for work in ordered for text in tell(work))
        if title := next((title for title in told if len(title) <= LONGEST_EDIT), ""):
            return title
    return ""


def _definitions(work: FileWork) -> Iterator[str]:
    added = [name for name in work.added if name not in work.removed]
    removed = [name for name in work.removed if name not in work.added]
    if len(added) == len(removed) == 1:
        yield f"renamed `{removed[0]}` to `{added[0]}`"
    elif added:
        yield f"added {_listed(added)}"
    elif removed:
        yield f"removed {_listed(removed)}"
    yield from (f"added the section “{heading}”" for heading in work.added_headings)


def _replacements(work: FileWork) -> Iterator[str]:
    for before, after in work.replacements:
        if before.split() != after.split():  # else it was only formatted
            yield f"`{before}` became `{after}`"


def of_changed_files(files: Collection[FileWork]) -> str:
    created = all(work.created for work in files)
    return from_files([work.path for work in by_weight(files)], created=created)


def of_created_files(files: Collection[FileWork]) -> str:
    """Tells of the files that were created; empty if one of them existed: that it was changed says
    nothing."""
    return of_changed_files(files) if all(work.created for work in files) else ""


def main_file(files: Collection[FileWork]) -> str:
    """The name of the file with the most edits; of a test only if nothing else was edited."""
    return file_name(max(files, key=lambda w: (not is_test(w.path), len(w.sources))).path)


def is_test(path: str) -> bool:
    return "test" in path.lower()


def by_weight(files: Collection[FileWork]) -> list[FileWork]:
    return sorted(files, key=lambda work: ("test" in work.path.lower(), -len(work.sources)))


def _listed(names: list[str]) -> str:
    shown = [f"`{name}`" for name in names[:MOST_NAMES]]
    return " and ".join(shown) + (" and others" if len(names) > MOST_NAMES else "")


def from_files(paths: list[str], created: bool) -> str:
    names = list(dict.fromkeys(map(file_name, paths)))
    if not names:
        return ""
    verb = "Created" if created else "Changed"
    if len(names) <= 3:
        return f"{verb} " + " and ".join(", ".join(names).rsplit(", ", 1))
    return f"{verb} {names[0]}, {names[1]} and {len(names) - 2} more files"


def is_bare_request(text: str) -> bool:
    """Whether a request ("commit", "continue", "yes") does not name its subject."""
    text = text.strip()
    return bool(_BARE_REQUEST.match(text)) or width(text) < 6


def is_commit_request(text: str) -> bool:
    """Whether a request is only to commit or release earlier work."""
    return bool(_COMMIT_REQUEST.match(text.strip()))


def as_title(text: str, longest: int = LONGEST_TITLE) -> str:
    text = without_markup(text).strip(" .:;—–-'")
    if text.count('"') % 2:
        text = text.strip('"').strip(" .:;—–-'")
        if '"' in text:
            return ""  # cut within a quotation
    if width(text) < SHORTEST_TITLE or len(text) > longest or not is_balanced(text):
        return ""
    if _EMPTY_TITLE.match(text) or _ENDS_OPEN.search(text, max(0, len(text) - READ_END)):
        return ""
    return text[0].upper() + text[1:] if text[0].islower() and not _is_name(text) else text


def _first_word(text: str) -> str:
    return text[:40].split(" ", 1)[0].lower().rstrip(",")


def _is_name(text: str) -> bool:
    """Whether it starts with a name that is written in lower case."""
    return bool(_LOWER_CASE_NAME.match(text))


def names_file(title: str) -> bool:
    return _FILE_IN_TEXT.search(title) is not None


# What a turn was about, for a title that may not be understood without it, or in place of one
#
# Whoever reads a title alone knows neither the question nor the place. The first of these that says
# something tells why: the plan, what the user asked, the branch; and where, if the title names no
# file: the files, or the names used most if the title has no code. All are of the turn itself: what
# other turns or the title of the session say would have to be forgotten with them.

# A branch alone does not explain an edit: one branch has many.
STATED_REASONS: tuple[TopicKind, ...] = ("plan", "asked")
LONGEST_TOPIC, READ_REQUEST = 90, 400
ASKED = "Asked"
FEWEST_WITHOUT_NAME, FEWEST_WITH_PLAIN_NAME = 6, 4  # specific words of a request as a title
FEWEST_SPECIFIC = 3  # words of a request without a name
FEWEST_BESIDE_NAME = 2
FEWEST_BESIDE_STAND_IN = 4  # "why is it dark?" needs the turn before
FEWEST_BRANCH_WORDS, MOST_BRANCH_WORDS = 2, 8
LEAST_NEW = 0.5  # share of its words that the title does not have
READ_ANSWER = 4_000
# Of any agent: plans and instructions, which are read or written in any turn. Work on a skill is
# work (`CLIENT_FILES`), but the name of its file seldom says what a turn was about.
_OF_CLIENT = re.compile(
    r"(?:^|[/\\])\.\w{1,20}[/\\](?:agents|commands|plans|projects|skills|todos)[/\\]"
)
_IDENTIFIER = re.compile(r"[a-z][A-Z]|[A-Za-z][-_./][A-Za-z]|[A-Z][a-z]+[A-Z]")
SHORTEST_IDENTIFIER = 6
_STAND_IN = AnyCase(r"\b(?:here|it|one|ones|that|them|there|these|this|those)\b")
# Before a request: "ok, and question: why is the lamp dark?"
_REQUEST_LEAD = re.compile(
    r"^(?:(?:also|and|but|go ahead and|no|ok(?:ay)?|question|so|then|wait|yes)\b"
    r"[\s,:.!-]{1,3}){1,3}",
    re.IGNORECASE,
)
# What only the conversation knows, and what happened to who asks.
_NOT_ALONE = AnyCase(
    r"\b(?:again|here|it|it's|its|ones?|them|these|they|things?|this|those|yesterday"
    r"|the same|as (?:before|defined|described|discussed)|(?:option|point|step) \w{1,2}"
    r"|i'm|i've|i (?:am|feel|got|have|just|think))\b"
    r"|^(?:that\b|[/<{\[])"
)
# A command, markup, data, or a terminal with its prompt
_PASTED = ("/", "<", "{", "[", "❯", "$ ", "> ", "% ", ">>> ")
_ADDRESS, _ADDRESSES = "://", re.compile(r"\b\w{1,20}+://\S*")
_LIST_MARK = re.compile(r"^(?:[-*•]|\d{1,2}[.)])\s+")
# Made by a bot, or for no purpose but to be one: "dependabot/…", "claude/brave-otter-3fa901".
_MADE_UP = re.compile(
    r"(?:dependabot|renovate)/|.*[-_](?=[0-9a-f]*\d)[0-9a-f]{5,40}$|(?:te?mp|wip)\b"
)
_TICKET_OR_DATE = re.compile(r"^(?:[a-z]{2,5}[-_]\d{1,6}|\d{6,8})[-_](?=\w)", re.IGNORECASE)
_BRANCH_SEPARATOR = re.compile(r"[\W_]+")


def topics_of(turn: Turn, evidence: TurnEvidence, title: str) -> tuple[Topic, ...]:
    """Tells at most why and where; empty where nothing is known that the title does not say."""
    known = content_words(title)
    reasons = _reasons(turn, evidence, title)
    reason = next((topic for topic in reasons if _is_new(topic, known)), None)
    topics = [reason] if reason else []
    if reason:
        known |= content_words(reason.text)
    most = MOST_NAMES if reason is None else 1
    places = _places(evidence, title, most)
    topics += islice((topic for topic in places if _is_new(topic, known)), 1)
    return tuple(topics)


def asked_title(request: UserRequest) -> str:
    """Returns, where nothing else is clear alone, a request that says what it is about."""
    line = request.text.strip().partition("\n")[0][:READ_REQUEST]
    if line.startswith(_PASTED):
        return ""
    requests = (
        _REQUEST_LEAD.sub("", sentence, count=1).rstrip(".") for sentence in sentences(line)
    )
    request_titles = (f"{ASKED}: {_topic('asked', text).text}" for text in requests)
    return next(filter(_is_clear_request, request_titles), "")


def _is_clear_request(title: str) -> bool:
    text = title.removeprefix(f"{ASKED}: ")
    if _NOT_ALONE.search(text) or _ADDRESS in text or _starts_with_preposition(text):
        return False
    if not is_complete(title, is_english=True):
        return False
    if names_in(text) and len(specific_words(NAME.sub(" ", text))) >= FEWEST_BESIDE_NAME:
        return True
    fewest = FEWEST_WITH_PLAIN_NAME if is_anchored(text) else FEWEST_WITHOUT_NAME
    return len(specific_words(text)) >= fewest


def _starts_with_preposition(text: str) -> bool:
    return text.partition(" ")[0].lower() in PREPOSITIONS


def _is_new(topic: Topic, known: frozenset[str]) -> bool:
    is_short = 0 < len(topic.text) <= LONGEST_TOPIC
    return is_short and novelty(content_words(topic.text), known) >= LEAST_NEW


def _reasons(turn: Turn, evidence: TurnEvidence, title: str) -> Iterator[Topic]:
    yield _topic("plan", from_plan(evidence.request.plan_title))
    if not (turn.is_client_message or title.startswith(f"{ASKED}: ")):
        yield _topic("asked", _request_in(evidence.request))
    for event in turn.events:
        if event.kind == BRANCH:
            yield _topic("branch", _words_of_branch(event.text or ""))


def _places(evidence: TurnEvidence, title: str, most: int) -> Iterator[Topic]:
    if not names_file(title):
        yield _topic("files", ", ".join(_files_of(evidence)[:most]))
        if "`" not in title:
            yield _topic("about", ", ".join(_names_of(evidence, title)[:most]))


def _topic(kind: TopicKind, text: str) -> Topic:
    return Topic(kind, one_line(text).replace("[", "(").replace("]", ")"))


def _files_of(evidence: TurnEvidence) -> list[str]:
    """Returns the files with the most edits, else those that were read."""
    edited = [work.path for work in by_weight(evidence.files.values())]
    paths = [path for path in edited or evidence.files_read if not _OF_CLIENT.search(path)]
    return list(dict.fromkeys(map(file_name, paths[:MOST_NAMES])))


def _names_of(evidence: TurnEvidence, title: str) -> list[str]:
    """Which the request and the answer use most: as code, or more than once."""
    text = f"{evidence.request.text[:READ_REQUEST]}\n{evidence.final[:READ_ANSWER]}"
    names = names_in(_ADDRESSES.sub("", text))
    code = {name.strip("`") for name in names if name.startswith("`")}
    used = Counter(name.strip("`") for name in names)
    return [
        name
        for name, count in used.most_common()
        if (name in code or (count > 1 and "/" not in name)) and _tells(name, title)
    ]


def _tells(name: str, title: str) -> bool:
    """No abbreviation, no sentence, and no word of the language: `string`, `nil`, "PR"."""
    is_identifier = len(name) >= SHORTEST_IDENTIFIER and bool(_IDENTIFIER.search(name))
    return is_identifier and " " not in name and name.removesuffix("()") not in title


def _request_in(request: UserRequest) -> str:
    """Returns the first question, else the first sentence, that can be understood alone."""
    line, _, rest = request.text.strip().partition("\n")
    if line.rstrip().endswith(COLONS):
        line = f"{line} {_LIST_MARK.sub('', rest.strip()).partition(chr(10))[0]}"
    line = line[:READ_REQUEST]
    if line.startswith(_PASTED):
        return ""
    questions_first = sorted(sentences(line), key=lambda text: not text.endswith(QUESTION_MARKS))
    return _shortened_request(next(filter(_says_enough, questions_first), ""))


def _shortened_request(text: str) -> str:
    """Start and end: what a long question asks stands at its end."""
    if len(text) <= LONGEST_TOPIC:
        return text
    half = LONGEST_TOPIC // 2
    return f"{shorten(text[: half + 1], half - 1)} {text[-half:].partition(' ')[2]}"


def _says_enough(text: str) -> bool:
    if _ADDRESS in text or not is_balanced(text):
        return False
    fewest = FEWEST_BESIDE_NAME if names_in(text) else FEWEST_SPECIFIC
    if _STAND_IN.search(text):
        fewest = FEWEST_BESIDE_STAND_IN
    return len(specific_words(text)) >= fewest


def _words_of_branch(branch: str) -> str:
    """ "dev/lamp-12-warm-light" is "warm light"."""
    if _MADE_UP.match(branch):
        return ""
    name = _TICKET_OR_DATE.sub("", branch.rpartition("/")[2])
    words = [word for word in _BRANCH_SEPARATOR.split(name) if word]
    is_phrase = FEWEST_BRANCH_WORDS <= len(words) <= MOST_BRANCH_WORDS
    return " ".join(words) if is_phrase else ""
