"""Sessions of the past become memory: once, whole, the same in any order and beside any hooks."""

import asyncio
import json
import os
import random
import re
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from claude_mem.cli.replay import payloads
from claude_mem.config import Layout, load_settings
from claude_mem.intake.dialects import EventHeader
from claude_mem.intake.statements import Statements
from claude_mem.intake.transcripts import importer
from claude_mem.intake.transcripts.importer import (
    ImportOptions,
    Report,
    find_transcripts,
    import_transcripts,
)
from claude_mem.intake.transcripts.past_sessions import PastSessionReader
from claude_mem.intake.transcripts.transcript import Transcript
from claude_mem.observer import LocalObserver
from claude_mem.recall.context import build_context
from claude_mem.store import Store, StoreReader
from claude_mem.store.clock import now_ms
from claude_mem.worker.contexts import rendered_context
from claude_mem.worker.jobs import JobRunner
from tests.api import open_api
from tests.conftest import Home, wait_until
from tests.contents import Contents, contents_of, memory_in
from tests.payloads import PROJECT_DIR, Payload, session_start
from tests.story import DAY, MINUTE
from tests.terminal import Terminal
from tests.transcripts import OLD, PROJECTS, SESSION, Tale, harbour, recently

OTHER_DIR = "/home/dev/lighthouse"
HIDDEN = "the cook's birthday"
KEY = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2


def wishes(**changes: Any) -> ImportOptions:
    values: dict[str, Any] = {
        "own_root": "/home/dev/.claude-mem", "home": "", "keep_raw_since": now_ms() - 30 * DAY,
        "field_bytes": 8192,
    }  # fmt: skip
    return ImportOptions(**{**values, **changes})


class ImportTarget:
    """A memory in a directory of its own, into which files are imported."""

    def __init__(self, directory: Path) -> None:
        self.layout = Layout(directory)
        self.layout.create()

    def take(self, *files: Path, again: bool = False, processes: int = 1, **wished: Any) -> Report:
        with closing(Store.open(self.layout.database, self.layout.backups)) as store:
            return import_transcripts(
                store, list(files), wishes(**wished), again=again, processes=processes
            )

    @property
    def contents(self) -> Contents:
        return contents_of(self.layout.database)

    @property
    def memory(self) -> Contents:
        return memory_in(self.layout.database)


@pytest.fixture
def target(tmp_path: Path) -> ImportTarget:
    return ImportTarget(tmp_path / "target")


def alone(directory: Path, *files: Path, **wished: Any) -> Contents:
    """What a memory holds into which just these were imported, at once."""
    target = ImportTarget(directory)
    target.take(*files, **wished)
    return target.contents


def forked(origin: Tale, session: str) -> Tale:
    """The same lines under another session's id, and one turn more."""
    fork = Tale(session, start=origin.now, cwd=origin.cwd)
    fork.lines = [line.replace(f'"{origin.session}"'.encode(), f'"{session}"'.encode())
                  for line in origin.lines]  # fmt: skip
    return fork.prompt("And the fog horn?").agent("The fog horn stays silent: `horn.mute` is set.")


def library(directory: Path) -> list[Path]:
    """Files of every kind that there is."""
    origin = harbour()
    fork = forked(origin, "a-fork-whose-id-comes-last")
    early = forked(origin, "0-a-fork-whose-id-comes-first")
    copy = Tale("copy-of-all").raw(origin.data().replace(SESSION.encode(), b"copy-of-all"))
    secret = Tale("private", start=OLD + DAY).prompt(f"<private>{HIDDEN}</private>").agent("Yes.")
    secret.prompt("Paint the pier").edit(f"{PROJECT_DIR}/pier.py").agent("The pier is green now.")
    ancient = harbour("ancient", prompt_ids=False, cwd=OTHER_DIR, start=OLD - 90 * DAY)
    windows = Tale("windows", cwd="D:\\work\\harbor", start=OLD + 2 * DAY).prompt("Fix the crane")
    windows.edit("D:\\work\\harbor\\crane.py").agent(
        "The crane lifts again: `lift()` was inverted."
    )
    fresh = harbour("fresh", start=recently())
    mixed = Tale("mixed-1").prompt("Count the gulls").agent("There are 7 gulls on the pier.")
    mixed.raw(Tale("mixed-2", start=OLD + 500).prompt("Feed them").agent("They ate 3 fish.").data())
    tales = (origin, fork, early, copy, secret, ancient, windows, fresh, mixed)
    return [tale.save(directory / f"{tale.session}.jsonl") for tale in tales]


# Once, whole, in any order


