"""What the person asked, without what the client, a paste or a log put around it."""

import re
from dataclasses import dataclass

from claude_mem.observer.local.passages import heading_of, plain
from claude_mem.text import shorten

LONGEST_LINE = 600  # of a person's own; beyond, it is theirs only if it reads like words
LONGEST_ERROR, LONGEST_NOTICE = 240, 300
LONGEST_PROMPT = 100_000
LOOKED_AT = 300  # characters of a line tell whether it is a log's
FEWEST_PLAN_CHARS = 600

_PLAN = re.compile(r"^\s*implement the following plan:\s*", re.IGNORECASE)
_CLIENT_TAIL = "If you need specific details from before exiting plan mode"
_TAG = re.compile(
    r"<(system-reminder|ide_[a-z_]{1,40}|environment_details|local-command-[a-z]{1,40})>",
    re.IGNORECASE,
)
_NOTIFICATION = "task-notification"
_IMAGE = re.compile(r"\[Image[^\]\n]{0,80}\]")

# How a line begins that a program wrote.
_LOG_LINE = re.compile(
    "|".join((
        r"\[?\d{4}[-/]\d\d[-/]\d\d[T ]", r"\[?\d\d:\d\d:\d\d",  # a time
        r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) {1,2}\d{1,2} \d\d:",
        r"[IWEF]\d{4} \d\d:", r"(?:time|ts|level)=",
        r"\[?(?:INFO|DEBUG|WARN(?:ING)?|ERROR|TRACE|FATAL)\b", r"\[[A-Z][\w ]{2,30}\]",  # a level
        r"at [\w.$<>/@-]{1,120}(?: ?\(|:\d|$)", r"Caused by: ", r"Exception in thread",  # a trace
        r"\S{1,200}\.\w{1,4}:\d+\b", r"\S{1,100} @ \S{1,100}:\d", r"\d*chunk-\S",
        r"File \"", r"Traceback ", r"goroutine \d+ \[", r"thread '[^']{0,60}' panicked",
        r"--> \S", r"error\[\w+\]:", r"[\w.]{1,80}(?:Error|Exception)\b",
        r"[>$%#] \S", r"[\w.-]{1,40}@[\w.-]{1,40}:\S{0,80}[$#] ",  # a shell
        r"\+\+\+ ", r"--- ", r"@@ ", r"diff --git", r"\d+ ?\|", r"[{}\]);,]+$", r"\{\"",  # code
    ))
)  # fmt: skip
_LOG_INSIDE = re.compile(
    r"\s\[?\d{1,2}:\d\d:\d\d(?:[.,]\d+)?\]?\s|(?:\[[A-Z]\w{1,30}\][^\[]{0,200}){2,}"
)
_ERROR = re.compile(
    r"(?:Error|Exception)\b|\b(?:error|fail(?:ed|ure)|fatal|panic|panicked|cannot)\b"
    r"|\bexit(?:ed)?(?: with)? code\b",
    re.IGNORECASE,
)
# An exception by its name; the last of a trace is where it began, or where it ended.
_RAISED = re.compile(
    r"(?:Caused by: )?[\w.$]{2,120}?(?:Error|Exception|\.[A-Z]\w{1,60})(?:: |$)|panic: "
)
_PARTS_OF_NAMES = re.compile(r"[\w.]{1,80}$")


@dataclass(frozen=True, slots=True)
class Request:
    """The person's own words; and where they pasted a plan, its title and text."""

    words: str
    plan: str = ""
    plan_title: str = ""
    error: str = ""  # the line of a pasted log that says what went wrong


def understand(prompt: str) -> Request:
    text = prompt[:LONGEST_PROMPT].partition(_CLIENT_TAIL)[0]
    text = _IMAGE.sub("", _without_tags(text)).strip()
    if f"<{_NOTIFICATION}>" in text:
        noted = _inside(text, _NOTIFICATION)
        said = plain(_inside(noted, "summary") or noted)
        return Request(f"(a background task reported) {shorten(said, LONGEST_NOTICE)}")
    if _is_plan(text):
        body = _PLAN.sub("", text, count=1)
        return Request("", body, next(iter(_headings(body)), ""))
    return _own_words(text)


def _without_tags(text: str) -> str:
    """A tag that is never closed stays, as the person's own."""
    kept: list[str] = []
    place = 0
    unclosed: set[str] = set()
    for tag in _TAG.finditer(text):
        closing = f"</{tag[1]}>"
        if tag.start() < place or closing in unclosed:
            continue
        end = text.find(closing, tag.end())
        if end < 0:
            unclosed.add(closing)
            continue
        kept.append(text[place : tag.start()])
        place = end + len(closing)
    return "".join((*kept, text[place:]))


def _inside(text: str, tag: str) -> str:
    """What the first such tag holds, up to its end or the text's."""
    return text.partition(f"<{tag}>")[2].partition(f"</{tag}>")[0]


def _is_plan(text: str) -> bool:
    if _PLAN.match(text):
        return True
    return text.startswith("#") and len(text) > FEWEST_PLAN_CHARS and len(_headings(text)) >= 2


def _headings(text: str) -> list[str]:
    """The titles of a document and of its chapters."""
    lines = [line for line in text.splitlines() if line.startswith(("# ", "## "))]
    return [heading for line in lines if (heading := heading_of(line))]


def _own_words(text: str) -> Request:
    kept: list[str] = []
    errors: list[str] = []
    in_log = False
    for line in text.splitlines():
        stripped = line.strip()
        in_log = _is_log(stripped) or (in_log and _goes_on(line))
        if in_log:
            errors.append(stripped)
        elif len(line) > 120 and (inside := _LOG_INSIDE.search(line[:LONGEST_LINE])):
            kept.append(line[: inside.start()])
            errors.append(line[inside.start() :])
        else:
            kept.append(line)
    words = "\n".join(kept).strip()
    error = _error_of(errors)
    return Request(words or error or shorten(text, LONGEST_LINE), error=error)


def _goes_on(line: str) -> bool:
    """What a log, a trace or a listing wraps, it indents; what was raised ends a trace."""
    return (line[:1] in (" ", "\t") and not line.isspace()) or bool(_RAISED.match(line))


def _is_log(line: str) -> bool:
    if _LOG_LINE.match(line[:LOOKED_AT]):
        return True
    return len(line) > LONGEST_LINE and not _reads_like_words(line[:LONGEST_LINE])


def _reads_like_words(text: str) -> bool:
    """Letters, spaces and a little else; a dump has other signs, or no spaces."""
    letters = sum(sign.isalpha() for sign in text)
    others = sum(not (sign.isalpha() or sign.isspace()) for sign in text)
    return others < letters / 6 and (" " in text[:80] or not text.isascii())


def _error_of(lines: list[str]) -> str:
    """The exception by its name; else what follows the first word that tells of trouble."""
    raised = [line for line in lines if _RAISED.match(line)]
    if raised:
        return _error(raised[-1].removeprefix("Caused by: "))
    for line in lines:
        if found := _ERROR.search(line[: 4 * LOOKED_AT]):
            before = _PARTS_OF_NAMES.search(line[: found.start()])
            return _error(line[before.start() if before else found.start() :])
    return ""


def _error(text: str) -> str:
    return shorten(plain(text[:LOOKED_AT]), LONGEST_ERROR)
