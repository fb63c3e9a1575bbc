"""The user's own words in a prompt, without the client's additions and pasted logs."""

import re
from dataclasses import dataclass

from claude_mem.observer.local.markdown import heading_of, without_markup
from claude_mem.text import shorten

LONGEST_LINE = 600  # a longer line is pasted, unless it reads like prose
LONGEST_ERROR, LONGEST_NOTICE = 240, 300
LONGEST_PROMPT = 100_000
READ_CHARS = 300  # of a line, enough to recognise a log
MIN_PLAN_CHARS = 600

_PLAN = re.compile(r"^\s*implement the following plan:\s*", re.IGNORECASE)
_CLIENT_TAIL = "If you need specific details from before exiting plan mode"
_TAG = re.compile(
    r"<(system-reminder|ide_[a-z_]{1,40}|environment_details|local-command-[a-z]{1,40})>",
    re.IGNORECASE,
)
_NOTIFICATION = "task-notification"
_IMAGE = re.compile(r"\[Image[^\]\n]{0,80}\]")

# How lines begin that a program wrote.
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
# An exception by name; the last of a trace is the one to report.
_EXCEPTION = re.compile(
    r"(?:Caused by: )?[\w.$]{2,120}?(?:Error|Exception|\.[A-Z]\w{1,60})(?:: |$)|panic: "
)
_NAME_BEFORE = re.compile(r"[\w.]{1,80}$")


@dataclass(frozen=True, slots=True)
class Request:
    """The user's own text; for a pasted plan, its text and title instead."""

    text: str
    plan: str = ""
    plan_title: str = ""
    error: str = ""  # the error line of a pasted log


def parse_request(prompt: str) -> Request:
    text = prompt[:LONGEST_PROMPT].partition(_CLIENT_TAIL)[0]
    text = _IMAGE.sub("", _without_tags(text)).strip()
    if f"<{_NOTIFICATION}>" in text:
        notice = _tag_content(text, _NOTIFICATION)
        report = without_markup(_tag_content(notice, "summary") or notice)
        return Request(f"(a background task reported) {shorten(report, LONGEST_NOTICE)}")
    if _is_plan(text):
        body = _PLAN.sub("", text, count=1)
        return Request("", body, next(iter(_headings(body)), ""))
    return _own_text(text)


def _without_tags(text: str) -> str:
    """A tag that is never closed stays: the user may have typed it."""
    parts: list[str] = []
    position = 0
    unclosed: set[str] = set()
    for tag in _TAG.finditer(text):
        closing = f"</{tag[1]}>"
        if tag.start() < position or closing in unclosed:
            continue
        end = text.find(closing, tag.end())
        if end < 0:
            unclosed.add(closing)
            continue
        parts.append(text[position : tag.start()])
        position = end + len(closing)
    return "".join((*parts, text[position:]))


def _tag_content(text: str, tag: str) -> str:
    """Of the first such tag, up to its end or the end of the text."""
    return text.partition(f"<{tag}>")[2].partition(f"</{tag}>")[0]


def _is_plan(text: str) -> bool:
    if _PLAN.match(text):
        return True
    return text.startswith("#") and len(text) > MIN_PLAN_CHARS and len(_headings(text)) >= 2


def _headings(text: str) -> list[str]:
    """Of the first and second level."""
    lines = [line for line in text.splitlines() if line.startswith(("# ", "## "))]
    return [heading for line in lines if (heading := heading_of(line))]


def _own_text(text: str) -> Request:
    own_lines: list[str] = []
    errors: list[str] = []
    in_log = False
    for line in text.splitlines():
        stripped = line.strip()
        in_log = _is_log(stripped) or (in_log and _continues_log(line))
        if in_log:
            errors.append(stripped)
        elif len(line) > 120 and (inside := _LOG_INSIDE.search(line[:LONGEST_LINE])):
            own_lines.append(line[: inside.start()])
            errors.append(line[inside.start() :])
        else:
            own_lines.append(line)
    own_text = "\n".join(own_lines).strip()
    error = _error_of(errors)
    return Request(own_text or error or shorten(text, LONGEST_LINE), error=error)


def _continues_log(line: str) -> bool:
    """Wrapped lines are indented; the exception at the end of a trace is not."""
    return (line[:1] in (" ", "\t") and not line.isspace()) or bool(_EXCEPTION.match(line))


def _is_log(line: str) -> bool:
    if _LOG_LINE.match(line[:READ_CHARS]):
        return True
    return len(line) > LONGEST_LINE and not _reads_like_prose(line[:LONGEST_LINE])


def _reads_like_prose(text: str) -> bool:
    """Mostly letters and spaces."""
    letters = sum(character.isalpha() for character in text)
    symbols = sum(not (character.isalpha() or character.isspace()) for character in text)
    return symbols < letters / 6 and (" " in text[:80] or not text.isascii())


def _error_of(lines: list[str]) -> str:
    """The last exception; else the first error message, from its name on."""
    exceptions = [line for line in lines if _EXCEPTION.match(line)]
    if exceptions:
        return _error(exceptions[-1].removeprefix("Caused by: "))
    for line in lines:
        if match := _ERROR.search(line[: 4 * READ_CHARS]):
            name = _NAME_BEFORE.search(line[: match.start()])
            return _error(line[name.start() if name else match.start() :])
    return ""


def _error(text: str) -> str:
    return shorten(without_markup(text[:READ_CHARS]), LONGEST_ERROR)
