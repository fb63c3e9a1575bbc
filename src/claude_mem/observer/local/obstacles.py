"""Obstacles that a turn ran into: what the agent blames for a failure, other than its own edits.

One alone may be chance. The hand-over tells those that came back in several sessions, so each is
proposed by the name of what was blamed, with the sentence as its note.
"""

import re
from collections.abc import Iterator

from claude_mem.observer.local.any_case import AnyCase
from claude_mem.observer.local.commands import READ_COMMAND
from claude_mem.observer.local.files import EDITING, path_of
from claude_mem.observer.local.markdown import sentences
from claude_mem.store.obstacles import THEN
from claude_mem.text import one_line
from claude_mem.types import ProposedFact, ToolUse, Turn

MAX_OBSTACLES = 6  # of a turn
READ_STATEMENT = 4_000
SHORTEST, LONGEST = 30, 220
LONGEST_REMEDY = 70
_FAILS = AnyCase(
    r"\b(?:fail(?:s|ed|ing|ures?)?|block(?:s|ed|ing)|break(?:s|ing)|broken|reject(?:s|ed)"
    r"|refus(?:es|ed)|hang(?:s|ing)?|hung|crash(?:es|ed|ing)|denied|errors?|time[sd]? out)\b"
)
# Each match has one of these, and looking for them takes a fraction of the time of the pattern.
_PARTS_OF_FAILS = (
    "fail", "block", "break", "broken", "reject", "refus", "hang", "hung", "crash", "denied",
    "error", " out",
)  # fmt: skip
# Words that put the cause outside of what was worked on.
_BLAMES = AnyCase(
    r"\b(?:because|due to|caused? by|caus(?:es|ed|ing)|(?:comes?|are|is|all|were|was) from"
    r"|pick(?:s|ed|ing) up|unrelated|not related|pre-?existing|left-?over|stale|missing"
    r"|not (?:from|caused|part|installed|available|our|my)|(?:hook|linter|sandbox|ci)\b)"
)
_LIST_ITEM = re.compile(r"\s*(?:[-*+•|>#]|\d{1,3}[.)])\s")
_NAME = re.compile(r"`([^`\s]{3,60})`")
_PATH = re.compile(r"[\w@.-]{1,60}(?:/[\w@.-]{1,60}){1,8}/?$|\.?[\w-]{2,40}\.\w{1,8}$")
_INSPECTION = re.compile(
    r"(?:ls|cat|head|tail|grep|rg|find|sed -n|wc|cd|echo|git (?:diff|log|status))\b"
)


def find_obstacles(turn: Turn) -> tuple[ProposedFact, ...]:
    edited = [path for event in turn.events if event.tool_name in EDITING
              if (path := path_of(event))]  # fmt: skip
    facts: dict[str, ProposedFact] = {}
    for position, event in enumerate(turn.events):
        for sentence in _blaming(event):
            for name in _blamed(sentence, edited):
                remedy = facts[name].note.partition(THEN)[2] if name in facts else ""
                remedy = remedy or _remedy(turn.events[position + 1 :], name, turn.project_dir)
                note = f"{sentence}{THEN}{remedy}" if remedy else sentence
                facts[name] = ProposedFact(
                    "fault", "", name, note=note, sources=(event.id,), status="candidate"
                )
    return tuple(facts.values())[:MAX_OBSTACLES]


def _blaming(event: ToolUse) -> Iterator[str]:
    """Not in lists: these tell what was changed."""
    if event.kind not in ("Statement", "Stop") or event.agent_id or not event.text:
        return
    text = event.text[:READ_STATEMENT]
    if text.isascii() and not any(map(text.lower().__contains__, _PARTS_OF_FAILS)):
        return
    if not (_FAILS.search(text) and _BLAMES.search(text)):
        return  # most statements, and no sentence of them need be looked at
    for line in text.splitlines():
        if _LIST_ITEM.match(line):
            continue
        for sentence in sentences(line):
            is_short = SHORTEST <= len(sentence) <= LONGEST
            if is_short and _FAILS.search(sentence) and _BLAMES.search(sentence):
                yield one_line(sentence)


def _blamed(sentence: str, edited: list[str]) -> Iterator[str]:
    """Files and folders that the turn did not edit; also the folder of each."""
    for marked in dict.fromkeys(_NAME.findall(sentence)):
        name = marked.rstrip("/")
        if not _PATH.match(marked) or any(_is_below(path, name) for path in edited):
            continue
        yield name
        folder = name.rpartition("/")[0]
        if "/" in folder:
            yield folder


def _is_below(path: str, name: str) -> bool:
    slashed = f"/{path}".replace("\\", "/")
    return slashed.endswith(f"/{name}") or f"/{name}/" in slashed


def _remedy(events: tuple[ToolUse, ...], name: str, project_dir: str) -> str:
    """The next command that did something about it."""
    for event in events:
        params = event.tool_input if isinstance(event.tool_input, dict) else {}
        command = params.get("command")
        if event.tool_name != "Bash" or not isinstance(command, str):
            continue
        if name in command and event.kind == "PostToolUse" and not _INSPECTION.match(command):
            shown = one_line(command[:READ_COMMAND].replace(f"{project_dir.rstrip('/')}/", ""))
            return f"`{shown}`" if len(shown) <= LONGEST_REMEDY else ""
    return ""
