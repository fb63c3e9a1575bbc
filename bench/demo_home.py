"""A data directory with the sessions of `demo_sessions`, and older ones made from a few words."""

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from bench.demo_sessions import MODEL, SESSIONS, DemoSession, DemoTurn
from claude_mem.config import Layout
from claude_mem.index import indexing
from claude_mem.intake.event_reader import EventHeader, EventReader
from claude_mem.intake.projects import Projects
from claude_mem.observer.local.version import VERSION
from claude_mem.redaction import Redactor
from claude_mem.store import Store
from claude_mem.types import (
    OBSERVATION_TYPES,
    CommandRun,
    Distillate,
    Event,
    Json,
    Observation,
    OpenStep,
    ProposedFact,
    RecordPart,
    Summary,
)

DAY_MS, MINUTE_MS = 86_400_000, 60_000
HOME = "/home/dev/code"

_PARTS = {
    "beacon-api": ("the invoice export", "the login flow", "the audit log", "the OpenAPI schema",
                   "the health check", "the tenant filter", "the CSV importer", "token rotation"),
    "tidepool": ("the sample table", "the map view", "the date picker", "the offline cache",
                 "the upload dialog", "the colour scale", "the keyboard shortcuts"),
    "sextant": ("the tide tables", "the almanac download", "the error messages", "the plot command",
                "the config file", "the man page"),
    "dotfiles": ("the prompt", "the git aliases", "the editor config"),
}  # fmt: skip
_WORK = (
    ("bugfix", "{part} fails when the list is empty. Fix it.", "Fixed an empty list in {part}",
     "An empty list is handled before the first element is read, and a test covers it."),
    ("feature", "Add a way to filter {part}.", "Filters for {part}",
     "Filters can be combined; the choice is kept in the address."),
    ("refactor", "Split {part} into smaller modules.", "Split {part} into reading and writing",
     "Reading and writing are separate modules; nothing else changed."),
    ("discovery", "Why is {part} so slow?", "{part} reads the same rows twice",
     "The second read comes from the serializer; a profile shows 60% of the time there."),
    ("decision", "Should {part} be configurable?", "{part} stays without settings",
     "Nobody asked for it, and each setting doubles the tests."),
    ("change", "Update the dependencies of {part}.", "Updated the dependencies of {part}",
     "Two minor versions; the deprecation warnings are gone."),
)  # fmt: skip


def older_sessions(count: int, days: int, seed: int = 4) -> Iterator[DemoSession]:
    chosen = random.Random(seed)
    weights = (10, 7, 4, 1)
    for number in range(count):
        project = chosen.choices(list(_PARTS), weights)[0]
        part = chosen.choice(_PARTS[project])
        turns = tuple(
            _older_turn(project, part, chosen) for _ in range(chosen.choice((1, 2, 2, 3, 4)))
        )
        age = 4.5 + (days - 5) * ((number + chosen.random()) / count)
        yield DemoSession(project, turns[0].notes[0][1], age, turns)


def _older_turn(project: str, part: str, chosen: random.Random) -> DemoTurn:
    kind, prompt, title, narrative = chosen.choice(_WORK)
    assert kind in OBSERVATION_TYPES
    name = part.removeprefix("the ").replace(" ", "_")
    suffix = {"beacon-api": "py", "tidepool": "tsx", "sextant": "rs"}.get(project, "sh")
    return DemoTurn(
        prompt=_capital(prompt.format(part=part)),
        completed=narrative,
        notes=((kind, _capital(title.format(part=part)), narrative),),
        edited=((f"src/{name}.{suffix}", "before()", "after()"),) if kind != "decision" else (),
        model=MODEL if chosen.random() < 0.6 else "",
    )


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


