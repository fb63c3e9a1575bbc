"""What a turn was about, for the brackets after a title that may not be understood without it.

Whoever reads a title alone knows neither the question nor the session. The first of these that says
something tells it: what the user asked in the turn, the title that the client has for the session,
the branch, the plan, and what the session began with.
"""

import re
from collections.abc import Iterable, Iterator

from claude_mem.observer.local import titles
from claude_mem.observer.local.any_case import AnyCase
from claude_mem.observer.local.content_words import content_words, novelty
from claude_mem.observer.local.evidence import UserRequest, parse_request
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
_MADE_UP = re.compile(r"(?:dependabot|renovate)/|.*[-_][0-9a-f]{5,40}$|(?:te?mp|wip|backup)\b")
_TICKET_OR_DATE = re.compile(r"^(?:[a-z]{2,5}[-_]\d{1,6}|\d{6,8})[-_](?=\w)", re.IGNORECASE)
_BRANCH_SEPARATOR = re.compile(r"[-_]+")


def topic_of(turn: Turn, request: UserRequest, title: str) -> Topic | None:
    """None where nothing is known that the title does not say."""
    asked = "" if turn.is_client_message else _question_in(request)
    return _first_that_adds([Topic("asked", asked)], title) or topic_of_session(
        turn, request, title
    )


def topic_of_session(turn: Turn, request: UserRequest, title: str) -> Topic | None:
    return _first_that_adds(_topics_of_session(turn, request), title)


def _first_that_adds(topics: Iterable[Topic], title: str) -> Topic | None:
    of_title = content_words(title)
    for topic in topics:
        text = one_line(topic.text).replace("[", "(").replace("]", ")")
        is_short = 0 < len(text) <= LONGEST_TOPIC
        if is_short and novelty(content_words(text), of_title) > LEAST_NEW:
            return topic._replace(text=text)
    return None


def _topics_of_session(turn: Turn, request: UserRequest) -> Iterator[Topic]:
    yield Topic("session", turn.session_title)
    for event in turn.events:
        if event.kind == BRANCH:
            yield Topic("branch", _words_of(event.text or ""))
    yield Topic("plan", titles.from_plan(request.plan_title))
    if turn.session_prompt != turn.prompt:
        first = parse_request(turn.session_prompt)
        yield Topic("plan", titles.from_plan(first.plan_title))
        yield Topic("session", _question_in(first) or _told_in(first))


def _question_in(request: UserRequest) -> str:
    """The first that can be understood alone."""
    line = request.text.strip().partition("\n")[0][:READ_REQUEST]
    if line.startswith(("/", "<", "{", "[")):
        return ""
    asked = (text for text in sentences(line) if text.endswith(QUESTION_MARKS))
    return next(filter(_says_enough, asked), "")


def _told_in(request: UserRequest) -> str:
    title = titles.from_request(request.text)
    return title if _says_enough(title) else ""


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
