"""What still holds in a project: rules of the user, decisions, gotchas, faults and commands."""

import re
from collections.abc import Iterator, Sequence

from claude_mem.recall.handover.lines import (
    LOCAL,
    Line,
    content_words,
    day_of,
    flat,
    id_of,
    is_clear,
    texts,
    unmarked,
)
from claude_mem.store.clock import iso
from claude_mem.store.listing import JsonRow
from claude_mem.store.supersession import compare_texts
from claude_mem.types import Fact

MIN_SIGHTINGS = 2  # of a command or fault, before it counts as the project's
RECURRING = 4  # sightings of a fault
MAX_FAULTS, MAX_RULES, MAX_DECISIONS, MAX_GOTCHAS = 2, 6, 2, 3
TEST, CHECK, RUN = "test", "check", "run"  # purposes of commands
BUILD = "build"  # a check by its purpose
SAME_WORK = 3  # words that a decision and a commit about it have in common
MAX_SAVED, MAX_CHECKS = 6, 3
MAX_PINNED = 10
MAX_SCOPES = 2  # folders with a command of their own
MAX_COMPARED = 40  # titles, each with every newer one
LONGEST_QUESTION, LONGEST_RULE = 110, 430
SAVED_BY = ("person", "agent")  # the observer of a memory that was saved explicitly
_AGENT_NOTE = "The agent noted: "
_RECOMMENDED = re.compile(r"\(recommended\)", re.IGNORECASE)
_REPLY_BEFORE = re.compile(r"(?:yes|no|ok|okay|sure)[,.]? (?:and|but) ", re.IGNORECASE)
# Questions about the next step, not about the project.
_PASSING = re.compile(
    r"\b(?:push|commit\w*|fixups?|merge|rebase|ready|proceed|continue|go ahead|approve|remove it"
    r"|delete)\b",
    re.IGNORECASE,
)
_BARE = re.compile(
    r"(?:yes|no|ok|sure|other|both|all|none|skip)\b[\s,.!]*+(?:\w++[\s,.!]*+){0,2}$", re.IGNORECASE
)
# What restricts later work, in contrast to what was merely done.
_CONSTRAINT = re.compile(
    r"\b(?:must|cannot|can't|don't|doesn't|does not|do not|won't|never|always|only|fails?|breaks?"
    r"|requires?|needs?|keeps?|instead|because|no longer|without|steals?|loses?|ignores?)\b",
    re.IGNORECASE,
)
_BUILDS = re.compile(r"\b(?:build|compile|assemble)\b")
# Of the toolchain: everyone knows it.
_USUAL_BUILD = re.compile(r"(?:go|cargo|dotnet|swift|zig) build\b")
# A command of the project as a whole: no file, no filter, no side effect.
_PARTIAL = re.compile(
    r"(?:^|\s)(?:-run|-k|-t|-g|--grep|--filter|--testNamePattern|--count|-count|-v|-x|--bail)\b"
    r"|\.(?:py|ts|tsx|js|jsx|go|rs|java|rb|php|cs|kt|swift|c|cc|cpp|h|sh|ps1)\b"
    r"|\b(?:go (?:test|vet|build)|golangci-lint run) (?!\./\.\.\.(?: |$))(?:\S{1,80} ){0,6}\.{1,2}/"
    r"|[:-]fix\b|--write\b|\bformat\b|\w:(?:build|compile)\b"
    r"|\b(?:go|cargo|dotnet) run\b(?: \S+){2}|\brun -- "
    r"|/tmp\b|\bgit\b|\brm\b|[<>|;&$'`\x22\\]|\bsleep\b|\bcurl\b"
)


def rules(facts: Sequence[Fact]) -> Iterator[Line]:
    for fact in _of(facts, "rule")[:MAX_RULES]:
        text = _REPLY_BEFORE.sub("", fact.value)
        line = flat(f'- The user, {_day(fact)}: "{text}"', LONGEST_RULE)
        yield Line(line, subject=fact.value, is_quote=True)


