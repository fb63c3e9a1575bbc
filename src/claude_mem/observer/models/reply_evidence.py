"""Drops from a parsed reply what the turn does not show: echoes of our own prompt, and statements
that name a file, hash or command that occurs nowhere in the turn.

A weak model copies the form that it was given, and invents names. The draft keeps its value where
nothing of a field remains.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from claude_mem.observer.local.markdown import sentences
from claude_mem.observer.models.prompts import REPLY_FORM, system_prompt
from claude_mem.observer.models.replies import Parsed, PartialObservation
from claude_mem.types import Distillate, Json, Summary, Turn, TurnEvent

MIN_ECHO_WORDS = 4  # fewer words in a row may stand in a prompt and in a report by chance
_WORD = re.compile(r"\w+")
_HASH = re.compile(r"(?<![\w-])(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}(?![\w-])")
_CODE = re.compile(r"`([^`\n]{2,200})`")
# A path: of several parts, or of two that are no plain words (`and/or`); a name such as `main.go`.
_PATH = re.compile(
    r"(?<![\w/:.@<-])(?:"
    r"(?:~|\.{1,2})?/?[\w@.-]+(?:/[\w@.-]+){2,}"
    r"|(?:~|\.{1,2})?/[\w@.-]+/[\w@.-]+"
    r"|(?=[\w@/]*[-_.])[\w@.-]+/[\w@.-]*\w"
    r"|\w[\w-]+(?:\.[a-z]{1,5})+\b(?!\()"
    r")"
)
_PLACE = re.compile(
    r"(?::\d{1,9}){1,3}(?:-\d{1,9})?$|#L\d{1,9}(?:-L?\d{1,9})?$"
)  # of a line in a file
_CHOICE = "|"  # between the values that the form offers
_CALL = re.compile(r"\([^()]*\)$")
_PLACEHOLDER = re.compile(r">([^<>]+)<")


def check_reply(turn: Turn, draft: Distillate, parsed: Parsed) -> list[str]:
    """Reduce `parsed` to what the turn supports; returns the texts that were dropped."""
    check = _Check(_Evidence.of(turn, draft))
    observations = [check.observation(observation) for observation in parsed.observations]
    parsed.observations = [o for o in observations if o is not None]
    if parsed.summary is not None:
        summary = check.summary(parsed.summary)
        has_content = summary.text or summary.files_read or summary.files_edited
        parsed.summary = summary if has_content else None
    parsed.skip_reason = check.text(parsed.skip_reason) or ""
    return check.dropped


def is_placeholder(text: str) -> bool:
    """Whether it is a text that the form of the reply has in place of a value."""
    return tuple(_words(text)) in _PLACEHOLDERS


@dataclass(frozen=True, slots=True)
class _Evidence:
    text: str  # all of the turn, in lower case, white space folded
    inputs: str  # of its tools, likewise: what names a file here touched it
    directories: tuple[str, ...]

    @classmethod
    def of(cls, turn: Turn, draft: Distillate) -> "_Evidence":
        summary = draft.summary
        files = [*summary.files_read, *summary.files_edited]
        for observation in draft.observations:
            files += [*observation.files_read, *observation.files_modified]
        texts = [
            turn.prompt or "",
            turn.project.name,
            *map(_output, turn.events),
            _draft_text(draft),
        ]
        inputs = [*files, *map(_input, turn.events)]
        directories = {turn.project_dir, *(event.cwd for event in turn.events)}
        return cls(
            text=_folded("\n".join((*inputs, *texts))),
            inputs=_folded("\n".join(inputs)),
            directories=tuple(f"{d.rstrip('/')}/".lower() for d in directories if d),
        )

    def touched(self, path: str) -> bool:
        return self._local(path) in self.inputs

    def has_file(self, path: str) -> bool:
        return self._local(path) in self.text

    def has_code(self, code: str) -> bool:
        """A file, a name, or a command: its words, of which the first two stand together."""
        words = _folded(_CALL.sub("", code)).split()
        return self.has_file(code) or all(
            word in self.text for word in (" ".join(words[:2]), *words[2:])
        )

    def _local(self, path: str) -> str:
        path = _PLACE.sub("", _folded(path).strip("`'\" ")).removeprefix("./").rstrip("/")
        for directory in self.directories:
            path = path.removeprefix(directory)
        return path


@dataclass(slots=True)
class _Check:
    evidence: _Evidence
    dropped: list[str] = field(default_factory=list)

    def observation(self, observation: PartialObservation) -> PartialObservation | None:
        checked = replace(
            observation,
            title=self.text(observation.title),
            subtitle=self.text(observation.subtitle),
            narrative=self.text(observation.narrative),
            facts=self.items(observation.facts),
            rejected=self.items(observation.rejected),
            status=self.text(observation.status),
            concepts=self.names(observation.concepts),
            files_read=self.files(observation.files_read, self.evidence.has_file),
            files_modified=self.files(observation.files_modified, self.evidence.touched),
        )
        had_text = any((observation.title, observation.narrative, observation.facts))
        has_text = any((checked.title, checked.narrative, checked.facts, checked.rejected))
        return checked if has_text or not had_text else None

    def summary(self, summary: Summary) -> Summary:
        return replace(
            summary,
            request=self.text(summary.request),
            investigated=self.text(summary.investigated),
            learned=self.text(summary.learned),
            completed=self.text(summary.completed),
            next_steps=self.text(summary.next_steps),
            notes=self.text(summary.notes),
            files_read=self.files(summary.files_read, self.evidence.has_file),
            files_edited=self.files(summary.files_edited, self.evidence.touched),
        )

    def text(self, text: str | None) -> str | None:
        """The sentences that hold, in their lines."""
        if not text:
            return text
        if self._holds(text):
            return text
        lines = (" ".join(filter(self._keeps, sentences(line))) for line in text.splitlines())
        return "\n".join(filter(None, lines)) or None

    def items(self, texts: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(kept for text in texts if (kept := self.text(text)))

    def names(self, texts: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(
            text for text in texts if not self._drops(_is_echo(text) or _CHOICE in text, text)
        )

    def files(self, paths: tuple[str, ...], is_known: Callable[[str], bool]) -> tuple[str, ...]:
        return tuple(path for path in paths if not self._drops(not is_known(path), path))

    def _keeps(self, sentence: str) -> bool:
        return not self._drops(not self._holds(sentence), sentence)

    def _holds(self, text: str) -> bool:
        return not (_is_echo(text) or self._names_something_else(text))

    def _names_something_else(self, text: str) -> bool:
        evidence = self.evidence
        plain = _CODE.sub(" ", text)
        return (
            any(match[0] not in evidence.text for match in _HASH.finditer(text.lower()))
            or not all(map(evidence.has_file, _paths(plain)))
            or not all(map(evidence.has_code, _CODE.findall(text)))
        )

    def _drops(self, is_dropped: bool, text: str) -> bool:
        if is_dropped:
            self.dropped.append(text)
        return is_dropped


def _paths(text: str) -> Iterator[str]:
    for match in _PATH.finditer(text):
        path = match[0].rstrip(".")
        if not path.replace("/", "").isdigit():  # a date, a share
            yield path


def _is_echo(text: str) -> bool:
    words = tuple(_words(text))
    if words in _PLACEHOLDERS:
        return True
    if len(words) < MIN_ECHO_WORDS:
        return False
    line = f" {' '.join(words)} "
    return line in _PROMPT_WORDS or any(echo in line for echo in _LONG_PLACEHOLDERS)


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


_PROMPT_WORDS = f" {' '.join(_words(system_prompt('normal')))} "
_PLACEHOLDERS = frozenset(
    tuple(words) for text in _PLACEHOLDER.findall(REPLY_FORM) if (words := _words(text))
)
_LONG_PLACEHOLDERS = tuple(
    f" {' '.join(words)} " for words in _PLACEHOLDERS if len(words) >= MIN_ECHO_WORDS
)


def _folded(text: str) -> str:
    return " ".join(text.lower().split())


def _input(event: TurnEvent) -> str:
    return _strings(event.tool_input)


def _output(event: TurnEvent) -> str:
    return "\n".join(
        (_strings(event.tool_response), event.text or "", *(p.text for p in event.parts))
    )


def _draft_text(draft: Distillate) -> str:
    texts = (draft.title or "", draft.summary.text, *(o.text for o in draft.observations))
    return "\n".join(texts)


def _strings(value: Json) -> str:
    """All texts of a value, one a line."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return "\n".join(map(_strings, value.values()))
    if isinstance(value, list):
        return "\n".join(map(_strings, value))
    return "" if value is None else str(value)