def test_a_session_of_the_past_becomes_memory(target: ImportTarget, tmp_path: Path) -> None:
    report = target.take(harbour().save(tmp_path / "a.jsonl"))
    assert (report.files, report.unreadable, report.troubles) == (1, 0, [])
    assert (report.all.turns, report.all.summaries) == (3, 3)
    (session,) = target.memory["sessions"]
    assert session[0] == SESSION
    assert session[5] == "The harbour light blinks once, it should blink twice. Please fix it."
    edited = [row[11] for row in target.memory["observations"]]
    assert '["light.py"]' in edited
    assert '["docs/pulses.md", "buoy.toml"]' in edited
    assert len(target.contents["observations' events"]) >= 4


def test_to_import_twice_is_to_import_once(target: ImportTarget, tmp_path: Path) -> None:
    files = library(tmp_path / "library")
    target.take(*files)
    once = target.contents
    report = target.take(*files)
    assert (report.unchanged, report.files) == (len(files), 0)
    assert target.contents == once
    report = target.take(*files, again=True)
    assert (report.unchanged, report.files, report.all.turns) == (0, len(files), 0)
    assert target.contents == once


@settings(max_examples=20)
@given(st.data())
def test_in_any_order_and_in_any_number_of_runs_it_comes_to_the_same(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    directory = tmp_path_factory.mktemp("order")
    files = library(directory / "library")
    order = data.draw(st.permutations(files))
    runs = data.draw(st.sampled_from([1, 3, len(order)]))
    target = ImportTarget(directory / "target")
    for run in range(runs):
        target.take(*order[run::runs])
    assert target.contents == alone(directory / "alone", *files)


def test_read_side_by_side_it_is_the_same(target: ImportTarget, tmp_path: Path) -> None:
    files = library(tmp_path / "library")
    assert len(files) > importer.MOST_WITHOUT_POOL
    target.take(*files, processes=3)
    assert target.contents == alone(tmp_path / "alone", *files)


def test_read_in_pieces_it_is_the_same(
    target: ImportTarget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = library(tmp_path / "library")
    long = Tale("long", start=OLD + 5 * DAY)
    for number in range(90):
        long.prompt(f"Light lamp {number}").edit(f"{PROJECT_DIR}/lamp{number}.py")
        long.agent(f"Lamp {number} is lit.")
    files.append(long.save(tmp_path / "library/long.jsonl"))
    whole = alone(tmp_path / "alone", *files)
    monkeypatch.setattr(importer, "LARGE_FILE_BYTES", 100)
    target.take(*files)
    assert target.contents == whole
    ended = {row[0]: row[-1] for row in whole["sessions"]}
    assert ended["long"] == long.now


def test_a_fork_leaves_shared_turns_with_its_origin(target: ImportTarget, tmp_path: Path) -> None:
    origin = harbour()
    fork = forked(origin, "z-fork")
    target.take(fork.save(tmp_path / "z.jsonl"), origin.save(tmp_path / "a.jsonl"))
    found = [(row[0], row[1], row[2][:12]) for row in target.memory["prompts"]]
    assert found == [
        (SESSION, 1, "The harbour "),
        (SESSION, 2, "Do the same "),
        (SESSION, 3, "Which comman"),
        ("z-fork", 4, "And the fog "),
    ]


def test_every_prefix_of_a_growing_file_comes_to_what_the_whole_file_is(
    target: ImportTarget, tmp_path: Path
) -> None:
    """A client writes while we read, and half a line is there as often as a whole one."""
    tale = harbour(start=recently())
    tale.prompt("Once more").agent("API Error: 529", isApiErrorMessage=True).prompt("And again")
    tale.agent("Again, then.")
    file = tmp_path / f"{SESSION}.jsonl"
    for count in range(1, len(tale.lines) + 1):
        part = b"".join(line + b"\n" for line in tale.lines[:count])
        file.write_bytes(part[:-30] if count % 3 == 0 else part)
        target.take(file)
    target.take(tale.save(file))
    assert target.contents == alone(tmp_path / "alone", file)


@settings(max_examples=15)
@given(st.data())
def test_copies_of_different_length_come_to_the_longest_in_any_order(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    directory = tmp_path_factory.mktemp("copies")
    tale = harbour()
    cuts = data.draw(st.lists(st.integers(4, len(tale.lines) - 1), max_size=4, unique=True))
    file = directory / f"{SESSION}.jsonl"
    target = ImportTarget(directory / "target")
    for cut in data.draw(st.permutations([*cuts, len(tale.lines)])):
        file.write_bytes(b"".join(line + b"\n" for line in tale.lines[:cut]))
        target.take(file, again=True)
    tale.save(file)
    assert target.contents == alone(directory / "alone", file)


def test_more_of_the_turns_since_a_day_and_then_all_come_to_all(
    target: ImportTarget, tmp_path: Path
) -> None:
    files = library(tmp_path / "library")
    target.take(*files, since_ms=OLD + DAY)
    part = target.contents
    assert [row[0] for row in part["sessions"]] == ["fresh", "private", "windows"]
    target.take(*files, project=PROJECT_DIR)
    target.take(*files)
    assert target.contents == alone(tmp_path / "alone", *files)


# Killed at any point

KILLED = """
import os, signal, sys
from claude_mem.cli import main
from claude_mem.cli import imports as command
from claude_mem.store import database, imports
from claude_mem.intake.transcripts import importer

module, name, left, when = sys.argv[1:5]
owner = {"imports": imports, "Writer": database.Writer, "command": command}[module]
work, counted = getattr(owner, name), [int(left)]

def killed(*given, **named):
    counted[0] -= 1
    if counted[0] == 0 and when == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    result = work(*given, **named)
    if counted[0] == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return result

setattr(owner, name, killed)
importer.MAX_PENDING_SESSIONS = 1
sys.argv = ["claude-mem", *sys.argv[5:]]
main()
"""


def killed_import(home: Home, *point: str) -> int:
    done = subprocess.run(
        [sys.executable, "-c", KILLED, *point, "import", str(home.path / "library")],
        env=home.env(),
        capture_output=True,
        start_new_session=True,
        timeout=60,
    )
    return done.returncode


@pytest.mark.parametrize(
    "points",
    [
        [("imports", "import_session", "1", "before"), ("imports", "import_session", "4", "after")],
        [("Writer", "_commit", "2", "before"), ("Writer", "_commit", "3", "after")],
        [("imports", "mark_imported", "1", "before"), ("imports", "mark_imported", "5", "after")],
        [("command", "refresh_contexts", "1", "before")],
    ],
    ids=["in a session", "around a commit", "around a note", "before the contexts"],
)
def test_an_import_that_was_killed_is_run_again_as_if_nothing_had_happened(
    home: Home, tmp_path: Path, points: list[tuple[str, ...]]
) -> None:
    files = library(home.path / "library")
    for point in points:
        assert killed_import(home, *point) == -signal.SIGKILL
    assert home.command("import", str(home.path / "library")).returncode == 0
    assert contents_of(home.layout.database) == alone(tmp_path / "alone", *files)
    assert_contexts_are_of_today(home)


def assert_contexts_are_of_today(home: Home) -> None:
    with closing(StoreReader.open_existing(home.layout.database)) as store:
        budget = load_settings(home.env()).number("CLAUDE_MEM_CONTEXT_TOKENS")
        keys = [str(project["key"]) for project in store.projects()]
        assert len(keys) == 3
        for key in keys:
            project_id = store.project_by_key(key)
            assert project_id is not None
            (directory,) = store.recent_directories(project_id)
            rendered = rendered_context(home.layout, directory)
            assert rendered == build_context(store, project_id, budget) != ""


def test_readers_of_an_import_that_was_killed_end_with_it(home: Home) -> None:
    library(home.path / "library")
    script = KILLED.replace("main()", "command.processes = lambda: 3\nmain()")
    process = subprocess.Popen(
        [sys.executable, "-c", script, "imports", "import_session", "1", "after",
         "import", str(home.path / "library")],
        env=home.env(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip
    assert process.wait(60) == -signal.SIGKILL
    wait_until(lambda: not processes_of(process.pid), "the end of the readers")


def processes_of(session: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                state, _, _, of = (entry / "stat").read_text().rpartition(")")[2].split()[:4]
            except (FileNotFoundError, ProcessLookupError):
                continue
            if int(of) == session and state != "Z":
                found.append(int(entry.name))
    return found


# Beside hooks


class Live:
    """A session as it goes on: its transcript grows, its hooks tell, the observer distils, and
    imports come in between."""

    def __init__(self, directory: Path, tale: Tale, *, with_ids: bool) -> None:
        self.target = ImportTarget(directory / "live")
        self.tale, self.with_ids = tale, with_ids
        self.file = directory / f"{tale.session}.jsonl"
        self.now = tale.now + MINUTE  # whatever was told is due
        self.store = Store.open(
            self.target.layout.database, self.target.layout.backups, clock=lambda: self.now
        )
        self.reader = wishes().reader()
        self.written = 0
        self.waiting: list[tuple[str, Payload, int]] = []
        self._heard = 0

    def write(self) -> bool:
        """One line more; its hooks wait to be told."""
        if self.written == len(self.tale.lines):
            return False
        self.written += 1
        self.file.write_bytes(b"".join(line + b"\n" for line in self.tale.lines[: self.written]))
        found = [m for m in Transcript(self.file).events() if m.kind != "Statement"]
        if self.written < len(self.tale.lines):
            while found and found[-1].kind in ("Stop", "StopFailure", "SessionEnd"):
                found.pop()  # not yet
        for moment in found[self._heard :]:
            payload = {**moment.payload, "permission_mode": "default"}
            if not self.with_ids:
                payload.pop("prompt_id", None)
            self.waiting.append((moment.kind, payload, moment.at_ms or 0))
        self._heard = len(found)
        return True

    def tell(self) -> bool:
        """The next hook is heard."""
        if not self.waiting:
            return False
        event, payload, at = self.waiting.pop(0)
        told = self.reader.read(EventHeader(event, at + 3, self.tale.cwd), payload)
        self.store.record([told]).result()
        return True

    def distil(self) -> None:
        local = LocalObserver()
        complete = Statements(self.store, self.reader).complete
        runner = JobRunner(self.target.layout, self.store, local, local, complete=complete)
        asyncio.run(runner.run_due())

    def take(self) -> None:
        if self.file.exists():
            import_transcripts(self.store, [self.file], wishes(), again=True)

    def finish(self) -> Contents:
        while self.write() or self.tell():
            pass
        self.distil()
        self.store.close()
        return self.target.memory


def lively(session: str = SESSION, **options: Any) -> Tale:
    tale = harbour(session, start=recently(), **options)
    tale.prompt(f"<private>{HIDDEN}</private>").bash("order cake", "ordered").agent(
        "It is ordered."
    )
    tale.prompt("go on").agent("I went on to `pier.py`, which is rotten in 3 places.")
    tale.prompt("go on").edit(f"{PROJECT_DIR}/pier.py").agent("The pier is mended: 3 new planks.")
    return tale


@pytest.mark.parametrize("with_ids", [True, False], ids=["with prompt ids", "without prompt ids"])
@settings(max_examples=15)
@given(st.data())
def test_while_hooks_tell_the_same_session_it_comes_to_the_same(
    tmp_path_factory: pytest.TempPathFactory, with_ids: bool, data: st.DataObject
) -> None:
    directory = tmp_path_factory.mktemp("beside")
    tale = lively(prompt_ids=with_ids)
    live = Live(directory, tale, with_ids=with_ids)
    steps = st.sampled_from([live.write, live.write, live.tell, live.tell, live.take, live.distil])
    for _ in range(data.draw(st.integers(0, 90))):
        data.draw(steps)()
    found = live.finish()
    target = ImportTarget(directory / "import-alone")
    target.take(live.file)
    assert found == target.memory
    hooks = Live(directory / "hooks", tale, with_ids=with_ids)
    hooks.file = live.file
    assert found == hooks.finish()


@pytest.mark.parametrize("with_ids", [True, False], ids=["with prompt ids", "without prompt ids"])
def test_a_session_that_hooks_have_told_is_left_as_it_is(tmp_path: Path, with_ids: bool) -> None:
    live = Live(tmp_path, lively(prompt_ids=with_ids), with_ids=with_ids)
    live.finish()
    before = live.target.contents
    report = live.target.take(live.file)
    assert (report.all.turns, report.all.known, report.all.private) == (0, 5, 1)
    assert live.target.contents == before


def test_what_hooks_tell_late_is_theirs_and_a_further_import_changes_nothing(
    tmp_path: Path,
) -> None:
    live = Live(tmp_path, lively(), with_ids=True)
    while live.write():
        pass
    live.take()  # before a single hook was heard
    found = live.finish()
    stops = [row for row in live.target.contents["events"] if row[3] == "Stop"]
    assert len(stops) == len({row[2] for row in stops}) == 5
    before = live.target.contents
    live.target.take(live.file, again=True)
    assert live.target.contents == before
    assert live.target.memory == found


def play(home: Home, tale: Tale, file: Path, *, imports: random.Random | None = None) -> None:
    """Real hooks, and imports in between; the transcript grows as the client writes it."""
    done = 0
    for count in range(1, len(tale.lines) + 1):
        file.write_bytes(b"".join(line + b"\n" for line in tale.lines[:count]))
        told = list(payloads(file)) if b'"user"' in file.read_bytes() else []
        if count < len(tale.lines):
            while told and told[-1][0] in ("Stop", "SessionEnd"):
                told.pop()
        for event, payload in told[done:]:
            assert home.hook(payload, event).returncode == 0
        done = len(told)
        if imports is not None and imports.random() < 0.1:
            with closing(Store.open(home.layout.database, home.layout.backups)) as store:
                import_transcripts(store, [file], wishes(), again=True)
    home.wait_settled()


def test_real_hooks_and_imports_of_one_session_come_to_the_same(
    home: Home, target: ImportTarget
) -> None:
    tale = lively()
    file = tale.save_in(home.path)
    home.start_worker()
    play(home, tale, file, imports=random.Random(4))
    target.take(file)
    assert memory_in(home.layout.database) == target.memory
    done = home.command("import", "--json")
    assert json.loads(done.stdout)["turns"] == 0
    assert memory_in(home.layout.database) == target.memory


@pytest.mark.parametrize("start", [OLD, recently()], ids=["long ago", "of late"])
def test_a_session_that_is_replayed_through_real_hooks_is_the_memory_that_import_makes(
    home: Home, target: ImportTarget, start: int
) -> None:
    """Of turns long ago an import drops what it need not keep before it distils them."""
    tale = harbour(start=start)
    at = tale.cwd
    tale.prompt("Rename the crane everywhere")
    edits = [{"old_string": f"crane {n}", "new_string": f"lift {n}"} for n in range(400)]
    crane = f"{at}/crane.py"
    tale.tool("MultiEdit", {"file_path": crane, "edits": edits}, {"filePath": crane})
    tale.write_file(f"{at}/lift.py", "def lift(): ...\n" * 2000)
    tale.tool("NotebookEdit", {"notebook_path": f"{at}/plan.ipynb", "new_source": "x = 1\n" * 900},
              "updated")  # fmt: skip
    tale.bash("make test", "collected\n" + "noise\n" * 4000 + "3 failed, 9 passed in 2.1s")
    tale.failing("make lint", "Exit code 1\ncrane.py:4:1: error: unused name 'crane'")
    tale.agent("The crane is a lift now. `make lint` still fails: crane.py:4 has an unused name.")
    tale.agent("API Error: 400 bad", isApiErrorMessage=True)
    file = tale.save_in(home.path)
    home.start_worker()
    for event, payload in payloads(file):
        assert home.hook(payload, event).returncode == 0
    home.wait_settled()
    target.take(file)
    live = memory_in(home.layout.database)
    assert live == target.memory
    assert len(live["observations"]) >= 3
    files = "".join(row[-4] for row in live["observations"])
    for name in ("crane.py", "lift.py", "plan.ipynb", "light.py", "buoy.toml"):
        assert name in files


def test_raw_events_are_kept_of_late_turns_and_only_the_proof_of_old_ones(
    target: ImportTarget, tmp_path: Path
) -> None:
    late, old = harbour("late", start=recently()), harbour("old", start=OLD)
    target.take(late.save(tmp_path / "late.jsonl"), old.save(tmp_path / "old.jsonl"))
    raw: dict[str, list[Any]] = {"late": [], "old": []}
    for row in target.contents["events"]:
        raw[row[1]].append(row[8:13])
    assert len(raw["late"]) == len(raw["old"]) > 10
    assert {bytes_ > 0 for *_, bytes_ in raw["late"]} == {True, False}  # a prompt has its own place
    assert set(raw["old"]) == {(None, None, None, None, 0)}
    observations = target.contents["observations"]
    memories = [[row[1:16] for row in observations if row[0] == session]
                for session in ("late", "old")]  # fmt: skip
    assert [row[2:] for row in memories[0]] == [row[2:] for row in memories[1]]


# Private and secret


def test_nothing_private_and_no_secret_reaches_the_disk(home: Home) -> None:
    tale = Tale(start=recently()).prompt(f"Log in with {KEY} <private>{HIDDEN}</private>")
    tale.agent(f"The token {KEY} works. <private>{HIDDEN}</private>")
    tale.bash(f"curl -H 'Authorization: token {KEY}' x", f"logged in as {KEY}")
    tale.failing(f"push {KEY}", f"denied for {KEY}")
    tale.edit(f"{PROJECT_DIR}/env.py", "TOKEN = ''", f"TOKEN = '{KEY}'")
    tale.write_file(f"{PROJECT_DIR}/.env", f"GITHUB_TOKEN={KEY}\n")
    tale.agent(f"I wrote the token {KEY} to .env, where the deployment of pier 7 reads it.")
    tale.prompt(f"<private>{HIDDEN}</private>").bash("order cake", "the cake is ordered").agent(
        "cake"
    )
    tale.save_in(home.path)
    done = home.command("import")
    assert done.returncode == 0, done.stderr
    assert "1 turn private" in done.stdout
    kept = b"".join(home.files().values()) + done.stdout.encode()
    assert b"pier 7" in kept
    for secret in (KEY, HIDDEN, "cake"):
        assert secret.encode() not in kept


# The command


def imported(home: Home, *arguments: str) -> dict[str, Any]:
    done = home.command("import", "--json", *arguments)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_without_paths_it_finds_what_the_client_keeps_and_leaves_out_what_is_not_a_session(
    home: Home,
) -> None:
    own = str(home.layout.root)
    kept = home.path / PROJECTS / "-home-dev-harbor"
    harbour().save_in(home.path)
    Tale("observer", cwd=own).prompt("Observe").agent("I did.").save_in(home.path)
    Tale("observer-2", cwd=f"{own}/observer").prompt("Observe").agent("I did.").save_in(home.path)
    agent = Tale("agent-1").prompt("Look").agent("I looked.")
    agent.save(kept / "agent-a1b2.jsonl")
    agent.save(kept / SESSION / "subagents/agent-c3.jsonl")
    agent.save(kept / SESSION / "subagents/workflows/other.jsonl")
    (kept / "a-directory.jsonl").mkdir()
    os.mkfifo(kept / "pipe.jsonl")
    (kept / "loop.jsonl").symlink_to("loop.jsonl")
    (kept / "around").symlink_to(kept)
    found = imported(home)
    assert (found["sessions"], found["turns"], found["troubles"]) == (1, 3, [])
    assert [row["content_session_id"] for row in home.rows("SELECT * FROM sdk_sessions")] == [
        SESSION
    ]


def test_the_observers_own_sessions_are_left_out_also_behind_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    for directory in ("real", "real/deeper", "link", "link/deeper"):
        wished = wishes(own_root=str(tmp_path / "link"))
        past = PastSessionReader(
            Tale(cwd=f"{tmp_path}/{directory}").prompt("x").agent("y").save(tmp_path / "o.jsonl"),
            wished.reader(), 0, wished.includes,
        )  # fmt: skip
        assert list(past.sessions()) == []
    past = PastSessionReader(
        Tale(cwd=f"{tmp_path}/real-work").prompt("x").agent("y").save(tmp_path / "o.jsonl"),
        wished.reader(), 0, wished.includes,
    )  # fmt: skip
    assert len(list(past.sessions())) == 1


def test_the_clients_own_directory_may_be_another(home: Home, tmp_path: Path) -> None:
    harbour().save(tmp_path / "elsewhere/projects/x/a.jsonl")
    home.environment["CLAUDE_CONFIG_DIR"] = str(tmp_path / "elsewhere")
    assert imported(home)["turns"] == 3


def test_a_relative_path_is_kept_as_the_place_that_it_names(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    harbour().save(home.path / f"{SESSION}.jsonl")
    monkeypatch.chdir(home.path)
    assert find_transcripts([Path(f"{SESSION}.jsonl")]) == [home.path / f"{SESSION}.jsonl"]


def test_where_there_are_no_transcripts_it_says_where_it_looked(home: Home) -> None:
    done = home.command("import")
    assert done.returncode == 0
    assert done.stdout == f"There are no transcripts in {home.path}/{PROJECTS}.\n"
    assert not home.layout.database.exists()
    assert imported(home)["files"] == 0


def test_a_file_that_cannot_be_read_is_reported_and_stops_nothing(home: Home) -> None:
    good = harbour().save(home.path / "good.jsonl")
    os.mkfifo(home.path / "pipe.jsonl")
    (home.path / "memory.jsonl").symlink_to("/proc/self/mem")  # opens, and then gives an error
    named = [str(home.path / name) for name in ("pipe.jsonl", "memory.jsonl")]
    found = imported(home, *named, str(good))
    assert found["turns"] == 3
    assert [trouble["file"] for trouble in found["troubles"]] == named
    assert "is not a file" in found["troubles"][0]["reason"]
    done = home.command("import", *named)
    assert done.returncode == 0
    assert "pipe.jsonl: " in done.stdout


def test_what_cannot_be_read_in_a_file_is_counted(home: Home) -> None:
    harbour().raw(b'{"type":"user","cut').raw(b"[1]").save_in(home.path)
    done = home.command("import")
    assert "2 lines could not be read" in done.stdout
    assert len(home.rows("SELECT * FROM user_prompts")) == 3


def test_a_file_that_goes_away_while_it_is_read_stops_nothing(
    target: ImportTarget, tmp_path: Path
) -> None:
    good = harbour().save(tmp_path / "good.jsonl")
    gone = [tmp_path / "gone.jsonl"]
    reports = [target.take(good, *gone)]
    assert reports[0].all.turns == 3
    assert [path for path, _ in reports[0].troubles] == gone


def test_a_session_that_cannot_be_stored_is_reported_and_read_again_next_time(
    target: ImportTarget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = harbour("good").save(tmp_path / "good.jsonl")
    bad = harbour("bad").save(tmp_path / "bad.jsonl")
    whole = alone(tmp_path / "alone", good, bad)
    store_session = Store.import_session

    def failing(store: Store, session: Any) -> Any:
        if session.session_id == "bad":
            return store.write(lambda connection: session.no_such_thing)
        return store_session(store, session)

    monkeypatch.setattr(Store, "import_session", failing)
    report = target.take(bad, good)
    assert (report.all.turns, [path for path, _ in report.troubles]) == (3, [bad])
    monkeypatch.undo()
    assert target.take(bad, good).unchanged == 1
    assert target.contents == whole


def test_a_dry_run_writes_nothing_at_all(home: Home, tmp_path: Path) -> None:
    files = library(home.path / "library")
    bare = Home(tmp_path / "bare")
    bare.path.mkdir()
    done = bare.command("import", "--dry-run", str(home.path / "library"))
    assert done.returncode == 0, done.stderr
    assert "Would import" in done.stdout
    assert f"from {len(files)} files" in done.stdout
    assert list(bare.path.iterdir()) == []


def test_a_dry_run_knows_what_is_there_and_leaves_it_as_it_is(home: Home, tmp_path: Path) -> None:
    tale, fork = harbour(), forked(harbour(), "z-fork")
    file = tale.save_in(home.path)
    assert imported(home, "--dry-run")["turns"] == 3
    imported(home)
    before = contents_of(home.layout.database)
    found = imported(home, "--dry-run")
    assert (found["turns"], found["unchanged"]) == (0, 1)
    found = imported(home, "--dry-run", "--again")
    assert (found["turns"], found["known"]) == (0, 3)
    fork.save_in(home.path)
    tale.prompt("One more").agent("There it is.").save(file)
    found = imported(home, "--dry-run")
    assert (found["turns"], found["known"]) == (2, 6)
    assert contents_of(home.layout.database) == before
    assert imported(home)["turns"] == 2


def test_a_dry_run_of_an_export_is_refused(home: Home) -> None:
    harbour().save_in(home.path)
    imported(home)
    export = home.path / "export.jsonl"
    assert home.command("export", str(export)).returncode == 0
    before = home.layout.database.read_bytes()
    done = home.command("import", "--dry-run", str(export))
    assert done.returncode != 0
    assert "is an export" in done.stderr
    assert home.layout.database.read_bytes() == before


def test_only_one_project_by_its_name_key_or_any_directory_of_it(
    home: Home, tmp_path: Path
) -> None:
    repository = tmp_path / "boats"
    for place in (repository / ".git", repository / "src"):
        place.mkdir(parents=True)
    harbour("harbor").save_in(home.path)
    harbour("boats", cwd=str(repository / "src")).save_in(home.path)
    for wanted in ("boats", str(repository), f"{repository}/", str(repository / "src")):
        found = imported(home, "--dry-run", "--project", wanted)
        assert [one["key"] for one in found["projects"]] == [str(repository)], wanted
    done = home.command("import", "--project", "submarines")
    assert done.returncode == 0
    assert "No session in these files is of the project submarines." in done.stdout
    assert imported(home, "--project", "harbor")["sessions"] == 1
    assert imported(home)["sessions"] == 2  # a choice is no mark on the file


def test_only_turns_since_a_day(home: Home) -> None:
    tale = Tale(start=OLD).prompt("Old").agent("It was old.")
    tale.now += 5 * DAY
    tale.prompt("New").agent("It is new.").save_in(home.path)
    Tale("only-old").prompt("Older").agent("Yes.").save_in(home.path)
    found = imported(home, "--since", "2023-11-16")  # OLD is two days before
    assert (found["sessions"], found["turns"]) == (1, 1)
    assert [row["prompt_text"] for row in home.rows("SELECT prompt_text FROM user_prompts")] == [
        "New"
    ]
    assert len(home.rows("SELECT * FROM sdk_sessions")) == 1
    done = home.command("import", "--since", "last week")
    assert done.returncode != 0
    assert "write it as 2026-01-31" in done.stderr


def test_the_report_tells_of_each_project_and_what_the_next_session_is_given(home: Home) -> None:
    harbour().save_in(home.path)
    harbour("other", cwd=OTHER_DIR).save_in(home.path)
    done = home.command("import")
    assert "Imported 6 turns of 2 sessions from 2 files" in done.stdout
    assert "lighthouse" in done.stdout
    assert "tokens were said in these sessions" in done.stdout
    assert "What the next session in lighthouse is given" in done.stdout
    assert "<claude-mem-context>" in done.stdout
    again = home.command("import")
    assert "2 files unchanged since the last import" in again.stdout
    assert "6 turns known already" in home.command("import", "--again").stdout


def test_on_a_terminal_it_shows_how_far_it_is(home: Home) -> None:
    library(home.path / "library")
    command = [sys.executable, "-m", "claude_mem", "import", str(home.path / "library")]
    terminal = Terminal(command, home.path, home.env())
    try:
        assert terminal.process.wait(60) == 0
        wait_until(lambda: terminal.shows("Imported"), "the report")
        assert terminal.shows("9 transcripts")
        assert terminal.shows("━")
    finally:
        terminal.close()


def test_a_pipe_is_not_shown_how_far_it_is(home: Home) -> None:
    harbour().save_in(home.path)
    done = home.command("import")
    assert done.stderr == ""
    assert "━" not in done.stdout


# What comes after


def test_the_next_session_is_given_it_with_no_worker_ever_started(home: Home) -> None:
    harbour().save_in(home.path)
    imported(home)
    assert home.worker_pid() is None
    cold = list(home.layout.contexts.glob("*harbor*"))
    assert len(cold) == 1
    given = home.context(session_start(session_id="the-next"))
    assert json.loads(cold[0].read_bytes()) == given
    assert "pulses" in given


def test_beside_a_running_worker_the_next_session_is_given_it(home: Home) -> None:
    home.start_worker()
    worker = home.worker_pid()
    harbour().save_in(home.path)
    assert imported(home)["turns"] == 3
    assert "pulses" in home.context(session_start(session_id="the-next"))
    assert home.worker_pid() == worker


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
def test_a_transcript_of_150_megabytes_takes_no_more_memory_than_a_small_one(home: Home) -> None:
    turn = Tale("vast")
    log = "tide " * 40_000
    turn.prompt("Read the log of the tide")
    turn.tool(
        "Read", {"file_path": "/tide"}, {"type": "text", "file": {"content": log}}, content=log
    )
    turn.agent("The tide is high at 7 and low at 13.")
    data = turn.data()
    path = home.path / "vast.jsonl"
    with path.open("wb") as file:
        for number in range(150_000_000 // len(data) + 1):
            file.write(data.replace(b"-0", b"-%d" % number))
    assert path.stat().st_size > 150_000_000
    # ru_maxrss would count what this process held when it started the other.
    script = (
        "import sys; from claude_mem.cli import commands\n"
        "commands(['import', '--json', sys.argv[1]], standalone_mode=False)\n"
        "print(open('/proc/self/status').read(), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script, str(path)], env=home.env(),
                          capture_output=True, text=True, check=True)  # fmt: skip
    assert json.loads(done.stdout)["turns"] == number + 1
    peak = re.search(r"VmHWM:\s+(\d+) kB", done.stderr)
    assert peak is not None and int(peak[1]) < 200 * 1024


# Over HTTP


def test_a_path_that_comes_over_http_is_kept_only_where_the_client_keeps_transcripts(
    tmp_path: Path,
) -> None:
    kept = tmp_path / "claude/projects"
    tale = Tale(start=recently()).prompt("Go").agent("Said in the transcript: `pier 7` is rotten.")
    inside, outside = tale.save(kept / "x/a.jsonl"), tale.save(tmp_path / "outside.jsonl")
    (kept / "x/link.jsonl").symlink_to(outside)
    prompt_id = f"prompt-{SESSION}-0001"
    with open_api(tmp_path / "data") as api:
        api.worker.transcripts = kept
        for number, (path, is_kept) in enumerate(
            [(inside, True), (outside, False), (kept / "x/link.jsonl", False), (7, False)]
        ):
            about = {"contentSessionId": f"s-{number}", "cwd": PROJECT_DIR}
            api.said("/api/sessions/init", prompt="Go", prompt_id="p",
                     transcript_path=path if path == 7 else str(path), **about)  # fmt: skip
            (row,) = api.rows(
                "SELECT transcript_path FROM sdk_sessions WHERE content_session_id = ?",
                about["contentSessionId"],
            )
            assert row["transcript_path"] == (str(inside) if is_kept else "")
        about = {
            "contentSessionId": SESSION,
            "transcript_path": str(outside),
            "prompt_id": prompt_id,
        }
        api.said("/api/sessions/init", prompt="Go", **about)
        api.said("/api/sessions/summarize", last_assistant_message="Done.", **about)
        api.catch_up()
        assert api.rows("SELECT * FROM tool_events WHERE event = 'Statement'") == []


def test_the_worker_knows_where_the_client_keeps_its_transcripts(home: Home) -> None:
    tale = harbour(start=recently())
    file = tale.save_in(home.path)
    home.start_worker()
    with httpx.Client(transport=httpx.HTTPTransport(uds=str(home.layout.socket))) as client:
        about = {"contentSessionId": SESSION, "prompt": "Go", "transcript_path": str(file)}
        assert client.post("http://x/api/sessions/init", json=about).status_code == 200
    assert home.rows("SELECT transcript_path FROM sdk_sessions") == [{"transcript_path": str(file)}]
