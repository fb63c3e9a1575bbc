"""What still holds in a project: rules of the user, decisions, gotchas, faults and commands, what
the user asks for again and again, and the rules and decisions of others in a team."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import cast

from claude_mem.recall.handover.digests import is_in_project
from claude_mem.recall.handover.statements import (
    LOCAL,
    Line,
    day_of,
    flat,
    id_of,
    is_clear,
    long_words,
    stems_in,
    texts,
    unmarked,
    with_end,
)
from claude_mem.store.clock import iso
from claude_mem.store.fact_comparison.supersession import compare_texts
from claude_mem.store.memory_rows import JsonRow, RuleTurn, ShortPrompt
from claude_mem.store.obstacles import REMEDY_SEPARATOR, Obstacle
from claude_mem.title_rules import without_topics
from claude_mem.types import Fact
from claude_mem.word_runs import has_run

MIN_TURNS = 2  # with a command or fault, before it counts as the project's
RECURRING = 4  # turns with a fault
MAX_FAULTS, MAX_RULES, MAX_DECISIONS, MAX_GOTCHAS, MAX_PLACES = 2, 6, 2, 3, 3
TEST, CHECK, RUN = "test", "check", "run"  # purposes of commands
HOOK = "hook"  # of git
MAX_HOOKS = 2
BUILD = "build"  # a check by its purpose
MIN_SHARED_WORDS = 3  # words that a decision and a commit about it have in common
MAX_SAVED, MAX_SHOWN = 6, 3
MAX_PINNED = 10
MIN_VARIANT = 4  # turns with a variant of the usual command
MIN_OBSTACLE_SESSIONS = 3  # sessions that ran into an obstacle
MAX_SESSIONS_WITHOUT_OBSTACLE = 15  # sessions without it
MAX_OBSTACLES, LONGEST_OBSTACLE = 2, 400
BACKSLASH = "\\"
MAX_SCOPES = 2  # folders with a command of their own
MAX_COMPARED = 40  # titles, each with every newer one
LONGEST_QUESTION, LONGEST_RULE = 110, 700
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
# One file or several, without options after them.
_FILES_AT_END = re.compile(r"(?: \"?[\w./\\*@-]{1,200}\.\w{1,5}\"?){1,20}$")
_LINTER = re.compile(r"\b[a-z]{0,20}lint(?:-cli\d?)?$")
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

HABIT_SESSIONS = 4
HABIT_WORDS, MAX_HABITS = 2, 2
# Consent and courtesy, which say nothing about the work.
_REPLIES = stems_in(
    "yeah okay please thanks thank continue proceed ahead looks good great nice again next right"
    " sure same that this with just then also here those these what when does have should could"
    " would will want like make sense your them done more from"
)
# Every project is worked on like this; with another word it may be a habit of the user.
_ROUTINE = stems_in("commit push pull merge rebase branch changes change everything work local")

MAX_TEAM_RULES, MAX_TEAM_DECISIONS = 4, 2
LONGEST_TEAM_FACT = 300


def rules(facts: Sequence[Fact], turns: Mapping[int, RuleTurn]) -> Iterator[Line]:
    """Gives rules of one message on one line, with what was worked on: it may be their scope."""
    messages: dict[int, list[Fact]] = {}
    for fact in _in_stated_order(_of_kind(facts, "rule")[:MAX_RULES], turns):
        message = turns[fact.id].turn_id if fact.id in turns else -fact.id
        messages.setdefault(message, []).append(fact)
    for rows in messages.values():
        texts = [with_end(_REPLY_BEFORE.sub("", fact.value)) for fact in rows]
        turn = turns.get(rows[0].id)
        about = _worked_on(turn.files) if turn else ""
        text = " ".join(texts) if len(texts) > 1 else rows[0].value
        line = flat(
            f'- The user, {_day(rows[0])}{about}: "{_REPLY_BEFORE.sub("", text)}"', LONGEST_RULE
        )
        yield Line(line, subject=" ".join(fact.value for fact in rows), is_quote=True)


def _in_stated_order(rules: Sequence[Fact], turns: Mapping[int, RuleTurn]) -> Sequence[Fact]:
    """Orders the rules of a session as they were stated: one may refer to another."""
    places: dict[str, int] = {}
    for number, fact in enumerate(rules):
        places.setdefault(turns[fact.id].session if fact.id in turns else f"-{fact.id}", number)

    def order(fact: Fact) -> tuple[int, int, int]:
        turn = turns.get(fact.id)
        return (
            (places[turn.session], turn.turn_id, fact.id)
            if turn
            else (places[f"-{fact.id}"], 0, fact.id)
        )

    return sorted(rules, key=order)


def _worked_on(files: Sequence[str]) -> str:
    """What a turn edited: a file outside the project may be a text for somewhere else."""
    if not files:
        return ""
    inside = [path for path in files if is_in_project(path)]
    if inside:
        return f", while editing {inside[0].replace(BACKSLASH, '/')}"
    name = files[0].replace(BACKSLASH, "/").rpartition("/")[2]
    return f", of a text for elsewhere ({name}), not of files of this project"


def pinned(memories: Sequence[JsonRow]) -> Iterator[Line]:
    for memory in memories[:MAX_PINNED]:
        identity, text = str(memory["id"]), str(memory["text"] or "")
        by_agent, is_outside = memory["changed_by"] == "agent", bool(memory["is_outside"])
        line = f"- {_AGENT_NOTE if by_agent else ''}{text}"
        if memory["prompt"] and not is_outside:
            line = f'- The user, {day_of(memory)}: "{text}"'
        yield Line(f"{flat(line)} {identity}", subject=text, ids=(identity,),
                   is_outside=is_outside, is_adopted=not by_agent)  # fmt: skip


def pinned_facts(facts: Sequence[Fact]) -> Iterator[Line]:
    """Gives the pinned facts that are not shown first by their kind anyway."""
    for fact in facts:
        is_usual = fact.kind == "command" and fact.subject in (TEST, CHECK, RUN)
        if fact.is_pinned and fact.kind != "rule" and not is_usual:
            text = _fact_text(fact)
            yield Line(flat(f"- {text}"), subject=fact.subject or text, is_adopted=True)


def _fact_text(fact: Fact) -> str:
    where = f" in {fact.scope}" if fact.scope else ""
    if fact.kind == "fault" and not fact.subject:
        return fact.note or fact.value
    if fact.kind == "fault":
        return f"`{fact.subject}` fails here; `{fact.value}` works"
    if fact.kind == "decision" and fact.subject:
        return f"Decided {_day(fact)}: {fact.subject} {fact.value}"
    return f"{fact.subject}: {fact.value}{where}" if fact.subject else f"{fact.value}{where}"


def saved(observations: Sequence[JsonRow]) -> Iterator[Line]:
    """What the user or the agent saved explicitly, the latest first."""
    rows = [
        o
        for o in observations
        if o["observer"] in SAVED_BY and o["origin"] != "outside" and o["title"]
    ]
    for observation in _current(rows)[:MAX_SAVED]:
        by_user = observation["observer"] == "person"
        title, identity = str(observation["title"]), id_of(observation)
        line = flat(f"- {'' if by_user else _AGENT_NOTE}{title}")
        yield Line(f"{line} {identity}", subject=title, ids=(identity,), is_adopted=by_user)


def decisions(
    facts: Sequence[Fact], commits: Sequence[str] = (), since: str = ""
) -> Iterator[Line]:
    """Answers of the user to questions of the agent that are about the project. One that was given
    once, before the day of the last session, is about work that is over; what was committed about
    it says what became of it."""
    subjects = [long_words(commit) for commit in commits]
    count = 0
    for fact in sorted(
        _of_kind(facts, "decision"), key=lambda f: (-f.is_pinned, -f.last_seen_ms, f.id)
    ):
        answer = _RECOMMENDED.sub("", fact.value).strip()
        question = fact.subject.strip()
        is_old = _day(fact) < since
        if is_old and fact.count < MIN_TURNS and not fact.is_pinned:
            continue
        if not question:
            continue  # of a saved memory, which is shown itself
        words = long_words(f"{question} {answer}")
        if not fact.is_pinned and any(
            len(words & subject) >= MIN_SHARED_WORDS for subject in subjects
        ):
            continue
        if len(question) > LONGEST_QUESTION or _PASSING.search(question) or _BARE.match(answer):
            continue
        count += 1
        if count > MAX_DECISIONS:
            return
        line = flat(f"- Decided {_day(fact)}: {question} {answer}")
        yield Line(line, subject=question, is_adopted=True)


def gotchas(observations: Sequence[JsonRow]) -> Iterator[Line]:
    """Decisions and traps that a model wrote down, the latest of each subject."""
    count = 0
    kinds = [o for o in observations if o["type"] == "decision" or "gotcha" in texts(o["concepts"])]
    for observation in _current(kinds):
        title = unmarked(str(observation["title"] or ""))
        # A draft cannot tell what still holds from a problem that was fixed a moment later.
        if observation["observer"] == LOCAL:
            continue
        statement = without_topics(title)
        if not (is_clear(title) and _CONSTRAINT.search(statement)):
            continue
        count += 1
        if count > MAX_GOTCHAS:
            return
        line, identity = flat(f"- {title}"), id_of(observation)
        yield Line(f"{line} {identity}", subject=statement, ids=(identity,))


def faults(facts: Sequence[Fact], outside: frozenset[str] = frozenset()) -> Iterator[Line]:
    """Commands that fail here and have not worked since. One that failed again and again after it
    had worked will do so once more. An error with words of the tool is not repeated."""
    passed = {fact.value: fact for fact in _of_kind(facts, "command") if "fail" not in fact.note}
    shown: set[str] = set()
    for fact in (fact for fact in _of_kind(facts, "fault") if fact.subject):
        later = passed.get(fact.subject)
        is_recurring = fact.count >= RECURRING and later and later.first_seen_ms < fact.last_seen_ms
        is_over = later is not None and later.last_seen_ms > fact.last_seen_ms
        is_over = is_over or (fact.status == "past" and later is None)
        is_over = (is_over and not is_recurring) or _is_replaced(fact, facts)
        if fact.count < MIN_TURNS or is_over or fact.subject in shown or fact.is_pinned:
            continue
        shown.add(fact.subject)
        if len(shown) > MAX_FAULTS:
            return
        note = f" ({fact.note})" if fact.note and not has_run(fact.note, outside) else ""
        yield Line(flat(f"- `{fact.subject}` fails here{note}; `{fact.value}` works"))


def places(facts: Sequence[Fact]) -> Iterator[Line]:
    """Gives places that the user told, and those that were met again; the most frequent first."""
    known = [f for f in _of_kind(facts, "place") if f.origin == "person" or f.count >= MIN_TURNS]
    known.sort(key=lambda fact: (fact.origin != "person", -fact.count, fact.id))
    for fact in [fact for fact in known if not fact.is_pinned][:MAX_PLACES]:
        line = flat(f"- {fact.subject}: {fact.value}")
        yield Line(line, is_adopted=fact.origin == "person")


def obstacles(rows: Sequence[Obstacle]) -> Iterator[Line]:
    """What several sessions ran into, in the words of the one that says most of what all say."""
    shown: list[str] = []
    for row in rows:
        is_part = any(f"{row.name}/".startswith(f"{name}/") for name in shown)
        if (
            row.sessions_since > MAX_SESSIONS_WITHOUT_OBSTACLE
            or is_part
            or len(shown) == MAX_OBSTACLES
        ):
            continue
        shown.append(row.name)
        text = _most_typical(row)
        met = f"{len(row.notes)} sessions ran into this, last {iso(row.last_seen_ms)[:10]}"
        remedy = _remedy(row)
        done = f" What was done about it: {remedy}" if remedy else ""
        yield Line(flat(f"- {met}: {text}{done}", LONGEST_OBSTACLE), subject=text)


def _most_typical(row: Obstacle) -> str:
    """The sentence that has most words of the others; of several the latest. Rather one that names
    the obstacle itself than a part of it."""
    sentences = [note.partition(REMEDY_SEPARATOR)[0] for note in row.notes]
    named = [text for text in sentences if f"`{row.name}`" in text or f"`{row.name}/`" in text]
    rows = named or sentences
    words = [long_words(sentence) for sentence in rows]

    def shared(number: int) -> int:
        others = (other for position, other in enumerate(words) if position != number)
        return sum(len(words[number] & other) for other in others)

    return rows[max(range(len(rows)), key=lambda number: (shared(number), -number))]


def _remedy(row: Obstacle) -> str:
    """The latest command; a part of the obstacle may have another name each time."""
    commands = (note.partition(REMEDY_SEPARATOR)[2] for note in row.notes)
    command = next(filter(None, commands), "")
    return re.sub(rf"(?<=[\s/]){re.escape(row.name)}/[^\s`]+", f"{row.name}/…", command)


def _is_replaced(fault: Fact, facts: Sequence[Fact]) -> bool:
    """Whether another fault of the same command, with another way around it, replaced this one."""
    return any(fact.kind == "fault" and fact.id == fault.superseded_by for fact in facts)


def commands(facts: Sequence[Fact]) -> Iterator[Line]:
    """The usual commands to test, check, build and start the project."""
    faulty = {fact.subject for fact in _of_kind(facts, "fault")}
    usual = [
        fact
        for fact in _of_any_file(_of_kind(facts, "command"))
        if fact.is_pinned
        or (
            fact.count >= MIN_TURNS and not _PARTIAL.search(fact.value) and fact.value not in faulty
        )
    ]
    for fact in [fact for fact in usual if fact.subject == HOOK][:MAX_HOOKS]:
        yield Line(f"- Git runs the {fact.value} hook: {fact.note}")
    for label, purpose in (("Tests", TEST), ("Checks", CHECK), ("Build", BUILD), ("Run", RUN)):
        rows = [fact for fact in usual if _purpose(fact) == purpose]
        rows = _distinct([fact for fact in rows if fact.count * 4 >= rows[0].count])
        if purpose == CHECK:
            rows = _without_repeats_in_folders(rows)
        else:
            # Parts of a repository that are tested on their own have a command each.
            rows = list({fact.scope: fact for fact in reversed(rows)}.values())[::-1][:MAX_SCOPES]
            rows += _variants(rows, usual)
        if rows:
            yield Line(flat(f"- {label}: {', '.join(map(_with_scope, rows[:MAX_SHOWN]))}"))


def _of_any_file(commands: Sequence[Fact]) -> list[Fact]:
    """Linters that are run on the edited files only are one command, whatever the files."""
    together: dict[tuple[str, str], Fact] = {}
    others: list[Fact] = []
    for fact in commands:
        program = _FILES_AT_END.sub("", fact.value)
        if program == fact.value or not _LINTER.search(program) or fact.subject != CHECK:
            others.append(fact)
            continue
        known = together.get((program, fact.scope))
        count = fact.count + (known.count if known else 0)
        together[program, fact.scope] = replace(fact, value=f"{program} FILES", count=count)
    often = [fact for fact in together.values() if fact.count >= MIN_VARIANT]
    return sorted([*others, *often], key=lambda fact: (-fact.is_pinned, -fact.count))


def _variants(commands: Sequence[Fact], usual: Sequence[Fact]) -> list[Fact]:
    """Returns, for `make test`, also `make test:ci`, where it is run again and again."""
    return [
        fact
        for command in commands
        for fact in usual
        if fact.value.startswith(f"{command.value}:")
        and fact.scope == command.scope
        and fact.count >= MIN_VARIANT
    ][:MAX_SCOPES]


def _distinct(commands: Sequence[Fact]) -> list[Fact]:
    """Leaves out the commands that only name all packages, as another does by default."""
    distinct: dict[tuple[str, str], Fact] = {}
    for fact in commands:
        distinct.setdefault((fact.value.removesuffix(" ./..."), fact.scope), fact)
    return list(distinct.values())


def _without_repeats_in_folders(commands: Sequence[Fact]) -> list[Fact]:
    """Leaves out runs in a folder of what is run at the root more often."""
    at_root = {fact.value: fact.count for fact in commands if not fact.scope}
    return [
        fact
        for fact in commands
        if not fact.scope or fact.is_pinned or fact.count >= at_root.get(fact.value, 0)
    ]


def _purpose(fact: Fact) -> str:
    if fact.subject != CHECK or not _BUILDS.search(fact.value):
        return fact.subject
    return "" if _USUAL_BUILD.match(fact.value) and not fact.is_pinned else BUILD


def _current(observations: Sequence[JsonRow]) -> list[JsonRow]:
    """Returns the observations, newest first, that no newer one replaces or repeats."""
    current: list[JsonRow] = []
    for observation in observations[:MAX_COMPARED]:
        if not any(_replaces(newer, observation) for newer in current):
            current.append(observation)
    return current


def _replaces(newer: JsonRow, older: JsonRow) -> bool:
    if older["observer"] == "person" and newer["observer"] != "person":
        return False
    titles = (without_topics(str(row["title"] or "")) for row in (older, newer))
    return compare_texts(*titles) != "unrelated"


def _with_scope(fact: Fact) -> str:
    return f"`{fact.value}` in {fact.scope}" if fact.scope else f"`{fact.value}`"


def _of_kind(facts: Sequence[Fact], kind: str) -> list[Fact]:
    return [fact for fact in facts if fact.kind == kind]


def _day(fact: Fact) -> str:
    return iso(fact.last_seen_ms)[:10]


def habits(prompts: Sequence[ShortPrompt]) -> Iterator[Line]:
    """What the user asks for again and again, in their own words: each with the number of sessions,
    those that say most first."""
    words = {prompt: stems_in(prompt.text.lower()) - _REPLIES for prompt in prompts}
    prompts_by_stems: dict[frozenset[str], list[ShortPrompt]] = {}
    for prompt, stems in words.items():
        if len(stems) >= HABIT_WORDS and not stems <= _ROUTINE and "?" not in prompt.text:
            prompts_by_stems.setdefault(stems, []).append(prompt)
    sessions = {
        stems: len({prompt.session for prompt, other in words.items() if stems <= other})
        for stems in prompts_by_stems
    }
    often = [stems for stems in prompts_by_stems if sessions[stems] >= HABIT_SESSIONS]
    shown: list[frozenset[str]] = []
    for stems in sorted(often, key=lambda stems: (-len(stems), -sessions[stems], sorted(stems))):
        if any(stems <= other for other in shown) or len(shown) == MAX_HABITS:
            continue
        shown.append(stems)
        text = flat(prompts_by_stems[stems][0].text)
        line = f'- The user asked this in {sessions[stems]} sessions: "{text}"'
        yield Line(line, is_quote=True)


def team_facts(facts: Sequence[JsonRow]) -> Iterator[Line]:
    """Gives the facts of the team as theirs: never as those of the user."""
    for kind, most in (("rule", MAX_TEAM_RULES), ("decision", MAX_TEAM_DECISIONS)):
        for fact in [fact for fact in facts if fact["kind"] == kind][:most]:
            value, day = str(fact["value"]), iso(cast(int, fact["last_seen_epoch"]))[:10]
            if kind == "rule":
                line = flat(f'- Rule of {owner_of(fact)}, {day}: "{value}"', LONGEST_TEAM_FACT)
                yield Line(line, subject=value, is_quote=True)
            else:
                text = f"- Decision of {owner_of(fact)}, {day}: {fact['subject']} {value}"
                yield Line(flat(text, LONGEST_TEAM_FACT), subject=str(fact["subject"]) or value)


def owner_of(fact: JsonRow) -> str:
    """The same user's own facts come from another machine."""
    return "the user, on another machine" if fact["is_own"] else str(fact["owner"])
