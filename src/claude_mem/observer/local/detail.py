"""How much the local observer writes, by `CLAUDE_MEM_VERBOSITY`."""

from dataclasses import dataclass

from claude_mem.types import Verbosity


@dataclass(frozen=True, slots=True)
class Detail:
    margin: float  # added to the score that makes a turn worth an observation
    always_observes_work: bool  # whether evident work needs no score
    budget: float  # of the texts, as a share of the normal one


DETAILS: dict[Verbosity, Detail] = {
    "minimal": Detail(margin=0.25, always_observes_work=False, budget=0.5),
    "normal": Detail(margin=0.0, always_observes_work=True, budget=1.0),
    "verbose": Detail(margin=-1.5, always_observes_work=True, budget=1.75),
}
NORMAL = DETAILS["normal"]
