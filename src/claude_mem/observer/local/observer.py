"""The observer without a model: it takes over what the agent and its tools already said.

Deterministic. The words of a turn are cut into passages, each is weighed, and the worthiest that
say something new are kept, up to a share of what was said. From them come one observation of what
the turn was about, others for what was decided or learned beside it, and a summary.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from claude_mem.observer.local import titles
from claude_mem.observer.local.classification import concepts_of, type_of
from claude_mem.observer.local.commands import Failure
from claude_mem.observer.local.evidence import Origin, Story, story_of
from claude_mem.observer.local.files import FileWork
from claude_mem.observer.local.passages import Kind, Passage, cut_passages, sentences
from claude_mem.observer.local.phrases import says_nothing, without_opening
from claude_mem.observer.local.selection import LEAST, Said, choose, room_for, weigh
from claude_mem.observer.local.worth import (
    CAUSE,
    Role,
    is_change,
    is_choice,
    names_in,
    newness,
    words_of,
)
from claude_mem.text import shorten
from claude_mem.types import (
    Distillate,
    EnvironmentFault,
    Observation,
    OpenStep,
    Summary,
    Turn,
)

LONGEST_REQUEST, LONGEST_COMPLETED, LONGEST_LABEL = 300, 160, 60
SAID_BY_TITLE = 0.2  # a passage with fewer words of its own only repeats the title
LONG = 1600  # from here on, choices are told apart from the change
FILES, SWAPS, FAILURES, COMMITS, COMMANDS = 8, 4, 3, 3, 4
QUESTION = ("?", "？", "؟")
FOUND: tuple[Role, ...] = ("cause", "problem", "change", "decision", "outcome")


PROSE: tuple[Kind, ...] = ("prose",)
LISTED: tuple[Kind, ...] = ("item", "row")


class LocalObserver:
    name = "local"

    async def distil(self, turn: Turn) -> Distillate:
        return distil(turn)


def distil(turn: Turn) -> Distillate:
    story = story_of(turn)
    said = weigh(story)
    kept = choose(said, room_for(story), [words_of(text) for text in turn.recent_memories])
    final = [one for one in said if one.origin == "final" and one.role not in ("next", "none")]
    title = _title(story, kept, final, turn.recent_memories)
    summary = _summary(story, kept, final, title, turn.recent_memories)
    return Distillate(
        summary=summary,
        observations=_observations(story, kept, title, turn.recent_memories),
        title=title or None,
        subtitle=summary.completed if _says_more(summary.completed or "", title) else None,
        observer=LocalObserver.name,
    )


def _says_more(text: str, title: str) -> bool:
    return newness(words_of(text), words_of(title)) > SAID_BY_TITLE


# What the turn was about


def _title(story: Story, kept: list[Said], final: list[Said], told: Sequence[str]) -> str:
    """The first that is not the title of a turn before."""
    before = {text.partition("\n")[0].lower() for text in told}
    found = (title for title in _titles(story, kept, final) if title)
    return next((title for title in found if title.lower() not in before), "")


def _titles(story: Story, kept: list[Said], final: list[Said]) -> Iterator[str]:
    """Whoever asked for it named it best, then whoever committed it, then whoever reported it."""
    yield titles.from_plan(story.asked.plan_title)
    yield titles.from_request(story.asked.words)
    yield _committed(story) if story.files else _first_clause(final)
    yield _headline(kept, "final", FOUND)
    yield _first_clause(final)
    yield _headline(kept, "final", FOUND, LISTED)
    yield _headline(kept, "spoken", FOUND)
    yield titles.from_question(story.asked.words)
    yield _committed(story)
    yield _of_files(story.files)


def _headline(
    kept: list[Said],
    origin: Origin,
    roles: Iterable[Role],
    kinds: tuple[Kind, ...] = PROSE,
    beside: tuple[str, ...] = (),
) -> str:
    """The first clause of the most telling part, other than those that stand beside it."""
    for role in roles:
        for one in kept:
            if (one.origin, one.role) == (origin, role) and one.passage.kind in kinds:
                found = titles.from_sentence(one.text)
                if found and found not in beside:
                    return found
    return ""


def _first_clause(final: list[Said], beside: tuple[str, ...] = ()) -> str:
    """Of the last message, whether it was kept or not."""
    found = (titles.from_sentence(one.text) for one in final if one.passage.kind == "prose")
    return next((title for title in found if title and title not in beside), "")


def _committed(story: Story) -> str:
    subjects = story.ran.subjects
    return titles.from_commit(subjects[-1]) if subjects else ""


def _of_files(files: dict[str, FileWork]) -> str:
    work = list(files.values())
    return titles.from_files(list(files), all(one.created for one in work)) if work else ""


# Observations


def _observations(
    story: Story, kept: list[Said], title: str, told: Sequence[str]
) -> tuple[Observation, ...]:
    about = [one for one in kept if one.role not in ("next", "none")]
    if titles.asks_to_commit(story.asked.words):
        about = [one for one in about if one.role == "cause" and names_in(one.text) > 1]
        title = _headline(about, "final", ("cause",)) or _headline(about, "spoken", ("cause",))
    if not title or not _is_worth_observing(story, about):
        return ()
    decided = _decided(about)
    main = _beside(title, [one for one in about if one not in decided])
    kind = type_of(story.asked, title, story.ran.subjects, bool(story.files))
    narrative, facts = _narrative(main), _facts(main)
    edits = [source for work in story.files.values() for source in work.sources]
    first = Observation(
        type=kind,
        title=title,
        narrative=narrative,
        facts=facts or (() if narrative else _swaps(story.files, told)),
        concepts=concepts_of(kind, {one.role for one in about}),
        files_modified=tuple(list(story.files)[:FILES]),
        sources=(*story.said_by, *edits),
    )
    return (first, *_decision(decided, story))


def _is_worth_observing(story: Story, about: list[Said]) -> bool:
    """A commit, a push, a "go on" brings nothing that the summary does not say."""
    asked = story.asked
    if titles.asks_to_commit(asked.words):
        return bool(about)
    if story.files:
        return True
    if titles.is_bare(asked.words) and not asked.plan:
        return any(one.role == "cause" and names_in(one.text) > 1 for one in about)
    return bool(about)


def _beside(title: str, kept: list[Said]) -> list[Said]:
    """What says more than the title."""
    known = words_of(title)
    return [one for one in kept if newness(one.words, known) > SAID_BY_TITLE]


def _narrative(kept: list[Said]) -> str | None:
    return _text_of(one.passage for one in kept if not _is_fact(one.passage))


def _text_of(passages: Iterable[Passage]) -> str | None:
    """One sentence after the other; where a script has no spaces, none."""
    return re.sub(r"(?<=[。！？]) ", "", " ".join(map(_sentence, passages))) or None


def _facts(kept: list[Said]) -> tuple[str, ...]:
    """What stands under the same name is one fact."""
    passages = [one.passage for one in kept if _is_fact(one.passage)]
    facts: list[str] = []
    for label, group in groupby(passages, _named):
        texts = [one.text for one in group]
        facts += [f"{label}: {'; '.join(texts)}"] if label else texts
    return tuple(facts)


def _named(passage: Passage) -> str:
    """The name that a fact is told under; empty where it says itself what it is about."""
    label = passage.label
    if passage.own_label or not label or passage.text.startswith(label):
        return ""
    names_a_thing = "`" in label or "." in label or "/" in label or label.istitle()
    return label if names_a_thing and len(label) <= LONGEST_LABEL else ""


def _is_fact(passage: Passage) -> bool:
    return passage.kind in ("item", "row") or (
        passage.text.startswith("`") and ": " in passage.text
    )


def _sentence(passage: Passage) -> str:
    text = without_opening(passage.text)
    return text if text[-1:] in ".!?:;。！？؟…`" else text + "."


def _swaps(files: dict[str, FileWork], told: Sequence[str]) -> tuple[str, ...]:
    """Where nobody said what was changed, the change itself."""
    found = [
        f"{work.path}: `{before}` became `{after}`"
        for work in files.values()
        for before, after in work.swaps
    ]
    return tuple([swap for swap in found if not any(swap in text for text in told)][:SWAPS])


def _decided(about: list[Said]) -> list[Said]:
    """Of a long turn, the choices that were made: they hold longer than the change."""
    if sum(len(one.text) for one in about) < LONG:
        return []
    found = [one for one in about if is_choice(one.words) and one.role != "problem"]
    return found if sum(len(one.text) for one in found) >= LEAST else []


def _decision(decided: list[Said], story: Story) -> list[Observation]:
    if not decided:
        return []
    named = (titles.from_sentence(one.text) for one in decided)
    return [
        Observation(
            type="decision",
            title=next((name for name in named if name), "Choices made on the way"),
            narrative=_narrative(decided),
            facts=_facts(decided),
            concepts=("trade-off",),
            sources=story.said_by,
        )
    ]


# The summary


def _summary(
    story: Story, kept: list[Said], final: list[Said], title: str, told: Sequence[str]
) -> Summary:
    learned = _learned(kept, title)
    completed = _completed(story, kept, final, (title, learned))
    return Summary(
        request=_request(story, title) or None,
        investigated=story.looked_into or None,
        learned=learned or None,
        completed=completed or None,
        next_steps=_text_of(one.passage for one in kept if one.role == "next"),
        notes=" ".join(_notes(story, completed, told)) or None,
        files_read=story.read[:FILES] if not story.files else (),
        files_edited=tuple(story.files),
        commands=tuple(story.ran.runs.values())[-COMMANDS:],
        faults=_faults(story.ran.failures),
        open_steps=_open_steps(kept),
        sources=story.said_by,
    )


def _completed(story: Story, kept: list[Said], final: list[Said], beside: tuple[str, ...]) -> str:
    """What was committed says best what was done."""
    return (
        _committed(story)
        or _headline(kept, "final", ("change",), beside=beside)
        or _first_clause(final, beside)
        or _headline(kept, "final", ("change",), LISTED, beside=beside)
        or _first_words(final)
        or _few_words(story.final)
    )


def _first_words(final: list[Said]) -> str:
    """Of a message without a clause to take, what it begins with; not what only leads on."""
    found = (one.text for one in final if not one.text.endswith((":", "：")))
    return shorten(without_opening(next(found, "")), LONGEST_COMPLETED)


def _few_words(final: str) -> str:
    """A message too short to weigh anything, unless it says nothing at all."""
    if len(final) > LONGEST_COMPLETED:
        return ""
    found = (one.text for one in cut_passages(final) if one.kind == "prose")
    return without_opening(next((t for t in found if not says_nothing(t.lower())), ""))


def _learned(kept: list[Said], title: str) -> str:
    causes = [
        one for one in kept if not one.words.isdisjoint(CAUSE) and not is_change(one.text.lower())
    ]
    return _headline(causes, "final", ("cause",), beside=(title,)) or _headline(
        causes, "spoken", ("cause",), beside=(title,)
    )


def _request(story: Story, title: str) -> str:
    if story.asked.plan:
        return titles.from_plan(story.asked.plan_title) or title
    words = " ".join(story.asked.words.split())
    whole = ""
    for sentence in sentences(words):
        if len(whole) + len(sentence) > LONGEST_REQUEST:
            break
        whole = f"{whole} {sentence}".strip()
    return whole or shorten(words, LONGEST_REQUEST)


def _notes(story: Story, completed: str, told: Sequence[str]) -> Iterable[str]:
    """Failures other than faults, commits, the error that ended the turn; each once a session."""
    for failure in story.ran.failures[:FAILURES]:
        note = _failed(failure)
        if not _is_fault(failure) and not any(note in text for text in told):
            yield note
    for subject, hash_ in list(story.ran.commits.items())[-COMMITS:]:
        if titles.from_commit(subject) == completed:
            yield f"Committed as {hash_}." if hash_ else "Committed."
        else:
            yield f"Committed: {subject} ({hash_})." if hash_ else f"Committed: {subject}."
    if story.ended_by:
        yield f"Ended by an error: {shorten(story.ended_by, LONGEST_REQUEST)}"


def _failed(failure: Failure) -> str:
    text = f"`{failure.command}` failed ({_bare(failure.error)})"
    if failure.alternative:
        text += f"; `{failure.alternative}` worked"
    if failure.fixed_by:
        return f"{text}; it passed {failure.fixed_by}."
    return f"{text}; not fixed in this turn."


def _bare(error: str) -> str:
    return error.rstrip(".:")


# Facts


def _faults(failures: list[Failure]) -> tuple[EnvironmentFault, ...]:
    return tuple(
        EnvironmentFault(
            failure.command, _bare(failure.error), failure.alternative, failure.sources
        )
        for failure in failures[:FAILURES]
        if _is_fault(failure)
    )


def _is_fault(failure: Failure) -> bool:
    """Another command worked without a fix in between: the environment rejects this one."""
    return bool(failure.alternative) and not failure.fixed_by


def _open_steps(kept: list[Said]) -> tuple[OpenStep, ...]:
    """Without questions: what the agent offered ends with its session."""
    steps = (
        (" ".join(s for s in sentences(_sentence(one.passage)) if not s.endswith(QUESTION)), one)
        for one in kept
        if one.role == "next"
    )
    return tuple(OpenStep(text, one.sources) for text, one in steps if text)
