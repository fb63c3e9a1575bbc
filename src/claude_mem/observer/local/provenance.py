"""Which words of a turn's memories come from outside: tool output, web pages, files, reports.

What the agent repeats from there counts as outside, too; what the user typed or the agent wrote for
its tools does not. Names of files are outside: whoever made a repository chose them.
"""

from collections.abc import Iterator

from claude_mem.types import Distillate, Json, Turn
from claude_mem.word_runs import hashes_of, runs_of

MAX_HASHES = 400
MAX_OF_REPORTS = 1_500
MAX_CHARS = 400_000  # of the outside text of a turn
_REPORTS = ("report",)
_PATHS = ("file_path", "path", "notebook_path", "pattern", "glob", "url")
_AGENT_KINDS = ("Statement", "Stop")


def outside_hashes(turn: Turn, distillate: Distillate) -> tuple[str, ...]:
    """Of the runs of words in the memories and facts that are from outside."""
    runs = dict.fromkeys(run for text in _texts(distillate) for run in runs_of(text))
    names = set(_runs(_names(turn)))
    outside = set(_runs(_outside(turn))) - set(_runs(_own(turn))) | names
    copied = hashes_of((run for run in runs if run in outside), MAX_HASHES)
    # The record has reports in full, and search finds them there.
    return tuple(dict.fromkeys((*copied, *hashes_of(_runs(_reports(turn)), MAX_OF_REPORTS))))


def _runs(texts: Iterator[str]) -> Iterator[str]:
    remaining = MAX_CHARS
    for text in texts:
        yield from runs_of(text[:remaining])
        remaining -= len(text)
        if remaining <= 0:
            return


def _texts(distillate: Distillate) -> Iterator[str]:
    summary = distillate.summary
    yield from (summary.text, *summary.files_read, *summary.files_edited)
    yield from (fault.error for fault in summary.faults)
    yield from (step.text for step in summary.open_steps)
    yield from (distillate.title or "", distillate.subtitle or "")
    for observation in distillate.observations:
        yield observation.text
        yield from (*observation.files_read, *observation.files_modified)
    for fact in distillate.facts:
        yield from (fact.subject, fact.value, fact.note)


def _names(turn: Turn) -> Iterator[str]:
    for event in turn.events:
        params = event.tool_input
        if isinstance(params, dict):
            yield from (str(params[name]) for name in _PATHS if name in params)


def _reports(turn: Turn) -> Iterator[str]:
    for event in turn.events:
        yield from (part.text for part in event.parts if part.kind in _REPORTS)


def _outside(turn: Turn) -> Iterator[str]:
    yield from _reports(turn)
    for event in turn.events:
        yield from _strings(event.tool_response)
        if event.kind not in _AGENT_KINDS:
            yield event.text or ""


def _own(turn: Turn) -> Iterator[str]:
    yield turn.prompt or ""
    for event in turn.events:
        yield from _strings(event.tool_input)


def _strings(value: Json) -> Iterator[str]:
    """All texts in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
