"""What the person asked, without what the client, a paste or a log put around it."""

import re
from dataclasses import dataclass

from claude_mem.observer.passages import plain

_PLAN = re.compile(r"^\s*implement the following plan:\s*", re.IGNORECASE)
_CLIENT_TAIL = re.compile(
    r"\n+If you need specific details from before exiting plan mode.*\Z", re.DOTALL
)
_TAGS = re.compile(
    r"<(system-reminder|ide_[a-z_]+|environment_details|local-command-[a-z]+)>.*?</\1>",
    re.DOTALL | re.IGNORECASE,
)
_NOTIFICATION = re.compile(r"<task-notification>(.*?)(?:</task-notification>|\Z)", re.DOTALL)
_NOTED = re.compile(r"<summary>(.*?)</summary>", re.DOTALL)
_IMAGE = re.compile(r"\[Image[^\]\n]{0,80}\]")
_TITLE = re.compile(r"^#{1,2}\s+(.+?)\s*#*$", re.MULTILINE)
_LOG_LINE = re.compile(
    r"^\s*(?:\[?\d{4}-\d\d-\d\d[T ]|\[?\d\d:\d\d:\d\d|at [\w.$<>]+(?: ?\(|:\d|$)|\S+\.[jt]sx?:\d+\b"
    r"|\S+ @ \S+:\d+|\d*chunk-\S+"
    r"|\[[A-Z][\w ]{2,30}\]|(?:INFO|DEBUG|WARN(?:ING)?|ERROR|TRACE)\b|[>$%] |\+\+\+|---|@@ "
    r"|File \"|Traceback|\s*\d+ ?\||[{}\]);,]+\s*$)"
)
_LOG_INSIDE = re.compile(
    r"\s\[?\d{1,2}:\d\d:\d\d(?:[.,]\d+)?\]?\s|(?:\[[A-Z]\w+\][^\[]{0,200}){2,}"
)
_ERROR = re.compile(
    r"(?:[\w.]*(?:Error|Exception)\b|\berror\b|\bfail(?:ed|ure)\b|\bfatal\b|\bpanic\b|\bcannot\b"
    r"|\bexit(?:ed)?(?: with)? code\b)[^\n]{0,200}",
    re.IGNORECASE,
)
LONGEST_LINE = 600


@dataclass(frozen=True, slots=True)
class Asked:
    """The person's own words; and where they pasted a plan, its title and text."""

    words: str
    plan: str = ""
    plan_title: str = ""
    error: str = ""  # the line of a pasted log that says what went wrong


def understand(prompt: str) -> Asked:
    text = _IMAGE.sub("", _TAGS.sub("", _CLIENT_TAIL.sub("", prompt))).strip()
    if noted := _NOTIFICATION.search(text):
        summary = _NOTED.search(noted[1])
        said = plain(summary[1] if summary else noted[1])
        return Asked(f"(a background task reported) {said[:300]}")
    if _is_plan(text):
        body = _PLAN.sub("", text)
        title = _TITLE.search(body)
        return Asked("", body, plain(title[1]) if title else "")
    return _own_words(text)


def _is_plan(text: str) -> bool:
    if _PLAN.match(text):
        return True
    return len(text) > 600 and len(_TITLE.findall(text)) >= 2 and text.lstrip().startswith("#")


def _own_words(text: str) -> Asked:
    kept: list[str] = []
    error = ""
    for line in text.splitlines():
        inside = _LOG_INSIDE.search(line) if len(line) > 120 else None
        if _LOG_LINE.match(line) or len(line) > LONGEST_LINE or inside:
            if inside and not _LOG_LINE.match(line):
                kept.append(line[: inside.start()])
            if not error and (found := _ERROR.search(line)):
                error = plain(found[0])[:240]
        else:
            kept.append(line)
    words = "\n".join(kept).strip()
    return Asked(words or text[:LONGEST_LINE], error=error)
