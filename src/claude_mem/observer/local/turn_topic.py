"""What a turn was about, for the brackets after a title that may not be understood without it.

Whoever reads a title alone does not know the question. The first of these that says something tells
it: what the user asked, the branch, and the plan. All are of the turn itself: what other turns or
the title of the session say would have to be forgotten with them.
"""

import re
from collections.abc import Iterator

from claude_mem.observer.local import titles
from claude_mem.observer.local.any_case import AnyCase
from claude_mem.observer.local.content_words import content_words, novelty
from claude_mem.observer.local.evidence import UserRequest
from claude_mem.observer.local.markdown import sentences
from claude_mem.text import QUESTION_MARKS, one_line
from claude_mem.title_rules import Topic, names_in, specific_words
from claude_mem.types import BRANCH, Turn

LONGEST_TOPIC, READ_REQUEST = 90, 400
FEWEST_SPECIFIC = 3  # words of a question or a request without a name
FEWEST_BESIDE_NAME = 2
FEWEST_BRANCH_WORDS, MOST_BRANCH_WORDS = 2, 8
LEAST_NEW = 0.5  # share of its words that the title does not have
_STAND_IN = AnyCase(r"\b(?:here|it|one|ones|that|them|there|these|this|those)\b")
_ADDRESS = "://"
# Made by a bot, or for no purpose but to be one: "dependabot/…", "claude/brave-otter-3fa901".
_MADE_UP = re.compile(
    r"(?:dependabot|renovate)/|.*[-_](?=[0-9a-f]*\d)[0-9a-f]{5,40}$|(?:te?mp|wip)\b"
)
_TICKET_OR_DATE = re.compile(r"^(?:[a-z]{2,5}[-_]\d{1,6}|\d{6,8})[-_](?=\w)", re.IGNORECASE)
_BRANCH_SEPARATOR = re.compile(r"[\W_]+")


def topic_of(turn: Turn, request: UserRequest, title: str) -> Topic | None:
    """None where nothing is known that the title does not say."""
    of_title = content_words(title)
    for topic in _topics(turn, request):
        text = one_line(topic.text).replace("[", "(").replace("]", ")")
        is_short = 0 < len(text) <= LONGEST_TOPIC
        if is_short and novelty(content_words(text), of_title) > LEAST_NEW:
            return topic._replace(text=text)
    return None


def _topics(turn: Turn, request: UserRequest) -> Iterator[Topic]:
    if not turn.is_client_message:
        yield Topic("asked", _question_in(request))
    for event in turn.events:
        if event.kind == BRANCH:
            yield Topic("branch", _words_of(event.text or ""))
    yield Topic("plan", titles.from_plan(request.plan_title))


def _question_in(request: UserRequest) -> str:
    """The first that can be understood alone."""
    line = request.text.strip().partition("\n")[0][:READ_REQUEST]
    if line.startswith(("/", "<", "{", "[")):
        return ""
    asked = (text for text in sentences(line) if text.endswith(QUESTION_MARKS))
    return next(filter(_says_enough, asked), "")


def _says_enough(text: str) -> bool:
    if _ADDRESS in text or len(text) > LONGEST_TOPIC:
        return False
    has_name = bool(names_in(text))
    if _STAND_IN.search(text) and not has_name:
        return False
    return len(specific_words(text)) >= (FEWEST_BESIDE_NAME if has_name else FEWEST_SPECIFIC)


def _words_of(branch: str) -> str:
    """ "ana/lamp-12-warm-light" is "warm light"."""
    if _MADE_UP.match(branch):
        return ""
    name = _TICKET_OR_DATE.sub("", branch.rpartition("/")[2])
    words = [word for word in _BRANCH_SEPARATOR.split(name) if word]
    is_told = FEWEST_BRANCH_WORDS <= len(words) <= MOST_BRANCH_WORDS
    return " ".join(words) if is_told else ""
