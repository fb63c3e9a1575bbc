"""Which words of a turn's memories come from outside: tool output, web pages, files, reports.

So are the words that the user pasted and did not type. What the agent repeats from there counts as
outside, too; what the user typed or the agent wrote for its tools does not, unless it had read it
before or replaced it. Names of files are outside: whoever
made a repository chose them.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain

from claude_mem.language.prompt import parse_prompt
from claude_mem.types import TOOL_FAILURE, Distillate, Json, Summary, Turn, TurnEvent
from claude_mem.word_runs import (
    Checksums,
    Run,
    RunFinder,
    four_word_sequences,
    hashes_of,
    is_run,
    runs_of,
    words_of,
)

MAX_HASHES = 400
MAX_OF_RECORD = 1_500
MIN_NAME = 2  # words of a command by which it is recognised
MAX_CHARS = 400_000  # of the outside text of a turn
_REPORTS = ("report",)
_PATHS = ("file_path", "path", "notebook_path", "pattern", "glob", "url")
_REPLACED = ("old_string", "old_str", "oldString")
_AGENT_KINDS = ("Statement", "Stop")


def with_outside_words(turn: Turn, distillate: Distillate) -> Distillate:
    """Adds the hashes of the runs of words that are from outside, in the texts of the distillate
    and in the record, which search and hints show as well."""
    distillate = replace(distillate, summary=_without_suggestions(turn, distillate.summary))
    in_texts = _sequences(_texts(distillate))
    in_record = _sequences(_statements(turn))
    outside = _OutsideText.of(turn, in_texts | in_record)
    copied = hashes_of(outside.outside_runs(in_texts), MAX_HASHES)
    reported = chain.from_iterable(map(runs_of, _limited(_reports(turn))))
    recorded = (
        *hashes_of(outside.outside_runs(in_record), MAX_OF_RECORD),
        *hashes_of(reported, MAX_OF_RECORD),
    )
    known = frozenset(copied)
    return replace(
        distillate,
        outside=copied,
        outside_of_record=tuple(dict.fromkeys(h for h in recorded if h not in known)),
    )


def _without_suggestions(turn: Turn, summary: Summary) -> Summary:
    """Removes commands that the agent ran because an error named them, and traps whose way around
    comes from what it read: nobody knows who wrote that."""
    if not (summary.faults or any(event.kind == TOOL_FAILURE for event in turn.events)):
        return summary
    return replace(
        summary,
        faults=tuple(f for f in summary.faults if not _is_named(turn, f.alternative)),
        commands=tuple(
            run for run in summary.commands if not _is_named(turn, run.command, TOOL_FAILURE)
        ),
    )


def _is_named(turn: Turn, command: str, kind: str = "") -> bool:
    """Whether the output of another command, or of another tool, names the command; before or after
    it was run."""
    words = words_of(command)
    if len(words) < MIN_NAME:
        return False
    name = f" {' '.join(words)} "
    return any(
        name in f" {' '.join(words_of(text))} "
        for event in turn.events
        if kind in ("", event.kind) and command not in _command(event.tool_input)
        for text in _read_by(event)
    )


def outside_words_in(turn: Turn, texts: Iterable[str]) -> tuple[str, ...]:
    """Hashes of those runs of the texts that the turn has from outside."""
    sequences = _sequences(texts)
    return hashes_of(_OutsideText.of(turn, sequences).outside_runs(sequences), MAX_HASHES)


@dataclass(frozen=True, slots=True)
class _OutsideText:
    """What the agent read, of the runs that are looked for: in this turn as runs, before it as
    words in a row, which is faster."""

    runs: frozenset[Run]
    own: frozenset[Run]
    earlier: str

    @classmethod
    def of(cls, turn: Turn, sequences: dict[Run, None]) -> "_OutsideText":
        """Reads events in their order: what the agent wrote after it had read it is not its own."""
        finder = RunFinder(sequences)
        prompt = parse_prompt(turn.prompt or "")
        own = set(finder.find(prompt.own if prompt.is_confirmed_plan else prompt.typed))
        not_typed = (part.text for part in prompt.parts if part.kind != "typed")
        outside = set(finder.find_in(_limited(not_typed))) - own
        outside |= set(finder.find_in(_limited(_names(turn))))
        outside |= Checksums(turn.unstored_words).find(sequences) - own
        remaining = MAX_CHARS
        for event in turn.events:
            if event.tool_input is not None:
                command = _command(event.tool_input)
                replaced, written = _replaced_and_written(event.tool_input)
                own |= finder.find(command)
                outside |= finder.find_in(_limited(replaced)) - own
                own |= finder.find_in(text for text in written if text != command) - outside
            texts = _read_by(event)
            # As one text: words that an output divides into blocks are in a row.
            outside |= finder.find("\n".join(_limited(texts, remaining))) - own
            if event.unstored_words:
                outside |= Checksums((event.unstored_words,)).find(sequences) - own
            remaining -= sum(map(len, texts))
        earlier = f" {' '.join(words_of(turn.earlier_output))} " if turn.earlier_output else ""
        return cls(frozenset(outside), frozenset(own), earlier)

    def outside_runs(self, sequences: dict[Run, None]) -> Iterator[Run]:
        """Returns those of the four words in a row that are runs, and from outside."""
        if not self.earlier and sequences.keys().isdisjoint(self.runs):
            return iter(())
        has = self._has if self.earlier else self.runs.__contains__
        return filter(is_run, filter(has, sequences))

    def _has(self, run: Run) -> bool:
        return run in self.runs or (run not in self.own and f" {' '.join(run)} " in self.earlier)


def _sequences(texts: Iterable[str]) -> dict[Run, None]:
    """Each once, in order; so are the texts, as a statement is also part of the record. Which of
    them are runs is asked of those from outside: these are few."""
    return dict.fromkeys(chain.from_iterable(map(four_word_sequences, dict.fromkeys(texts))))


def _read_by(event: TurnEvent) -> list[str]:
    texts = [part.text for part in event.parts if part.kind in _REPORTS]
    if event.tool_response is not None:
        texts += [text for _, text in _named_strings(event.tool_response)]
    if event.kind not in _AGENT_KINDS:
        texts.append(event.text or "")
    return texts


def _command(value: Json) -> str:
    """A command that the agent runs is its own, also one that a file suggests."""
    command = value.get("command") if isinstance(value, dict) else None
    return command if isinstance(command, str) else ""


def _replaced_and_written(value: Json) -> tuple[list[str], list[str]]:
    """What was in a file before, and what the agent wrote for a tool."""
    texts = _named_strings(value)
    replaced = [text for name, text in texts if name in _REPLACED]
    return replaced, [text for name, text in texts if name not in _REPLACED]


def _limited(texts: Iterable[str], remaining: int = MAX_CHARS) -> Iterator[str]:
    for text in texts:
        if remaining <= 0:
            return
        yield text[:remaining]
        remaining -= len(text)


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


def _named_strings(value: Json) -> list[tuple[str, str]]:
    """All texts in a JSON value, with the name of the nearest field; in order."""
    strings: list[tuple[str, str]] = []
    remaining: list[tuple[str, Json]] = [("", value)]
    while remaining:
        name, inner = remaining.pop()
        if isinstance(inner, str):
            strings.append((name, inner))
        elif isinstance(inner, dict):
            remaining.extend(reversed(inner.items()))
        elif isinstance(inner, list):
            remaining.extend((name, item) for item in reversed(inner))
    return strings