def pinned(memories: Sequence[JsonRow]) -> Iterator[Line]:
    for memory in memories[:MAX_PINNED]:
        identity, text = str(memory["id"]), str(memory["text"] or "")
        by = _AGENT_NOTE if memory["changed_by"] == "agent" else ""
        line = f'- The user, {day_of(memory)}: "{text}"' if memory["prompt"] else f"- {by}{text}"
        yield Line(f"{flat(line)} {identity}", subject=text, ids=(identity,))


def pinned_facts(facts: Sequence[Fact]) -> Iterator[Line]:
    """Those that are not shown first by their kind anyway."""
    for fact in facts:
        is_usual = fact.kind == "command" and fact.subject in (TEST, CHECK, RUN)
        if fact.is_pinned and fact.kind != "rule" and not is_usual:
            text = _fact_text(fact)
            yield Line(flat(f"- {text}"), subject=fact.subject or text)


def _fact_text(fact: Fact) -> str:
    where = f" in {fact.scope}" if fact.scope else ""
    if fact.kind == "fault":
        return f"`{fact.subject}` fails here; `{fact.value}` works"
    if fact.kind == "decision" and fact.subject:
        return f"Decided {_day(fact)}: {fact.subject} {fact.value}"
    return f"{fact.subject}: {fact.value}{where}" if fact.subject else f"{fact.value}{where}"


def saved(observations: Sequence[JsonRow]) -> Iterator[Line]:
    """What the user or the agent saved explicitly, the latest first."""
    rows = [o for o in observations if o["observer"] in SAVED_BY and o["title"]]
    for observation in _current(rows)[:MAX_SAVED]:
        by = "" if observation["observer"] == "person" else _AGENT_NOTE
        text = flat(f"- {by}{observation['title']} {id_of(observation)}")
        yield Line(text, subject=str(observation["title"]), ids=(id_of(observation),))


def decisions(
    facts: Sequence[Fact], commits: Sequence[str] = (), since: str = ""
) -> Iterator[Line]:
    """Answers of the user to questions of the agent that are about the project. One that was given
    once, before the day of the last session, is about work that is over; what was committed about
    it says what became of it."""
    subjects = [content_words(commit) for commit in commits]
    count = 0
    for fact in sorted(_of(facts, "decision"), key=lambda f: (-f.is_pinned, -f.last_seen_ms, f.id)):
        answer = _RECOMMENDED.sub("", fact.value).strip()
        question = fact.subject.strip()
        is_old = _day(fact) < since
        if is_old and fact.count < MIN_SIGHTINGS and not fact.is_pinned:
            continue
        if not question:
            continue  # of a saved memory, which is shown itself
        words = content_words(f"{question} {answer}")
        if not fact.is_pinned and any(len(words & subject) >= SAME_WORK for subject in subjects):
            continue
        if len(question) > LONGEST_QUESTION or _PASSING.search(question) or _BARE.match(answer):
            continue
        count += 1
        if count > MAX_DECISIONS:
            return
        yield Line(flat(f"- Decided {_day(fact)}: {question} {answer}"), subject=question)


def gotchas(observations: Sequence[JsonRow]) -> Iterator[Line]:
    """Decisions and traps that a model wrote down, the latest of each subject."""
    count = 0
    kinds = [o for o in observations if o["type"] == "decision" or "gotcha" in texts(o["concepts"])]
    for observation in _current(kinds):
        title = unmarked(str(observation["title"] or ""))
        # A draft cannot tell what still holds from a problem that was fixed a moment later.
        if observation["observer"] == LOCAL:
            continue
        if not (is_clear(title) and _CONSTRAINT.search(title)):
            continue
        count += 1
        if count > MAX_GOTCHAS:
            return
        yield Line(
            flat(f"- {title} {id_of(observation)}"), subject=title, ids=(id_of(observation),)
        )


