"""Commands, faults and open steps of a turn: typed values with their events, wherever they go."""

import io
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from claude_mem.recall.formatting import memories_text
from claude_mem.recall.memory_ids import MemoryId
from claude_mem.recall.search import Query, search
from claude_mem.redaction import Redactor
from claude_mem.store import Store
from claude_mem.store.forgetting import Selection
from claude_mem.store.listing import Page
from claude_mem.store.memories import commands_from, faults_from, open_steps_from
from claude_mem.store.memory_rows import JsonRow
from claude_mem.store.transfer.restore import RestoreReport, restore
from claude_mem.types import CommandRun, Distillate, EnvironmentFault, OpenStep, Summary
from tests.payloads import bash, failure, prompt, stop
from tests.story import Story

STEP = "The `fuse` in `lamp.py` must still be replaced."
WRONG = {"tool_input": {"command": "wrap make test"}, "error": "error: no such command 'make'"}


def work(story: Story, prompt_id: str = "p1") -> None:
    """A turn with a fault, a test that passed and a step that is left."""
    of = {"prompt_id": prompt_id}
    story.tell(
        prompt("Light the lamp", **of), failure(**WRONG, **of),
        bash("make test", "3 passed", **of), stop(f"The lamp is lit. {STEP}", **of),
    )  # fmt: skip
    assert story.distil() == 1


def summaries(store: Store) -> list[JsonRow]:
    return store.page("summaries", Page())[0]


def event_keys(story: Story, sources: tuple[int, ...]) -> list[str]:
    rows = story.rows("SELECT id, event_key FROM tool_events")
    keys = {row["id"]: row["event_key"] for row in rows}
    return [keys[source] for source in sources]


def facts_by_event_key(story: Story) -> list[tuple[object, ...]]:
    """Every fact of every summary, with the keys of its events instead of their ids."""
    facts: list[tuple[object, ...]] = []
    for record in summaries(story.store):
        for run in commands_from(record["commands"]):
            keys = event_keys(story, run.sources)
            facts.append((run.command, run.purpose, run.outcome, run.counts, keys))
        for fault in faults_from(record["faults"]):
            keys = event_keys(story, fault.sources)
            facts.append((fault.command, fault.error, fault.alternative, keys))
        steps = open_steps_from(record["open_steps"])
        facts += [(step.text, event_keys(story, step.sources)) for step in steps]
    return facts


def working_here(story: Story) -> list[tuple[str, str, str]]:
    """The commands of the project, and those that fail here, with what works instead."""
    facts = story.store.facts(story.store.find_project("harbor"), ("command", "fault"))
    return sorted((fact.kind, fact.subject, fact.value) for fact in facts)


def results(story: Story, query: str) -> list[str]:
    now = datetime.fromtimestamp(story.now / 1000, UTC)
    return [str(row.id) for row in search(story.store, Query(query), now).rows]


WORKING_HERE = [("command", "test", "make test"), ("fault", "wrap make test", "make test")]


def test_facts_are_stored_with_the_events_they_came_from(story: Story) -> None:
    work(story)
    failed, passed, stopped = story.column(
        "SELECT id FROM tool_events WHERE tool_name IS NOT NULL OR event = 'Stop' ORDER BY id"
    )
    (record,) = summaries(story.store)
    assert commands_from(record["commands"]) == (
        CommandRun("wrap make test", "test", "failed", "", (failed,)),
        CommandRun("make test", "test", "passed", "3 passed", (passed,)),
    )
    error = "error: no such command 'make'"
    assert faults_from(record["faults"]) == (
        EnvironmentFault("wrap make test", error, "make test", (failed, passed)),
    )
    assert open_steps_from(record["open_steps"]) == (OpenStep(STEP, (stopped,)),)
    assert record["notes"] is None


def test_a_turn_is_found_by_its_commands(story: Story) -> None:
    work(story)
    assert results(story, "wrap make") == ["S1"]


def test_a_summary_in_full_shows_its_commands_and_faults(story: Story) -> None:
    work(story)
    (record,) = summaries(story.store)
    text = memories_text([(MemoryId("summary", 1), record)])
    assert (
        "commands: - Tests: `wrap make test` (failed).\n  - Tests: `make test` (3 passed).\n"
        "faults: - `wrap make test` failed (error: no such command 'make'); `make test` worked."
    ) in text


def test_a_turn_that_goes_on_after_a_model_revised_it_has_all_its_commands(story: Story) -> None:
    story.tell(prompt(), stop())
    job, turn = story.claim()
    revised = Distillate(Summary(request="r", notes="n"), observer="claude", model="m")
    assert story.store.finish_job(job, turn, revised).result()
    story.tell(bash("make lint", prompt_id=None), stop("It is lit."))
    assert story.distil() == 1
    (record,) = summaries(story.store)
    assert (record["notes"], record["model"]) == ("n", "m")
    assert [run.text for run in commands_from(record["commands"])] == [
        "Check: `make lint` (passed)."
    ]
    assert len(results(story, "lint")) == 1  # the turn


# Out and in again


def exported(store: Store) -> bytes:
    out = io.BytesIO()
    store.export(out.write)
    return out.getvalue()


def restored(story: Story, data: bytes) -> RestoreReport:
    path = story.layout.root.parent / "in.jsonl"
    path.write_bytes(data)
    return restore(story.store, path, Redactor())


def test_restored_facts_point_to_the_same_events_under_their_new_ids(
    story: Story, tmp_path: Path
) -> None:
    work(story)
    (tmp_path / "other").mkdir()
    with Story(tmp_path / "other") as other:
        other.tell(prompt("Something else", session_id="x"), stop(session_id="x"))
        other.distil()
        before = len(facts_by_event_key(other))
        assert restored(other, exported(story.store)).refused == 0
        mine = facts_by_event_key(story)
        assert facts_by_event_key(other)[: len(mine)] == mine and before == 0
        assert story.column("SELECT max(id) FROM tool_events") != other.column(
            "SELECT max(id) FROM tool_events"
        )
        again = restored(other, exported(story.store))
        assert (again.refused, again.added.total()) == (0, 0)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("commands", {}),
        ("commands", ["make"]),
        ("commands", [{"command": "make", "purpose": "x", "outcome": "passed", "counts": "",
                       "sources": []}]),
        ("faults", [{"command": "make", "error": 1, "alternative": "", "sources": []}]),
        ("open_steps", [{"text": "t", "sources": ["1"]}]),
        ("open_steps", [{"text": "t"}]),
    ],
)  # fmt: skip
def test_facts_of_another_shape_are_refused(
    story: Story, tmp_path: Path, column: str, value: Any
) -> None:
    work(story)
    lines = [json.loads(line) for line in exported(story.store).splitlines()]
    for line in lines:
        if line.get("table") == "session_summaries":
            line[column] = json.dumps(value)
    (tmp_path / "other").mkdir()
    with Story(tmp_path / "other") as other:
        report = restored(other, b"\n".join(json.dumps(line).encode() for line in lines))
        assert [column in refusal.reason for refusal in report.reasons][:1] == [True]
        assert summaries(other.store) == []


def test_what_is_forgotten_comes_back_with_its_facts(story: Story) -> None:
    work(story)
    before = facts_by_event_key(story)
    selection = Selection(session=story.session_db_id())
    token = story.store.preview_forgetting(selection).token
    story.store.forget(selection, token).result()
    assert summaries(story.store) == []
    story.store.undo_forgetting(token).result()
    assert facts_by_event_key(story) == before
