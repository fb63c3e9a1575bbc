"""Which words of a turn's memories come from outside: tool output, web pages, files, reports.

What the agent repeats from there counts as outside, too; what the user typed or the agent wrote for
its tools does not, unless it had read it before or replaced it. Names of files are outside: whoever
made a repository chose them.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain

from claude_mem.types import Distillate, Json, ToolUse, Turn
from claude_mem.word_runs import Run, RunFinder, hashes_of, runs_of, words_of

MAX_HASHES = 400
MAX_OF_RECORD = 1_500
MAX_CHARS = 400_000  # of the outside text of a turn
_REPORTS = ("report",)
_PATHS = ("file_path", "path", "notebook_path", "pattern", "glob", "url")
_REPLACED = ("old_string", "old_str", "oldString")
_AGENT_KINDS = ("Statement", "Stop")


def with_outside_words(turn: Turn, distillate: Distillate) -> Distillate:
    """With the hashes of the runs of words that are from outside, in its texts and in the record,
    which search and hints show as well."""
    in_texts = _runs(_texts(distillate))
    in_record = _runs(_statements(turn))
    outside = _OutsideText.of(turn, RunFinder((*in_texts, *in_record)))
    copied = hashes_of(outside.among(in_texts), MAX_HASHES)
    reported = chain.from_iterable(map(runs_of, _limited(_reports(turn))))
    recorded = (
        *hashes_of(outside.among(in_record), MAX_OF_RECORD),
        *hashes_of(reported, MAX_OF_RECORD),
    )
    known = frozenset(copied)
    return replace(
        distillate,
        outside=copied,
        outside_of_record=tuple(dict.fromkeys(h for h in recorded if h not in known)),
    )


@dataclass(frozen=True, slots=True)
class _OutsideText:
    """What the agent read, of the runs that are looked for: in this turn as runs, before it as
    words in a row, which is faster."""

    runs: frozenset[Run]
    own: frozenset[Run]
    earlier: str

    @classmethod
    def of(cls, turn: Turn, finder: RunFinder) -> "_OutsideText":
        """In the order of events: what the agent wrote after it had read it is not its own."""
        own = set(finder.find(turn.prompt or ""))
        outside = _found(finder, _limited(_names(turn)))
        remaining = MAX_CHARS
        for event in turn.events:
            if event.tool_input is not None:
                own |= finder.find(_command(event.tool_input))
                outside |= _found(finder, _limited(_replaced(event.tool_input))) - own
                own |= _found(finder, _written(event.tool_input)) - outside
            for text in _read_by(event):
                outside |= finder.find(text[: max(0, remaining)]) - own
                remaining -= len(text)
        earlier = f" {' '.join(words_of(turn.earlier_output))} " if turn.earlier_output else ""
        return cls(frozenset(outside), frozenset(own), earlier)

    def among(self, runs: Iterable[Run]) -> Iterator[Run]:
        """Those of the runs that are from outside."""
        return filter(self._has if self.earlier else self.runs.__contains__, runs)

    def _has(self, run: Run) -> bool:
        return run in self.runs or (run not in self.own and f" {' '.join(run)} " in self.earlier)


def _runs(texts: Iterable[str]) -> dict[Run, None]:
    """Each once, in order; so are the texts, as a statement is also part of the record."""
    return dict.fromkeys(chain.from_iterable(map(runs_of, dict.fromkeys(texts))))


def _found(finder: RunFinder, texts: Iterator[str]) -> set[Run]:
    return {run for text in texts for run in finder.find(text)}


def _read_by(event: ToolUse) -> Iterator[str]:
    for part in event.parts:
        if part.kind in _REPORTS:
            yield part.text
    if event.tool_response is not None:
        yield from _strings(event.tool_response)
    if event.kind not in _AGENT_KINDS:
        yield event.text or ""


def _command(value: Json) -> str:
    """A command that the agent runs is its own, also one that a file suggests."""
    command = value.get("command") if isinstance(value, dict) else None
    return command if isinstance(command, str) else ""


def _written(value: Json) -> Iterator[str]:
    """What the agent wrote for a tool; not what it names to replace it."""
    yield from (text for name, text in _named_strings("", value) if name not in _REPLACED)


def _replaced(value: Json) -> Iterator[str]:
    """What was in a file before."""
    yield from (text for name, text in _named_strings("", value) if name in _REPLACED)


def _limited(texts: Iterator[str]) -> Iterator[str]:
    remaining = MAX_CHARS
    for text in texts:
        yield text[:remaining]
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


def _statements(turn: Turn) -> Iterator[str]:
    """What the agent wrote to the user."""
    for event in turn.events:
        if event.kind in _AGENT_KINDS:
            yield event.text or ""
        yield from (part.text for part in event.parts if part.kind not in _REPORTS)


def _strings(value: Json) -> Iterator[str]:
    """All texts in a JSON value."""
    yield from (text for _, text in _named_strings("", value))


def _named_strings(name: str, value: Json) -> Iterator[tuple[str, str]]:
    """All texts in a JSON value, with the name of the nearest field."""
    if isinstance(value, str):
        yield name, value
    elif isinstance(value, dict):
        for field, item in value.items():
            yield from _named_strings(field, item)
    elif isinstance(value, list):
        for item in value:
            yield from _named_strings(name, item)
