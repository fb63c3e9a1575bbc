"""The typed values of a summary as JSON: in their columns, in records and in exports.

Reading is strict: a value of another shape raises ValueError, so that an export is checked by the
same code that later reads the column.
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, replace
from typing import TypeVar

from claude_mem.types import (
    COMMAND_OUTCOMES,
    COMMAND_PURPOSES,
    CommandRun,
    EnvironmentFault,
    Json,
    OpenStep,
    ProposedFact,
    Summary,
)

Fact = CommandRun | EnvironmentFault | OpenStep
T = TypeVar("T", bound=CommandRun | EnvironmentFault | OpenStep | ProposedFact)
Choice = TypeVar("Choice", bound=str)
Item = dict[str, Json]


def fact_values(summary: Summary) -> dict[str, object]:
    """The columns of a summary's facts."""
    return {
        "commands": facts_json(summary.commands),
        "faults": facts_json(summary.faults),
        "open_steps": facts_json(summary.open_steps),
    }


def facts_json(facts: Iterable[Fact]) -> str:
    return json.dumps([asdict(fact) for fact in facts], ensure_ascii=False)


def commands_from(value: Json) -> tuple[CommandRun, ...]:
    return _facts_from(value, _command)


def faults_from(value: Json) -> tuple[EnvironmentFault, ...]:
    return _facts_from(value, _fault)


def open_steps_from(value: Json) -> tuple[OpenStep, ...]:
    return _facts_from(value, _open_step)


READERS: dict[str, Callable[[Json], tuple[Fact, ...]]] = {
    "commands": commands_from,
    "faults": faults_from,
    "open_steps": open_steps_from,
}


def fact_texts(record: dict[str, Json], column: str) -> list[str]:
    """The facts in a column of a record, as sentences to show; empty where it has none."""
    read = READERS.get(column)
    return [fact.text for fact in read(record[column])] if read and column in record else []


def with_sources(
    facts: Iterable[T], translate: Callable[[tuple[int, ...]], tuple[int, ...]]
) -> tuple[T, ...]:
    """The same facts with the ids that their source events have elsewhere."""
    return tuple(replace(fact, sources=translate(fact.sources)) for fact in facts)


def _facts_from(value: Json, read: Callable[[Item], T]) -> tuple[T, ...]:
    if not isinstance(value, list):
        raise ValueError("not a list")
    return tuple(read(_object(item)) for item in value)


def _command(item: Item) -> CommandRun:
    return CommandRun(
        command=_text(item, "command"),
        purpose=_one_of(COMMAND_PURPOSES, _text(item, "purpose")),
        outcome=_one_of(COMMAND_OUTCOMES, _text(item, "outcome")),
        counts=_text(item, "counts"),
        sources=_sources(item),
        scope=_text(item, "scope") if "scope" in item else "",
    )


def _fault(item: Item) -> EnvironmentFault:
    return EnvironmentFault(
        command=_text(item, "command"),
        error=_text(item, "error"),
        alternative=_text(item, "alternative"),
        sources=_sources(item),
    )


def _open_step(item: Item) -> OpenStep:
    evidence = _text(item, "evidence") if "evidence" in item else ""
    return OpenStep(_text(item, "text"), _sources(item), evidence)


def _object(item: Json) -> Item:
    if not isinstance(item, dict):
        raise ValueError("not an object")
    return item


def _text(item: Item, name: str) -> str:
    value = item.get(name)
    if not isinstance(value, str):
        raise ValueError(f"no {name}")
    return value


def _one_of(choices: tuple[Choice, ...], text: str) -> Choice:
    for choice in choices:
        if choice == text:
            return choice
    raise ValueError(f"must be one of {', '.join(choices)}")


def _sources(item: Item) -> tuple[int, ...]:
    value = item.get("sources")
    if not isinstance(value, list):
        raise ValueError("no sources")
    ids = tuple(source for source in value if type(source) is int)
    if len(ids) != len(value):
        raise ValueError("a source that is not an id")
    return ids
