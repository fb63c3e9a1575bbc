"""What a turn was about, for a title that may not be understood without it, or in place of one.

Whoever reads a title alone knows neither the question nor the place. The first of these that says
something tells why: the plan, what the user asked, the branch; and where, if the title names no
file: the files, or the names used most if the title has no code. All are of the turn itself: what
other turns or the title of the session say would have to be forgotten with them.
"""

import re
from collections import Counter
from collections.abc import Iterator
from itertools import islice

from claude_mem.observer.local import titles
from claude_mem.observer.local.any_case import AnyCase
from claude_mem.observer.local.content_words import content_words, novelty
from claude_mem.observer.local.evidence import TurnEvidence, UserRequest
from claude_mem.observer.local.markdown import sentences
from claude_mem.observer.local.selection import COLONS
from claude_mem.observer.local.title_signs import is_anchored
from claude_mem.observer.local.tool_uses import file_name
from claude_mem.text import QUESTION_MARKS, one_line, shorten
from claude_mem.title_rules import (
    NAME,
    PREPOSITIONS,
    Topic,
    TopicKind,
    is_balanced,
    is_complete,
    names_in,
    specific_words,
)
from claude_mem.types import BRANCH, Turn

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
MOST_NAMES, READ_ANSWER = 2, 4_000
# Of any agent: plans and instructions, which are read or written in any turn. Work on a skill is
# work (`CLIENT_FILES`), but the name of its file seldom says what a turn was about.
_OF_CLIENT = re.compile(
    r"(?:^|[/\\])\.\w{1,20}[/\\](?:agents|commands|plans|projects|skills|todos)[/\\]"
)
_IDENTIFIER = re.compile(r"[a-z][A-Z]|[A-Za-z][-_./][A-Za-z]|[A-Z][a-z]+[A-Z]")
SHORTEST_IDENTIFIER = 6
_STAND_IN = AnyCase(r"\b(?:here|it|one|ones|that|them|there|these|this|those)\b")
# Before a request: "ok, and question: why is the lamp dark?"
_LEAD = re.compile(
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
    """At most why and where; empty where nothing is known that the title does not say."""
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
    """For a turn of which nothing else is clear alone: a request that says what it is about."""
    line = request.text.strip().partition("\n")[0][:READ_REQUEST]
    if line.startswith(_PASTED):
        return ""
    requests = (_LEAD.sub("", sentence, count=1).rstrip(".") for sentence in sentences(line))
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
    yield _topic("plan", titles.from_plan(evidence.request.plan_title))
    if not (turn.is_client_message or title.startswith(f"{ASKED}: ")):
        yield _topic("asked", _request_in(evidence.request))
    for event in turn.events:
        if event.kind == BRANCH:
            yield _topic("branch", _words_of(event.text or ""))


def _places(evidence: TurnEvidence, title: str, most: int) -> Iterator[Topic]:
    if not titles.names_file(title):
        yield _topic("files", ", ".join(_files_of(evidence)[:most]))
        if "`" not in title:
            yield _topic("about", ", ".join(_names_of(evidence, title)[:most]))


def _topic(kind: TopicKind, text: str) -> Topic:
    return Topic(kind, one_line(text).replace("[", "(").replace("]", ")"))


def _files_of(evidence: TurnEvidence) -> list[str]:
    """Those with the most edits, else those that were read."""
    edited = [work.path for work in titles.by_weight(evidence.files.values())]
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
    """Its first question, else its first sentence, that can be understood alone."""
    line, _, rest = request.text.strip().partition("\n")
    if line.rstrip().endswith(COLONS):
        line = f"{line} {_LIST_MARK.sub('', rest.strip()).partition(chr(10))[0]}"
    line = line[:READ_REQUEST]
    if line.startswith(_PASTED):
        return ""
    questions_first = sorted(sentences(line), key=lambda text: not text.endswith(QUESTION_MARKS))
    return _shortened(next(filter(_says_enough, questions_first), ""))


def _shortened(text: str) -> str:
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


def _words_of(branch: str) -> str:
    """ "dev/lamp-12-warm-light" is "warm light"."""
    if _MADE_UP.match(branch):
        return ""
    name = _TICKET_OR_DATE.sub("", branch.rpartition("/")[2])
    words = [word for word in _BRANCH_SEPARATOR.split(name) if word]
    is_phrase = FEWEST_BRANCH_WORDS <= len(words) <= MOST_BRANCH_WORDS
    return " ".join(words) if is_phrase else ""
