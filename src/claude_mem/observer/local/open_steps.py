"""Work that the agent's last message names as open: "Next: …", and the items under "Next steps".

Only what is announced as open counts, word for word. Questions and offers end with their session.
"""

import re
from collections.abc import Iterator
from dataclasses import replace

from claude_mem.observer.local.markdown import sentences, without_markup
from claude_mem.types import OpenStep, Summary, Turn

MAX_STEPS = 12
LONGEST_STEP = 300
ANNOUNCED = "announced"
LONGEST_MESSAGE = 40_000

_NAMES = "|".join((
    r"(?:what'?s |recommended |suggested |possible )?next(?: steps?| up)?",
    r"remaining(?: (?:work|steps?|tasks?|items?))?", r"follow[- ]?ups?(?: work| tasks?)?",
    r"to[- ]?dos?", "left (?:open|to do)", "still (?:open|to do|missing|left)",
    "open (?:items?|points?|tasks?|work)", "not (?:yet )?done(?: yet)?", "deferred", "outstanding",
    "nächste schritte", "noch offen", "prochaines étapes", "próximos pasos", "下一步",
    "次のステップ", "الخطوات التالية",
))  # fmt: skip
_EMPHASIS = r"[*_]{0,3}"
_ANNOUNCEMENT = re.compile(
    rf"\s{{0,8}}(?:#{{1,6}}\s+)?{_EMPHASIS}\W{{0,3}}(?:{_NAMES})(?:\s\([^)\n]{{1,40}}\))?{_EMPHASIS}"
    rf"\s?(?P<colon>[:：])?{_EMPHASIS}(?P<rest>.*)$",
    re.IGNORECASE,
)
_HEADING = re.compile(r"\s{0,3}#{1,6}\s")
_WITHIN_LINE = re.compile(
    rf"(?<=[.!?。！？])\s+{_EMPHASIS}(?:{_NAMES}){_EMPHASIS}[:：]{_EMPHASIS}\s+(?P<rest>\S.*)$",
    re.IGNORECASE,
)
_ITEM = re.compile(
    r"(?P<indent>\s*)(?:[-*+•‣–]|\d{1,2}[.)])\s+(?:\[(?P<box>[ xX])\]\s+)?(?P<text>.+)$"
)
_NO_STEP = re.compile(
    r"(?:none|nothing|n/?a|no (?:further|more|open|remaining)\b.*|-+|let me know\b.*|i can\b.*"
    r"|(?:if|when|once) you('d| would)? (?:like|want|prefer)\b.*|happy to\b.*)[.!]?$",
    re.IGNORECASE,
)
_QUESTION_MARKS = ("?", "？", "؟")
_FENCES = ("```", "~~~")


def with_open_steps(summary: Summary, turn: Turn) -> Summary:
    """The summary with every step that the turn's last message announces."""
    message, sources = _last_message(turn)
    texts = list(dict.fromkeys(find_steps(message)))[:MAX_STEPS]
    if not texts:
        return summary
    others = [step for step in summary.open_steps if not _repeats(step.text, texts)]
    rest = [s for s in sentences(summary.next_steps or "") if not _repeats(s, texts)]
    completed = summary.completed
    return replace(
        summary,
        open_steps=(*(OpenStep(text, sources, ANNOUNCED) for text in texts), *others),
        next_steps=" ".join((*(_as_sentence(text) for text in texts), *rest)),
        completed=None if completed and _repeats(completed, texts) else completed,
    )


def _last_message(turn: Turn) -> tuple[str, tuple[int, ...]]:
    messages = [e for e in turn.events if e.kind in ("Statement", "Stop") and e.text]
    stops = [event for event in messages if event.kind == "Stop"]
    text = (stops or messages)[-1].text or "" if messages else ""
    return text, tuple(event.id for event in messages if event.text == text)


def find_steps(message: str) -> Iterator[str]:
    in_section = in_items = has_heading = False
    lines = _without_code(message[:LONGEST_MESSAGE])
    for line in lines:
        announcement = _ANNOUNCEMENT.match(line)
        if announcement and _is_announcement(announcement):
            in_section, in_items, has_heading = True, False, bool(_HEADING.match(line))
            yield from _steps_of(announcement["rest"])
        elif _HEADING.match(line):
            in_section = False
        elif in_section and (item := _ITEM.match(line)):
            in_items = True
            if (item["box"] or " ") == " ":
                yield from _step(item["text"])
        elif in_section and line.strip() and not (in_items and line[:2].isspace()):
            if has_heading and not in_items:
                yield from _steps_of(line)
            else:
                in_section = False
        if not in_section and (inline := _WITHIN_LINE.search(line)):
            yield from _steps_of(inline["rest"])


def _is_announcement(match: re.Match[str]) -> bool:
    """A label with a colon, or a line of its own: not a sentence that begins with "Next"."""
    rest = match["rest"].strip(" *_:：")
    return bool(match["colon"]) or not rest


def _without_code(message: str) -> Iterator[str]:
    fenced = False
    for line in message.expandtabs(4).splitlines():
        if line.strip().startswith(_FENCES):
            fenced = not fenced
        elif not fenced:
            yield line


def _steps_of(text: str) -> Iterator[str]:
    """Each sentence is a step."""
    for sentence in sentences(text.strip(" *_")):
        yield from _step(sentence)


def _step(text: str) -> Iterator[str]:
    step = without_markup(text).strip(" *_")
    is_step = (
        len(step) > 3 and not step.endswith((*_QUESTION_MARKS, ":")) and not _NO_STEP.match(step)
    )
    if is_step and len(step) <= LONGEST_STEP:
        yield step[0].upper() + step[1:]


def _as_sentence(text: str) -> str:
    return text if text.endswith((".", "!", "。", "！")) else f"{text}."


def _repeats(text: str, steps: list[str]) -> bool:
    bare = _bare(text)
    return any(_bare(step) in bare or bare in _bare(step) for step in steps)


def _bare(text: str) -> str:
    return re.sub(r"\W+", " ", text.lower()).strip()
