"""What a session comes to: it is imported into a new store, whose context and facts are read."""

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from claude_mem.recall.context import build_context
from claude_mem.recall.fact_list import FactsQuery, facts_text, list_facts
from claude_mem.store import Store
from tests.golden.sessions import SESSIONS
from tests.importing import ImportTarget

BUDGET = 1_800  # tokens, the default


@dataclass(frozen=True, slots=True)
class Outcome:
    context: str  # of the next session
    facts: str


def outcome_of(name: str, directory: Path) -> Outcome:
    chat = SESSIONS[name]()
    target = ImportTarget(directory / "data")
    report = target.run(chat.save(directory / f"{chat.session}.jsonl"))
    assert not report.troubles
    with closing(Store.open(target.layout.database, target.layout.backups)) as store:
        (project,) = store.projects()
        project_id = store.project_by_key(str(project["key"]))
        assert project_id is not None
        facts, has_more = list_facts(store, FactsQuery(project_id))
        assert not has_more
        return Outcome(
            f"{build_context(store, project_id, BUDGET)}\n", f"{facts_text(facts, more='')}\n"
        )


def golden_files(name: str) -> tuple[Path, Path]:
    """With the context and with the facts."""
    here = Path(__file__).parent
    return here / f"{name}.context.txt", here / f"{name}.facts.txt"
