"""Which passages of a turn are kept: the worthiest that say something new, up to a share."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from claude_mem.observer.local.evidence import Origin, Story
from claude_mem.observer.local.passages import Passage, cut_passages
from claude_mem.observer.local.worth import Role, Weighed, newness

SHARE = 0.175  # of what was said in a turn is kept of it
LEAST, MOST = 400, 3200  # characters
PART_OF_FINAL = 0.65
BASE_PRICE, PRICE_POWER = 100, 0.65
NEW_ENOUGH = 0.4  # of a passage's words must be new in the turn
NOT_TOLD = 0.3  # and against each memory of the turns before
WORTH_KEEPING = 0.9

# Where a passage stands, and what it is there for: what it counts. The end of a turn tells best
# what became of it; on the way much is said that did not last.
_WEIGHTS: dict[Origin, dict[Role, float]] = {
    "plan": {"problem": 1.0, "cause": 1.0, "decision": 0.9, "change": 0.5, "outcome": 0.5,
             "next": 0.5, "none": 0.1},
    "asked": {"problem": 0.9, "cause": 0.9, "decision": 0.9, "change": 0.7, "outcome": 0.7,
              "next": 0.5, "none": 0.5},
    "spoken": {"problem": 0.6, "cause": 0.8, "decision": 0.75, "change": 0.35, "outcome": 0.4,
               "next": 0.2, "none": 0.3},
    "final": {"problem": 1.2, "cause": 1.4, "decision": 1.25, "change": 1.2, "outcome": 1.0,
              "next": 0.9, "none": 0.6},
}  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Said:
    """A passage that was weighed: where it stands, the part it plays, what it is worth."""

    passage: Passage
    role: Role
    words: frozenset[str]
    worth: float  # for what it says, where it stands
    place: int
    origin: Origin
    sources: tuple[int, ...]

    @property
    def text(self) -> str:
        return self.passage.text

    @property
    def value(self) -> float:
        """Worth for its length: two short passages rather than a long one."""
        return self.worth / float((len(self.text) + BASE_PRICE) ** PRICE_POWER)


def weigh(story: Story) -> list[Said]:
    """All that was said and says something, in order."""
    short = _short_paths(story.files)
    found: list[Said] = []
    for said in story.words:
        weights = _WEIGHTS[said.origin]
        for passage in cut_passages(_with_short_paths(said.text, short)):
            one = Weighed(passage)
            if one.worth:
                worth = one.worth * weights[one.role]
                place = len(found)
                found.append(
                    Said(passage, one.role, one.words, worth, place, said.origin, said.sources)
                )
    return found


def choose(said: Iterable[Said], room: int, told: Sequence[frozenset[str]]) -> list[Said]:
    """In the order in which it was said. `told`: the words of each memory of the turns before."""
    worthy = [one for one in said if one.worth >= WORTH_KEEPING]
    worthy.sort(key=lambda one: (-one.value, one.place))
    return _Chosen(room, told).of(worthy)


def room_for(story: Story) -> int:
    """How many characters may be kept of the turn."""
    return min(MOST, max(LEAST, int(SHARE * sum(len(said.text) for said in story.words))))


class _Chosen:
    """Takes one after the other, as long as there is room."""

    def __init__(self, room: int, told: Sequence[frozenset[str]]) -> None:
        self._room, self._told = room, told
        self._kept: list[Said] = []
        self._known: set[str] = set()

    def of(self, found: list[Said]) -> list[Said]:
        """The end of the turn has the first word, up to its part; then all the rest."""
        beyond = self._room - int(self._room * PART_OF_FINAL)
        self._room -= beyond
        passed_over = [one for one in found if one.origin != "final" or not self._keep(one)]
        self._room += beyond
        for one in passed_over:
            self._keep(one)
        return sorted(self._kept, key=lambda one: one.place)

    def _keep(self, one: Said) -> bool:
        if len(one.text) > self._room or newness(one.words, self._known) < NEW_ENOUGH:
            return False
        if any(newness(one.words, before) < NOT_TOLD for before in self._told):
            return False
        self._kept.append(one)
        self._known |= one.words
        self._room -= len(one.text) + 1
        return True


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
