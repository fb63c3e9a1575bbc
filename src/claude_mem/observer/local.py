"""The observer without a model: it takes over what the agent and its tools already said.

Deterministic. The words of a turn are cut into passages, each is weighed, and the worthiest that
say something new are kept, up to a share of what was said. From them come one observation of what
the turn was about, others for what was decided or learned beside it, and a summary.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from claude_mem.observer import titles
from claude_mem.observer.asking import Asked, understand
from claude_mem.observer.changes import FileWork, files_changed, files_read
from claude_mem.observer.commands import Failure, Ran, look_at_commands
from claude_mem.observer.kinds import concepts_of, type_of
from claude_mem.observer.passages import Kind, Passage, cut_passages, sentences, shorten
from claude_mem.observer.worth import (
    Role,
    Weighed,
    is_choice,
    names_in,
    newness,
    without_opening,
    words_of,
)
from claude_mem.types import Distillate, Observation, Summary, ToolUse, Turn

SHARE = 0.17  # of what was said in a turn is kept of it
LEAST, MOST = 300, 3200  # characters
LONGEST_REQUEST, LONGEST_COMPLETED = 300, 160
PART_OF_FINAL = 0.7
BASE_PRICE, PRICE_POWER = 100, 0.65
NEW_ENOUGH = 0.4  # of a passage's words must be new in the turn
NOT_TOLD = 0.3  # and against each memory of the turns before
WORTH_KEEPING = 0.9
LONG = 1600  # from here on, choices are told apart from the change
FILES, SWAPS = 8, 4
HEADLINES: tuple[Role, ...] = ("cause", "change", "decision", "outcome")


Origin = Literal["plan", "asked", "spoken", "final"]


class LocalObserver:
    name = "local"

    async def distil(self, turn: Turn) -> Distillate:
        return distil(turn)


@dataclass(frozen=True, slots=True, eq=False)
class _Kept:
    """A passage that was weighed: where it stands, the part it plays, what it is worth."""

    passage: Passage
    role: Role
    words: frozenset[str]
    value: float
    place: int
    origin: Origin


@dataclass(slots=True)
class _Story:
    """All that is known of a turn before it is written down."""

    asked: Asked
    spoken: list[str]  # what the agent said on the way
    final: str  # and at the end
    files: dict[str, FileWork]
    read: list[str]
    ran: Ran
    ended_by: str  # the error that ended the turn
    said_by: tuple[int, ...]  # the events that brought the words


def distil(turn: Turn) -> Distillate:
    story = _story_of(turn)
    kept = _choose(story, [words_of(text) for text in turn.told])
    title = _title(story, kept)
    observations = _observations(story, kept, title)
    summary = _summary(story, kept, title, turn.told)
    return Distillate(
        summary=summary,
        observations=observations,
        title=title or None,
        subtitle=summary.completed if summary.completed != title else None,
        observer=LocalObserver.name,
    )


def _story_of(turn: Turn) -> _Story:
    said = [event for event in turn.events if event.kind in ("Statement", "Stop") and event.text]
    stops = [event for event in said if event.kind == "Stop"]
    final = (stops or said)[-1].text or "" if said else ""
    spoken = [e.text for e in said if e.kind == "Statement" and e.text and e.text != final]
    files = files_changed(turn)
    return _Story(
        asked=understand(turn.prompt or ""),
        spoken=spoken,
        final=final,
        files=files,
        read=[path for path in files_read(turn) if path not in files],
        ran=look_at_commands(turn),
        ended_by=next((e.text or "" for e in turn.events[::-1] if e.kind == "StopFailure"), ""),
        said_by=_sources(said, final),
    )


def _sources(said: list[ToolUse], final: str) -> tuple[int, ...]:
    return tuple(event.id for event in said if event.text == final or len(event.text or "") > 200)


@dataclass(frozen=True, slots=True)
class _Source:
    text: str
    origin: Origin


def _sources_of(story: _Story) -> list[_Source]:
    """The end of a turn tells best what became of it; on the way there is much that was not."""
    return [
        _Source(story.asked.plan, "plan"),
        _Source(story.asked.words, "asked"),
        *(_Source(text, "spoken") for text in story.spoken),
        _Source(story.final, "final"),
    ]


# Where a passage stands, and what it is there for: what it counts.
_WEIGHTS: dict[Origin, dict[Role, float]] = {
    "plan": {"problem": 1.0, "cause": 1.0, "decision": 0.8, "change": 0.5, "outcome": 0.5,
             "next": 0.5, "none": 0.1},
    "asked": {"problem": 0.9, "cause": 0.9, "decision": 0.9, "change": 0.7, "outcome": 0.7,
              "next": 0.5, "none": 0.5},
    "spoken": {"problem": 0.6, "cause": 0.9, "decision": 0.75, "change": 0.35, "outcome": 0.4,
               "next": 0.2, "none": 0.3},
    "final": {"problem": 1.2, "cause": 1.4, "decision": 1.25, "change": 1.2, "outcome": 1.0,
              "next": 0.9, "none": 0.6},
}  # fmt: skip


def _choose(story: _Story, told: list[frozenset[str]]) -> list[_Kept]:
    sources = _sources_of(story)
    short = _short_paths(story.files)
    found: list[_Kept] = []
    for source in sources:
        weights = _WEIGHTS[source.origin]
        for passage in cut_passages(_with_short_paths(source.text, short)):
            weighed = Weighed(passage)
            worth = weighed.worth * weights[weighed.role]
            if worth >= WORTH_KEEPING:
                value = worth / (len(passage.text) + BASE_PRICE) ** PRICE_POWER
                found.append(_Kept(passage, weighed.role, weighed.words, value, len(found),
                                   source.origin))  # fmt: skip
    found.sort(key=lambda one: (-one.value, one.place))
    length = sum(len(source.text) for source in sources)
    return _within(found, min(MOST, max(LEAST, int(SHARE * length))), told)


def _short_paths(files: Iterable[str]) -> dict[str, str]:
    """A file that the memory names in full beside the text goes by its last name in it."""
    names: dict[str, list[str]] = {}
    for path in files:
        names.setdefault(path.replace("\\", "/").rsplit("/", 1)[-1], []).append(path)
    return {paths[0]: name for name, paths in names.items() if len(paths) == 1 != len(name)}


def _with_short_paths(text: str, short: dict[str, str]) -> str:
    for path, name in short.items():
        if path in text:
            text = text.replace(path, name)
    return text


def _within(found: list[_Kept], budget: int, told: list[frozenset[str]]) -> list[_Kept]:
    """The end of the turn has the first word, up to its part of the budget; then all the rest."""
    kept: list[_Kept] = []
    known: set[str] = set()
    left = int(budget * PART_OF_FINAL)
    for one in [one for one in found if one.origin == "final"]:
        left -= _keep(one, left, kept, known, told)
    left += budget - int(budget * PART_OF_FINAL)
    for one in found:
        if one not in kept:
            left -= _keep(one, left, kept, known, told)
    return sorted(kept, key=lambda one: one.place)


def _keep(
    one: _Kept, left: int, kept: list[_Kept], known: set[str], told: list[frozenset[str]]
) -> int:
    """Keeps it if it has room and is new; returns the room it takes."""
    length = len(one.passage.text)
    if length > left or newness(one.words, known) < NEW_ENOUGH:
        return 0
    if any(newness(one.words, before) < NOT_TOLD for before in told):
        return 0
    kept.append(one)
    known |= one.words
    return length + 1


def _title(story: _Story, kept: list[_Kept]) -> str:
    found = titles.from_plan(story.asked.plan_title)
    if not found:
        found = titles.from_request(story.asked.words)
    if not found and story.files and story.ran.subjects:
        found = titles.from_commit(story.ran.subjects[-1])
    if not found:
        found = _headline(kept, "", HEADLINES) or _headline(kept, "", HEADLINES, ("item", "row"))
    if not found and story.ran.subjects:
        found = titles.from_commit(story.ran.subjects[-1])
    if not found and story.files:
        files = list(story.files.values())
        found = titles.from_files([file.path for file in files], all(f.created for f in files))
    return found


def _headline(
    kept: list[_Kept], title: str, roles: tuple[Role, ...], kinds: tuple[Kind, ...] = ("prose",)
) -> str:
    """The best clause of what the agent said, rather at the end than on the way."""
    for origin in ("final", "spoken"):
        for role in roles:
            for one in kept:
                if (one.origin, one.role) == (origin, role) and one.passage.kind in kinds:
                    found = titles.from_sentence(without_opening(one.passage.text))
                    if found and found != title:
                        return found
    return ""


def _observations(story: _Story, kept: list[_Kept], title: str) -> tuple[Observation, ...]:
    about = [one for one in kept if one.role not in ("next", "none")]
    if not title or not _is_worth_observing(story, about):
        return ()
    decided = _decided(about)
    main = [one for one in about if one not in decided]
    kind = type_of(story.asked, title, story.ran.subjects, bool(story.files))
    sources = [*story.said_by, *(i for work in story.files.values() for i in work.sources)]
    first = Observation(
        type=kind,
        title=title,
        narrative=_narrative(main),
        facts=_facts(main) or (() if _narrative(main) else _swaps(story.files)),
        concepts=concepts_of(kind, {one.role for one in main}),
        files_modified=tuple(list(story.files)[:FILES]),
        sources=tuple(sources),
    )
    return (first, *_decision(decided, story))


def _narrative(kept: list[_Kept]) -> str | None:
    return " ".join(_sentence(one.passage) for one in kept if not _is_fact(one.passage)) or None


def _facts(kept: list[_Kept]) -> tuple[str, ...]:
    return tuple(_fact(one.passage) for one in kept if _is_fact(one.passage))


def _swaps(files: dict[str, FileWork]) -> tuple[str, ...]:
    """Where nobody said what was changed, the change itself."""
    found = [
        f"{work.path}: `{before}` became `{after}`"
        for work in files.values()
        for before, after in work.swaps
    ]
    return tuple(found[:SWAPS])


def _decided(about: list[_Kept]) -> list[_Kept]:
    """Of a long turn, the choices that were made: they hold longer than the change."""
    if sum(len(one.passage.text) for one in about) < LONG:
        return []
    found = [one for one in about if is_choice(one.words) and one.role != "problem"]
    return found if sum(len(one.passage.text) for one in found) >= LEAST else []


def _decision(decided: list[_Kept], story: _Story) -> list[Observation]:
    named = [titles.from_sentence(without_opening(one.passage.text)) for one in decided]
    title = next((name for name in named if name), "")
    if not decided:
        return []
    return [
        Observation(
            type="decision",
            title=title or "Choices made on the way",
            narrative=_narrative(decided),
            facts=_facts(decided),
            concepts=("trade-off",),
            sources=story.said_by,
        )
    ]


def _is_worth_observing(story: _Story, about: list[_Kept]) -> bool:
    """A commit, a push, a "go on" brings nothing that the summary does not say."""
    if story.files:
        return True
    if story.ran.subjects or (titles.is_bare(story.asked.words) and not story.asked.plan):
        return any(one.role == "cause" and names_in(one.passage.text) > 1 for one in about)
    return bool(about)


def _is_fact(passage: Passage) -> bool:
    return passage.kind in ("item", "row") or (
        passage.text.startswith("`") and ": " in passage.text
    )


def _sentence(passage: Passage) -> str:
    text = without_opening(passage.text)
    return text if text[-1:] in ".!?:;。！？…`" else text + "."


def _fact(passage: Passage) -> str:
    label = passage.label
    if label and not passage.text.startswith(label) and len(label) <= 60 and _names_a_thing(label):
        return f"{label}: {passage.text}"
    return passage.text


def _names_a_thing(label: str) -> bool:
    return "`" in label or "." in label or "/" in label or label.istitle()


def _summary(story: _Story, kept: list[_Kept], title: str, told: tuple[str, ...]) -> Summary:
    learned = _headline(kept, title, ("cause",))
    completed = _headline(kept, title, ("change", "outcome", "decision"))
    if not completed and story.ran.subjects:
        completed = titles.from_commit(story.ran.subjects[-1])
    if not completed:
        completed = _first_words(story.final)
    return Summary(
        request=_request(story, title) or None,
        learned=learned or None,
        completed=completed or None,
        next_steps=" ".join(_sentence(o.passage) for o in kept if o.role == "next") or None,
        notes=_notes(story, told) or None,
        files_read=tuple(story.read[:FILES]) if not story.files else (),
        files_edited=tuple(story.files),
        sources=story.said_by,
    )


def _first_words(final: str) -> str:
    """The first that the last message says of its own."""
    found = list(map(Weighed, cut_passages(final[:4000])))
    telling = [one.passage.text for one in found if one.worth and one.role != "next"]
    said = telling or [one.passage.text for one in found]
    return shorten(without_opening(said[0]), LONGEST_COMPLETED) if said else ""


def _request(story: _Story, title: str) -> str:
    if story.asked.plan:
        return titles.from_plan(story.asked.plan_title) or title
    words = " ".join(story.asked.words.split())
    whole = ""
    for sentence in sentences(words):
        if len(whole) + len(sentence) > LONGEST_REQUEST:
            break
        whole = f"{whole} {sentence}".strip()
    return whole or shorten(words, LONGEST_REQUEST)


def _notes(story: _Story, told: tuple[str, ...]) -> str:
    ran = story.ran
    notes = [
        f"Tests: `{command}` ({outcome})."
        for command, outcome in list(ran.tests.items())[-1:]
        if "failed" in outcome or not any(f"Tests: `{command}`" in text for text in told)
    ]
    failed = [_told(failure) for failure in ran.failures[:3]]
    notes += [note for note in failed if not any(note in text for text in told)]
    notes += [f"Committed: {commit}." for commit in ran.commits[-3:]]
    if story.ended_by:
        notes.append(f"Ended by an error: {shorten(story.ended_by, LONGEST_REQUEST)}")
    return " ".join(notes)


def _told(failure: Failure) -> str:
    text = f"`{failure.command}` failed ({failure.error.rstrip('.:')})"
    if failure.works:
        text += f"; `{failure.works}` worked"
    if failure.mended_by:
        text += f"; it passed {failure.mended_by}"
    return text + ("." if failure.works or failure.mended_by else "; not mended in this turn.")
