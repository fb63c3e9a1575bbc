"""Finds secrets in texts and in JSON values, and replaces them.

The finders are imported with the first text: compiling their patterns takes longer than most
commands, and most commands redact nothing.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING

from claude_mem.redaction.names import LONGEST_NAME, Certainty, certainty
from claude_mem.redaction.spans import MARK, Span
from claude_mem.types import Json

if TYPE_CHECKING:
    from claude_mem.redaction.word_patterns import Subject

PASSES = 4
SHORTEST = 6  # characters of a text that can hold a secret
_LONGEST_REMEMBERED, _MOST_REMEMBERED = 400, 2_000  # characters, texts
_SHORTEST_RECENT, _RECENT_CHARACTERS = 100, 256 * 1024
_LONGEST_COMMAND = 100  # items of a list that may be a command
# An identifier without a name: no finder takes it for a secret.
_UUID_LENGTH = 36
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_NAME_KEYS = ("name", "key", "Name", "Key", "ParameterKey")
_VALUE_KEYS = frozenset((
    "value", "Value", "ParameterValue", "default", "Default", "defaultValue", "DefaultValue",
))  # fmt: skip


@cache
def _finders() -> "tuple[Callable[[Subject], Iterable[Span]], ...]":
    from claude_mem.redaction.assignments import find_assigned_secrets
    from claude_mem.redaction.commands import find_command_secrets
    from claude_mem.redaction.cookies import find_cookies
    from claude_mem.redaction.formats import find_formats
    from claude_mem.redaction.private_keys import find_private_keys
    from claude_mem.redaction.urls import find_url_secrets
    from claude_mem.redaction.vendors import find_vendor_tokens

    return (
        find_private_keys,
        find_formats,
        find_cookies,
        find_command_secrets,
        find_vendor_tokens,
        find_url_secrets,
        find_assigned_secrets,
    )


def load_finders() -> None:
    """Loads all finders before the first event: one that a worker is reading when it is killed is
    under suspicion, so reading must take no time for imports."""
    Redactor().redact_json({"load": "all finders"})


class Redactor:
    def __init__(self, allowed: tuple[str, ...] = ()) -> None:
        self._allowed = frozenset(allowed)
        # Short texts without a secret: a quarter of all tool calls repeat an earlier one.
        self._harmless: set[str] = set()
        self._recent: set[str] = set()  # long texts of JSON values, without a secret
        self._recent_characters = 0

    def redact(self, text: str) -> str:
        """Redacts again until nothing changes: what is removed may have hidden another secret."""
        for _ in range(PASSES):
            spans = self._spans(text)
            if not spans:
                break
            text = cut_out(text, spans)
        return text

    def redact_json(self, value: Json) -> Json:
        """All texts of a value are searched at once: few hold a secret, and most are short. Each
        is searched once: the result of an edit repeats what was to be replaced, and the end of a
        turn its last message."""
        texts: list[str] = []
        gives_away = self._collect(value, texts)
        fresh = [text for text in dict.fromkeys(texts) if text not in self._recent]
        if gives_away or self._spans("\n".join(fresh)):
            return self._redact_value(value)
        self._remember(fresh)
        return value

    def _remember(self, texts: list[str]) -> None:
        long_texts = [text for text in texts if len(text) >= _SHORTEST_RECENT]
        self._recent_characters += sum(map(len, long_texts))
        if self._recent_characters > _RECENT_CHARACTERS:
            self._recent.clear()
            self._recent_characters = sum(map(len, long_texts))
        self._recent.update(long_texts)

    def _spans(self, text: str) -> list[Span]:
        if len(text) < SHORTEST or text in self._harmless:
            return []
        spans = [*self._found(text), *self._spans_as_read(text)]
        if not spans and len(text) <= _LONGEST_REMEMBERED:
            if len(self._harmless) >= _MOST_REMEMBERED:
                self._harmless.clear()
            self._harmless.add(text)
        return spans

    def _found(self, text: str) -> list[Span]:
        from claude_mem.redaction.word_patterns import Subject

        finders = _finders()  # first: the clues of a text are those of the finders that are there
        subject = Subject(text)
        return [
            span
            for find in finders
            for span in find(subject)
            if not self._is_allowed(text[span.start : span.end])
        ]

    def _spans_as_read(self, text: str) -> Iterator[Span]:
        from claude_mem.redaction.views import spans_as_read

        for span in spans_as_read(text, self._found):
            if not self._is_allowed(text[span.start : span.end]):
                yield span

    def _collect(self, value: Json, texts: list[str], outer: str = "") -> bool:
        """Appends the names and texts of a value; whether a name alone gives a secret away."""
        if isinstance(value, str):
            if len(value) != _UUID_LENGTH or not _UUID.fullmatch(value):
                texts.append(value)
            return _judge_pair(outer, value) is not None
        if isinstance(value, list):
            if command := _command_line(value):
                texts.append(command)
            inner = [self._collect(item, texts, name) for name, item in _items(value, outer)]
            return any(inner)
        if isinstance(value, dict):
            texts += value
            of_values, gives_away = _name_of_values(value, outer), False
            for key, item in value.items():  # no generator: for every member of every event
                if isinstance(item, str | list | dict):
                    name = of_values if of_values and key in _VALUE_KEYS else key
                    gives_away = self._collect(item, texts, name) or gives_away
            return gives_away
        return False

    def _redact_value(self, value: Json, outer: str = "") -> Json:
        """A value is judged together with its name: {"password": "…"} is an assignment."""
        if isinstance(value, str):
            return self._redact_text(value, outer)
        if isinstance(value, list):
            items = self._redact_command(value)
            return [self._redact_value(item, name) for name, item in _items(items, outer)]
        if isinstance(value, dict):
            of_values = _name_of_values(value, outer)
            return {
                self.redact(key): self._redact_value(
                    item, of_values if of_values and key in _VALUE_KEYS else key
                )
                for key, item in value.items()
            }
        return value

    def _redact_text(self, text: str, name: str) -> str:
        redacted = self.redact(text)
        if redacted != text or self._is_allowed(text):
            return redacted
        kind = _judge_pair(name, text)
        return f"{MARK}{kind}]" if kind else text

    def _redact_command(self, items: list[Json]) -> list[Json]:
        """Searches ["curl", "-u", "me:…"] as the command that it is."""
        command = _command_line(items)
        spans = self._spans(command) if command else []
        if not spans:
            return items
        redacted: list[Json] = []
        start = 0
        for item in map(str, items):
            end = start + len(item)
            inside = [
                Span(max(span.start, start) - start, min(span.end, end) - start, span.kind)
                for span in spans
                if span.start < end and span.end > start
            ]
            redacted.append(cut_out(item, inside))
            start = end + 1
        return redacted

    def _is_allowed(self, value: str) -> bool:
        return value in self._allowed or value.startswith(MARK)


def cut_out(text: str, spans: Iterable[Span]) -> str:
    """The text with each span replaced by its kind; of spans that overlap, the first names it."""
    parts: list[str] = []
    done = 0
    for span in sorted(spans):
        if span.start >= done:
            parts += (text[done : span.start], f"{MARK}{span.kind}]")
        done = max(done, span.end)
    return "".join((*parts, text[done:])) if parts else text


def _judge_pair(name: str, value: str) -> str | None:
    """The kind of secret that a value is by its name, or by the flag before it in a list."""
    if not name or len(name) > LONGEST_NAME or certainty(name) is Certainty.NONE:
        return None
    from claude_mem.redaction.judging import secret_kind

    return secret_kind(name, value)


def _items(items: list[Json], outer: str) -> Iterator[tuple[str, Json]]:
    """Each item with the flag before it, or with the name of the list."""
    flag: Json = None
    for item in items:
        yield flag if isinstance(flag, str) and flag.startswith("-") else outer, item
        flag = item


def _name_of_values(members: dict[str, Json], outer: str) -> str:
    """The name that `value` and its like have: NAME of {"name": "NAME", "value": "…"} and of
    {"NAME": {"value": "…"}}."""
    if _VALUE_KEYS.isdisjoint(members):
        return outer
    names = (members.get(key) for key in _NAME_KEYS)
    return next((name for name in names if isinstance(name, str)), outer)


def _command_line(items: list[Json]) -> str | None:
    if not 1 < len(items) <= _LONGEST_COMMAND:
        return None
    words = [item for item in items if isinstance(item, str)]
    if len(words) < len(items) or not any(word.startswith("-") for word in words):
        return None
    return " ".join(words)
