"""A session that both hooks and imports report has the same memory as with either alone."""

import asyncio
import json
import random
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from claude_mem.cli.demo import payloads
from claude_mem.intake.event_reader import EventHeader
from claude_mem.intake.transcripts.importer import distil_waiting, import_transcripts
from claude_mem.intake.transcripts.transcript import Transcript
from claude_mem.store import Store
from claude_mem.worker.announcer import Announcer
from claude_mem.worker.contexts import Contexts
from claude_mem.worker.distil_jobs import JobRunner, TranscriptAdditions
from tests.conftest import Home
from tests.contents import Contents, memory_in
from tests.importing import (
    HIDDEN,
    ImportTarget,
    import_options,
)
from tests.payloads import PROJECT_DIR, Payload
from tests.story import MINUTE
from tests.transcripts import OLD, SESSION, Chat, harbour, recently
from tests.variants import mostly_extra


@pytest.fixture
def target(tmp_path: Path) -> ImportTarget:
    return ImportTarget(tmp_path / "target")


class Live:
    """A running session: its transcript grows, its hooks report, the observer distils, and imports
    run in between."""

    def __init__(self, directory: Path, chat: Chat, *, with_ids: bool) -> None:
        self.target = ImportTarget(directory / "live")
        self.chat, self.with_ids = chat, with_ids
        self.file = directory / f"{chat.session}.jsonl"
        self.now = chat.now + MINUTE  # so every turn is due
        self.store = Store.open(
            self.target.layout.database, self.target.layout.backups, clock=lambda: self.now
        )
        self.reader = import_options().reader()
        self.written = 0
        self.waiting: list[tuple[str, Payload, int]] = []
        self._sent = 0

    def write(self) -> bool:
        """The client writes one more line; its hooks are waiting."""
        if self.written == len(self.chat.lines):
            return False
        self.written += 1
        self.file.write_bytes(b"".join(line + b"\n" for line in self.chat.lines[: self.written]))
        events = [e for e in Transcript(self.file).events() if e.kind != "Statement"]
        if self.written < len(self.chat.lines):
            while events and events[-1].kind in ("Stop", "StopFailure", "SessionEnd"):
                events.pop()  # not yet
        for event in events[self._sent :]:
            payload = {**event.payload, "permission_mode": "default"}
            if not self.with_ids:
                payload.pop("prompt_id", None)
            self.waiting.append((event.kind, payload, event.at_ms or 0))
        self._sent = len(events)
        return True

    def send(self) -> bool:
        """The next hook is stored."""
        if not self.waiting:
            return False
        kind, payload, at = self.waiting.pop(0)
        event = self.reader.read(EventHeader(kind, at + 3, self.chat.cwd), payload)
        self.store.record_events([event]).result()
        return True

    def distil(self) -> None:
        runner = JobRunner(
            self.target.layout,
            self.store,
            Announcer(self.target.layout, self.store),
            Contexts(self.target.layout, self.store, home="", budget=1_000),
            transcript_additions=TranscriptAdditions(self.store, self.reader),
        )
        asyncio.run(runner.run_due())

    def run_import(self) -> None:
        if self.file.exists():
            import_transcripts(self.store, [self.file], import_options(), again=True)

    def import_record(self) -> None:
        """Imports the record as the command does: most turns get their memories later."""
        if self.file.exists():
            options = import_options(reads="record")
            import_transcripts(self.store, [self.file], options, again=True)

    def distil_imported(self) -> None:
        distil_waiting(self.store, import_options())

    def finish(self) -> Contents:
        while self.write() or self.send():
            pass
        self.distil()
        self.distil_imported()
        self.store.close()
        return self.target.memory


def lively(session: str = SESSION, **options: Any) -> Chat:
    chat = harbour(session, start=recently(), **options)
    chat.prompt(f"<private>{HIDDEN}</private>").bash("order cake", "ordered").agent(
        "It is ordered."
    )
    chat.prompt("go on").agent("I went on to `pier.py`, which is rotten in 3 places.")
    chat.prompt("go on").edit(f"{PROJECT_DIR}/pier.py").agent("The pier is mended: 3 new planks.")
    return chat


@pytest.mark.parametrize(
    "with_ids", mostly_extra([True, False]), ids=["with prompt ids", "without prompt ids"]
)
@pytest.mark.parametrize("later", [False, True], ids=["at once", "distilled later"])
@settings(max_examples=15)
@given(st.data())
def test_while_hooks_tell_the_same_session_it_comes_to_the_same(
    tmp_path_factory: pytest.TempPathFactory, with_ids: bool, later: bool, data: st.DataObject
) -> None:
    directory = tmp_path_factory.mktemp("beside")
    chat = lively(prompt_ids=with_ids)
    live = Live(directory, chat, with_ids=with_ids)
    imports = [live.import_record, live.distil_imported] if later else [live.run_import]
    steps = st.sampled_from([live.write, live.write, live.send, live.send, *imports, live.distil])
    for _ in range(data.draw(st.integers(0, 90))):
        data.draw(steps)()
    memory = live.finish()
    target = ImportTarget(directory / "import-alone")
    target.run(live.file)
    assert memory == target.memory
    hooks = Live(directory / "hooks", chat, with_ids=with_ids)
    hooks.file = live.file
    assert memory == hooks.finish()