class DemoHome:
    """Writes sessions as hooks and an observer would."""

    def __init__(self, layout: Layout, now_ms: int) -> None:
        layout.create()
        self._now = now_ms
        self._ms = now_ms
        self.store = Store.open(layout.database, layout.backups, clock=lambda: self._ms)
        self.store.run_before_commit(indexing.refresh)
        self._reader = EventReader(Redactor(), Projects(home=None))
        self._number = 0

    def close(self) -> None:
        self.store.close()

    def write(self, session: DemoSession) -> None:
        self._number += 1
        self._ms = self._start_of(session)
        session_id = f"demo-{self._number:05d}"
        for number, turn in enumerate(session.turns, 1):
            self._write_turn(session, session_id, f"{session_id}-{number}", turn)
            self._ms += 7 * MINUTE_MS
        if session.days_ago > 0.1:
            self._record(session, session_id, None, "SessionEnd", reason="other")

    def _start_of(self, session: DemoSession) -> int:
        """Returns a start in working hours, unless the session is of today."""
        start = self._now - int(session.days_ago * DAY_MS)
        if session.days_ago < 0.5:
            return start
        hour = 9 + (self._number * 7) % 9
        return start - start % DAY_MS + hour * 60 * MINUTE_MS + self._number % 50 * MINUTE_MS

    def _write_turn(
        self, session: DemoSession, session_id: str, prompt_id: str, turn: DemoTurn
    ) -> None:
        self._record(session, session_id, prompt_id, "UserPromptSubmit", prompt=turn.prompt)
        for file, before, after in turn.edited:
            self._record(
                session, session_id, prompt_id, "PostToolUse",
                **_edit(f"{HOME}/{session.project}/{file}", before, after),
                tool_use_id=f"toolu_{prompt_id}_{file}",
            )  # fmt: skip
        for command, output in turn.commands:
            self._record(
                session, session_id, prompt_id, "PostToolUse", tool_name="Bash",
                tool_input={"command": command}, tool_response={"stdout": output, "stderr": ""},
                tool_use_id=f"toolu_{prompt_id}_{command}",
            )  # fmt: skip
        self._record(session, session_id, prompt_id, "Stop",
                     last_assistant_message=turn.said or turn.completed)  # fmt: skip
        claimed = self.store.claim_job().result()
        assert claimed is not None
        job, stored = claimed
        assert stored is not None
        events = tuple(event.id for event in stored.events if event.tool_name)
        said = turn.said or turn.completed
        record = (
            RecordPart("prompt", "user", turn.prompt),
            *(RecordPart("description", "agent", f"Run `{run}`") for run, _ in turn.commands[:1]),
            RecordPart("statement", "agent", said),
        )
        distillate = _distillate(session, turn, events)
        self.store.finish_job(job, stored, distillate, record=record).result()

    def _record(
        self, session: DemoSession, session_id: str, prompt_id: str | None, kind: str, **more: Json
    ) -> None:
        self._ms += 40_000
        directory = f"{HOME}/{session.project}"
        payload: dict[str, Json] = {"session_id": session_id, "cwd": directory, **more}
        if prompt_id:
            payload["prompt_id"] = prompt_id
        event: Event = self._reader.read(EventHeader(kind, self._ms, directory), payload)
        self.store.record_events([replace(event)]).result()


def _edit(path: str, before: str, after: str) -> dict[str, Json]:
    lines: list[Json] = [
        *(f"-{line}" for line in before.splitlines()),
        *(f"+{line}" for line in after.splitlines()),
    ]
    patch: Json = [{"oldStart": 12, "oldLines": 1, "newStart": 12, "newLines": 1, "lines": lines}]
    return {
        "tool_name": "Edit",
        "tool_input": {"file_path": path, "old_string": before, "new_string": after},
        "tool_response": {"filePath": path, "structuredPatch": patch},
    }


def _distillate(session: DemoSession, turn: DemoTurn, events: tuple[int, ...]) -> Distillate:
    files = tuple(file for file, _, _ in turn.edited)
    observations = tuple(
        Observation(
            kind, title, narrative=narrative or None, concepts=turn.concepts, sources=events,
            files_modified=files if position == 0 else (),
        )
        for position, (kind, title, narrative) in enumerate(turn.notes)
    )  # fmt: skip
    runs = tuple(
        CommandRun(command, "test", "passed", output.split(" in ")[0], events[-1:])
        for command, output in turn.commands
        if "test" in command
    )
    summary = Summary(
        request=turn.prompt,
        learned=turn.learned or None,
        completed=turn.completed,
        next_steps=turn.next_steps or None,
        files_edited=files,
        commands=runs,
        open_steps=(OpenStep(turn.next_steps, events[-1:], "announced"),)
        if turn.next_steps
        else (),
        sources=events,
    )
    facts = [ProposedFact("decision", question, answer) for question, answer in turn.decisions]
    if turn.prompt.startswith("Always"):
        rule = turn.prompt.split(". ")[0] + "."
        facts.append(ProposedFact("rule", "", rule, origin="person"))
    return Distillate(
        summary, observations, title=session.title, observer="claude" if turn.model else "local",
        model=turn.model or None, facts=tuple(facts), version=VERSION,
    )  # fmt: skip


def write_demo(data_dir: Path, now_ms: int, older: int = 160, days: int = 150) -> None:
    home = DemoHome(Layout(data_dir), now_ms)
    try:
        sessions = [*SESSIONS, *older_sessions(older, days)]
        for session in sorted(sessions, key=lambda session: -session.days_ago):
            home.write(session)
        home.store.write(indexing.refresh).result()
    finally:
        home.close()
