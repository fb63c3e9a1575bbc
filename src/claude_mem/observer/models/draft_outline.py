"""The draft as a model gets it.

Of a draft that was made by rules, only what can be checked: names, figures, commands, files,
branches and commits. Its sentences would be copied, right or wrong. A revision that a model wrote
earlier is given in the format of the reply, because the model continues it.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from claude_mem.observer.local.facts import propose_facts
from claude_mem.observer.local.rules import proposed_rules
from claude_mem.types import Distillate, Observation, ProposedFact, Turn

MAX_FILES, MAX_NAMES, MAX_FIGURES, MAX_COMMANDS = 24, 40, 16, 12

LONGEST_NAME, LONGEST_NAME_WORDS = 80, 4
# Names that are written like code: paths, options, snake_case, camelCase, CONSTANTS, calls, #12.
_NAME = re.compile(
    r"(?<![\w/.-])(?:--[a-z][\w-]{1,40}|#\d{1,7}|(?:[\w-]+/)+[\w.-]+|[A-Za-z]\w*(?:_\w+)+"
    r"|[a-z]+(?:[A-Z]\w*)+|[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]+)+|[A-Za-z_][\w.]{1,60}\(\))"
)
_FIGURE = re.compile(
    r"(?<![\w.,#/-])\d[\d.,]{0,20}+(?:\s?(?:%|x\b|ms\b|s\b|min\b|h\b|[kKMG]i?B\b|bytes\b|tokens\b"
    r"|lines\b|files\b|tests\b|passed\b|failed\b|errors\b|warnings\b))"
)


def format_draft(turn: Turn, draft: Distillate) -> str:
    return format_outline(turn, draft) if draft.model is None else format_revision(draft)


def format_outline(turn: Turn, draft: Distillate) -> str:
    summary = draft.summary
    texts = replace(summary, commands=(), faults=()).text
    text = "\n".join((*(o.text for o in draft.observations), texts))
    facts = propose_facts(turn)
    rules = proposed_rules(turn.prompt) if turn.prompt else ()
    commands = (run.text for run in summary.commands[:MAX_COMMANDS])
    faults = (fault.text for fault in summary.faults[:MAX_COMMANDS])
    rows = (
        ("type", _join(o.type for o in draft.observations)),
        ("files edited", _join(summary.files_edited, MAX_FILES)),
        ("files read", _join(summary.files_read, MAX_FILES)),
        ("commands", " ".join((*commands, *faults))),
        ("names", _join(_names(text), MAX_NAMES)),
        ("figures", _join(_FIGURE.findall(text), MAX_FIGURES)),
        ("git", _join(_artifact(fact) for fact in facts if fact.kind == "artifact")),
        ("answers of the user", _join(fact.value for fact in facts if fact.kind == "decision")),
        ("possible rules of the user", _join(f'"{rule.value}"' for rule in rules)),
    )
    return "\n".join(f"{name}: {value}" for name, value in rows if value) or "(nothing)"


def _names(text: str) -> Iterator[str]:
    for line in text.splitlines():
        spans = line.split("`")[1::2] if line.count("`") % 2 == 0 else ()
        yield from (span for span in spans if _is_name(span))
    yield from _NAME.findall(text)


def _is_name(span: str) -> bool:
    is_short = 2 <= len(span) <= LONGEST_NAME and len(span.split()) <= LONGEST_NAME_WORDS
    return is_short and span == span.strip() and any(map(str.isalnum, span))


def _artifact(fact: ProposedFact) -> str:
    return f"{fact.subject} {fact.value}" + (f" ({fact.note})" if fact.note else "")


def _join(values: Iterable[str], count: int = 12) -> str:
    return ", ".join(list(dict.fromkeys(value.strip() for value in values))[:count])


def format_revision(draft: Distillate) -> str:
    summary = draft.summary
    fields = (
        ("request", summary.request),
        ("investigated", summary.investigated),
        ("learned", summary.learned),
        ("completed", summary.completed),
        ("next_steps", summary.next_steps),
        ("notes", summary.notes),
        ("files_read", _format_list("file", summary.files_read)),
        ("files_edited", _format_list("file", summary.files_edited)),
    )
    return "\n".join(
        [*map(_format_observation, draft.observations), _format_block("summary", fields)]
    )


def _format_observation(observation: Observation) -> str:
    return _format_block("observation", (
        ("type", observation.type),
        ("title", observation.title),
        ("subtitle", observation.subtitle),
        ("narrative", observation.narrative),
        ("facts", _format_list("fact", observation.facts)),
        ("files_modified", _format_list("file", observation.files_modified)),
    ))  # fmt: skip


def _format_block(name: str, fields: Iterable[tuple[str, str | None]]) -> str:
    lines = [f"  <{field}>{text}</{field}>" for field, text in fields if text]
    return "\n".join([f"<{name}>", *lines, f"</{name}>"])


def _format_list(name: str, texts: tuple[str, ...]) -> str:
    return "".join(f"<{name}>{text}</{name}>" for text in texts)