def faults(facts: Sequence[Fact]) -> Iterator[Line]:
    """Commands that fail here and have not worked since. One that failed again and again after it
    had worked will do so once more."""
    passed = {fact.value: fact for fact in _of(facts, "command") if "fail" not in fact.note}
    shown: set[str] = set()
    for fact in _of(facts, "fault"):
        later = passed.get(fact.subject)
        is_recurring = fact.count >= RECURRING and later and later.first_seen_ms < fact.last_seen_ms
        is_over = later is not None and later.last_seen_ms > fact.last_seen_ms
        is_over = is_over or (fact.status == "past" and later is None)
        is_over = (is_over and not is_recurring) or _is_replaced(fact, facts)
        if fact.count < MIN_SIGHTINGS or is_over or fact.subject in shown or fact.is_pinned:
            continue
        shown.add(fact.subject)
        if len(shown) > MAX_FAULTS:
            return
        note = f" ({fact.note})" if fact.note else ""
        yield Line(flat(f"- `{fact.subject}` fails here{note}; `{fact.value}` works"))


def _is_replaced(fault: Fact, facts: Sequence[Fact]) -> bool:
    """By another fault of the same command, with another way around it."""
    return any(fact.kind == "fault" and fact.id == fault.superseded_by for fact in facts)


def commands(facts: Sequence[Fact]) -> Iterator[Line]:
    """The usual commands to test, check, build and start the project."""
    faulty = {fact.subject for fact in _of(facts, "fault")}
    usual = [
        fact
        for fact in _of(facts, "command")
        if fact.is_pinned
        or (
            fact.count >= MIN_SIGHTINGS
            and not _PARTIAL.search(fact.value)
            and fact.value not in faulty
        )
    ]
    for label, purpose in (("Tests", TEST), ("Checks", CHECK), ("Build", BUILD), ("Run", RUN)):
        rows = [fact for fact in usual if _purpose(fact) == purpose]
        rows = _distinct([fact for fact in rows if fact.count * 4 >= rows[0].count])
        if purpose != CHECK:
            # Parts of a repository that are tested on their own have a command each.
            rows = list({fact.scope: fact for fact in reversed(rows)}.values())[::-1][:MAX_SCOPES]
        if rows:
            yield Line(flat(f"- {label}: {', '.join(map(_with_scope, rows[:MAX_CHECKS]))}"))


def _distinct(commands: Sequence[Fact]) -> list[Fact]:
    """Without those that only name all packages, as another does by default."""
    distinct: dict[tuple[str, str], Fact] = {}
    for fact in commands:
        distinct.setdefault((fact.value.removesuffix(" ./..."), fact.scope), fact)
    return list(distinct.values())


def _purpose(fact: Fact) -> str:
    if fact.subject != CHECK or not _BUILDS.search(fact.value):
        return fact.subject
    return "" if _USUAL_BUILD.match(fact.value) and not fact.is_pinned else BUILD


def _current(observations: Sequence[JsonRow]) -> list[JsonRow]:
    """Of observations, newest first, those that no newer one replaces or repeats."""
    current: list[JsonRow] = []
    for observation in observations[:MAX_COMPARED]:
        if not any(_replaces(newer, observation) for newer in current):
            current.append(observation)
    return current


def _replaces(newer: JsonRow, older: JsonRow) -> bool:
    if older["observer"] == "person" and newer["observer"] != "person":
        return False
    return compare_texts(str(older["title"] or ""), str(newer["title"] or "")) != "unrelated"


def _with_scope(fact: Fact) -> str:
    return f"`{fact.value}` in {fact.scope}" if fact.scope else f"`{fact.value}`"


def _of(facts: Sequence[Fact], kind: str) -> list[Fact]:
    return [fact for fact in facts if fact.kind == kind]


def _day(fact: Fact) -> str:
    return iso(fact.last_seen_ms)[:10]