@pytest.mark.parametrize("with_ids", [True, False], ids=["with prompt ids", "without prompt ids"])
def test_a_session_that_hooks_have_told_is_left_as_it_is(tmp_path: Path, with_ids: bool) -> None:
    live = Live(tmp_path, lively(prompt_ids=with_ids), with_ids=with_ids)
    live.finish()
    before = live.target.contents
    report = live.target.run(live.file)
    assert (report.all.turns, report.all.existing, report.all.private) == (0, 5, 1)
    assert live.target.contents == before


def test_what_hooks_tell_late_is_theirs_and_a_further_import_changes_nothing(
    tmp_path: Path,
) -> None:
    live = Live(tmp_path, lively(), with_ids=True)
    while live.write():
        pass
    live.run_import()  # before any hook was stored
    memory = live.finish()
    stops = [row for row in live.target.contents["events"] if row[3] == "Stop"]
    assert len(stops) == len({row[2] for row in stops}) == 5
    before = live.target.contents
    live.target.run(live.file, again=True)
    assert live.target.contents == before
    assert live.target.memory == memory


def play(home: Home, chat: Chat, file: Path, *, imports: random.Random | None = None) -> None:
    """Real hooks, and imports in between; the transcript grows as the client writes it."""
    done = 0
    file.write_bytes(b"")
    for count, line in enumerate(chat.lines, 1):
        with file.open("ab") as transcript:  # the worker may be reading it
            transcript.write(line + b"\n")
        hooks = list(payloads(file)) if b'"user"' in file.read_bytes() else []
        if count < len(chat.lines):
            while hooks and hooks[-1][0] in ("Stop", "SessionEnd"):
                hooks.pop()
        for event, payload in hooks[done:]:
            assert home.hook(payload, event).returncode == 0
        done = len(hooks)
        if imports is not None and imports.random() < 0.1:
            with closing(Store.open(home.layout.database, home.layout.backups)) as store:
                import_transcripts(store, [file], import_options(), again=True)
    home.wait_settled()


def test_real_hooks_and_imports_of_one_session_come_to_the_same(
    home: Home, target: ImportTarget
) -> None:
    chat = lively()
    file = chat.save_in(home.path)
    home.start_worker()
    play(home, chat, file, imports=random.Random(4))
    target.run(file)
    assert memory_in(home.layout.database) == target.memory
    done = home.command("import", "--json")
    assert json.loads(done.stdout)["turns"] == 0
    assert memory_in(home.layout.database) == target.memory


@pytest.mark.parametrize("start", [OLD, recently()], ids=["long ago", "of late"])
def test_a_session_that_is_replayed_through_real_hooks_is_the_memory_that_import_makes(
    home: Home, target: ImportTarget, start: int
) -> None:
    """Of turns long ago an import drops what it need not keep before it distils them."""
    chat = harbour(start=start)
    at = chat.cwd
    chat.prompt("Rename the crane everywhere")
    edits = [{"old_string": f"crane {n}", "new_string": f"lift {n}"} for n in range(400)]
    crane = f"{at}/crane.py"
    chat.tool("MultiEdit", {"file_path": crane, "edits": edits}, {"filePath": crane})
    chat.write_file(f"{at}/lift.py", "def lift(): ...\n" * 2000)
    chat.tool("NotebookEdit", {"notebook_path": f"{at}/plan.ipynb", "new_source": "x = 1\n" * 900},
              "updated")  # fmt: skip
    chat.bash("make test", "collected\n" + "noise\n" * 4000 + "3 failed, 9 passed in 2.1s")
    chat.failing("make lint", "Exit code 1\ncrane.py:4:1: error: unused name 'crane'")
    chat.agent("The crane is a lift now. `make lint` still fails: crane.py:4 has an unused name.")
    chat.agent("API Error: 400 bad", isApiErrorMessage=True)
    file = chat.save_in(home.path)
    home.start_worker()
    for event, payload in payloads(file):
        assert home.hook(payload, event).returncode == 0
    home.wait_settled()
    target.run(file)
    live = memory_in(home.layout.database)
    assert live == target.memory
    assert len(live["observations"]) >= 3
    files = "".join(row[-4] for row in live["observations"])
    for name in ("crane.py", "lift.py", "plan.ipynb", "light.py", "buoy.toml"):
        assert name in files
