"""Imported turns that get their memories later: the result is that of an import that distils all
turns at once, whatever happens in between."""

import asyncio
import json
import os
import signal
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from claude_mem.errors import BadInput
from claude_mem.intake.transcripts import importer, newest_sessions
from claude_mem.intake.transcripts.import_report import Report
from claude_mem.intake.transcripts.importer import ReadingProcess, ReadRequest, distil_waiting
from claude_mem.store import Store, StoreReader
from claude_mem.store.forgetting import Selection
from claude_mem.worker.distil_jobs import TranscriptAdditions
from claude_mem.worker.idle_distilling import IdleDistilling
from tests.conftest import Home, wait_until
from tests.contents import contents_of
from tests.importing import ImportTarget, import_alone, import_options, library
from tests.payloads import PROJECT_DIR, session_start
from tests.story import DAY, Story
from tests.transcripts import OLD, SESSION, Chat, harbour, recently


class LaterTarget(ImportTarget):
    """Imports without memories and raw texts, which come with `distil`."""

    def run(self, *files: Path, **options: Any) -> Report:
        reads = options.setdefault("reads", "record")
        options.setdefault("raw_later", reads == "record")
        return super().run(*files, **options)

    def distil(self, processes: int = 1) -> None:
        with closing(Store.open(self.layout.database, self.layout.backups)) as store:
            distil_waiting(store, import_options(), processes=processes)

    @property
    def waiting(self) -> tuple[int, int]:
        with closing(StoreReader.open_existing(self.layout.database)) as store:
            return store.count_undistilled()

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self.layout.database)) as connection:
            return connection.execute(query).fetchall()


@pytest.fixture
def target(tmp_path: Path) -> LaterTarget:
    return LaterTarget(tmp_path / "target")


def two_sessions(directory: Path, start: int = OLD) -> tuple[Path, Path]:
    early, late = harbour("early", start=start), harbour("late", start=start + 60_000)
    return early.save(directory / "early.jsonl"), late.save(directory / "late.jsonl")


# The same result


@settings(max_examples=20)
@given(st.data())
def test_in_any_order_and_distilled_at_any_time_it_comes_to_the_same(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    directory = tmp_path_factory.mktemp("order")
    files = library(directory / "library")
    order = data.draw(st.permutations(files))
    runs = data.draw(st.sampled_from([1, 3, len(order)]))
    target = LaterTarget(directory / "target")
    for run in range(runs):
        reads = data.draw(st.sampled_from(["record", "record", "all"]))
        target.run(*order[run::runs], reads=reads)
        if data.draw(st.booleans()):
            target.distil()
    target.distil()
    assert target.waiting == (0, 0)
    assert target.contents == import_alone(directory / "alone", *files)


def test_read_side_by_side_and_in_pieces_it_is_the_same(
    target: LaterTarget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = library(tmp_path / "library")
    long = Chat("long", start=OLD + 5 * DAY)
    for number in range(90):
        long.prompt(f"Light lamp {number}").edit(f"{PROJECT_DIR}/lamp{number}.py")
        long.agent(f"Lamp {number} is lit.")
    files.append(long.save(tmp_path / "library/long.jsonl"))
    expected = import_alone(tmp_path / "alone", *files)
    target.run(*files, processes=3)
    target.distil(processes=3)
    assert target.contents == expected
    monkeypatch.setattr(importer, "LARGE_FILE_BYTES", 100)
    parts = LaterTarget(tmp_path / "parts")
    parts.run(*files)
    parts.distil()
    assert parts.contents == expected


def test_every_prefix_of_a_growing_file_comes_to_what_the_whole_file_is(
    target: LaterTarget, tmp_path: Path
) -> None:
    chat = harbour(start=recently())
    chat.prompt("Once more").agent("API Error: 529", isApiErrorMessage=True).prompt("And again")
    chat.agent("Again, then.")
    file = tmp_path / f"{SESSION}.jsonl"
    for count in range(1, len(chat.lines) + 1):
        file.write_bytes(b"".join(line + b"\n" for line in chat.lines[:count]))
        target.run(file)
        if count % 4 == 0:
            target.distil()
    target.run(chat.save(file))
    target.distil()
    assert target.contents == import_alone(tmp_path / "alone", file)


@settings(max_examples=15)
@given(st.data())
def test_of_copies_of_different_length_the_same_one_counts(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    directory = tmp_path_factory.mktemp("copies")
    chat = harbour()
    cuts = data.draw(st.lists(st.integers(4, len(chat.lines) - 1), max_size=4, unique=True))
    target, at_once = LaterTarget(directory / "target"), ImportTarget(directory / "at-once")
    for cut in data.draw(st.permutations([*cuts, len(chat.lines)])):
        file = directory / str(cut) / f"{SESSION}.jsonl"
        file.parent.mkdir()
        file.write_bytes(b"".join(line + b"\n" for line in chat.lines[:cut]))
        target.run(file)
        at_once.run(file)
        if data.draw(st.booleans()):
            target.distil()
    target.distil()
    assert target.contents == at_once.contents


def test_a_fork_that_has_no_turns_of_its_own_gets_its_title(
    target: LaterTarget, tmp_path: Path
) -> None:
    origin = harbour("a-origin")
    copy = Chat("z-copy").raw(origin.data().replace(b'"a-origin"', b'"z-copy"'))
    files = [origin.save(tmp_path / "a.jsonl"), copy.save(tmp_path / "z.jsonl")]
    target.run(*files)
    target.distil()
    assert target.contents == import_alone(tmp_path / "alone", *files)
    assert {row[4] for row in target.contents["sessions"]} != {None}


def test_what_was_distilled_at_once_is_not_queued_again(
    target: LaterTarget, tmp_path: Path
) -> None:
    files = library(tmp_path / "library")
    target.run(*files, reads="all")
    report = target.run(*files, again=True)
    assert report.all.waiting == 0
    assert target.rows("SELECT * FROM undistilled_transcripts WHERE distilled = 0") == []


# Before the memories are there


def test_the_record_is_there_at_once_and_search_finds_it(tmp_path: Path) -> None:
    target = LaterTarget(tmp_path / "data")
    files = two_sessions(tmp_path)
    report = target.run(*files)
    assert (report.all.turns, report.all.waiting, report.all.summaries) == (6, 6, 0)
    full = ImportTarget(tmp_path / "full")
    full.run(*files)
    for noun in ("prompts", "events", "records", "directories"):
        assert target.contents[noun] == full.contents[noun]
    assert target.contents["observations"] == target.contents["summaries"] == []


def test_the_newest_sessions_of_each_project_are_distilled_at_once(
    target: LaterTarget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(newest_sessions, "FEW_BYTES", 0)
    other = harbour("other", cwd="/home/dev/lighthouse", start=OLD - DAY)
    early, late = two_sessions(tmp_path)
    files = [early, late, other.save(tmp_path / "other.jsonl")]
    for file in files:
        os.utime(file, (1, 1))  # as after a copy: the times are those in the files
    empty, pipe = tmp_path / "empty.jsonl", tmp_path / "pipe.jsonl"
    empty.touch()
    os.mkfifo(pipe)
    report = target.run(*files, empty, pipe, tmp_path / "gone.jsonl", reads="newest")
    assert {row[0] for row in target.memory["summaries"]} == {"late", "other"}
    assert target.waiting == (report.all.waiting, 0) == (3, 0)
    target.distil()
    assert target.contents == import_alone(tmp_path / "alone", *files)


def test_of_a_small_import_all_sessions_are_distilled_at_once(
    target: LaterTarget, tmp_path: Path
) -> None:
    files = library(tmp_path / "library")
    target.run(*files, reads="newest", processes=2)
    assert target.contents == import_alone(tmp_path / "alone", *files)


# Transcripts that are gone


def test_without_transcript_and_events_a_turn_keeps_its_record_and_gets_no_memories(
    target: LaterTarget, tmp_path: Path
) -> None:
    early, late = two_sessions(tmp_path)
    target.run(early, late)
    records = target.contents["records"]
    early_bytes = early.read_bytes()
    early.unlink()
    target.distil()
    assert target.waiting == (0, 3)
    assert {row[0] for row in target.memory["summaries"]} == {"late"}
    assert target.contents["records"] == records
    early.write_bytes(early_bytes)  # it comes back, as from a backup
    target.run(early, late, again=True)
    assert target.waiting == (3, 0)
    target.distil()
    assert target.contents == import_alone(tmp_path / "alone", early, late)


def test_recent_turns_are_distilled_from_their_events_if_the_transcript_is_gone(
    target: LaterTarget, tmp_path: Path
) -> None:
    early, late = two_sessions(tmp_path, start=recently())
    expected = import_alone(tmp_path / "alone", early, late)
    target.run(early, late, raw_later=False)
    early.unlink()
    target.distil()
    assert target.waiting == (0, 0)
    assert target.contents["observations"] == expected["observations"]
    assert target.contents["summaries"] == expected["summaries"]


def test_a_transcript_that_is_gone_before_its_raw_texts_were_read_costs_nothing_else(
    target: LaterTarget, tmp_path: Path
) -> None:
    early, late = two_sessions(tmp_path, start=recently())
    expected = import_alone(tmp_path / "alone", early, late)
    target.run(early, late)
    assert {row[13] for row in target.contents["events"]} == {0}  # bytes
    early_bytes = early.read_bytes()
    early.unlink()
    target.distil()
    assert target.waiting == (0, 3)
    for noun in ("prompts", "records", "directories"):
        assert target.contents[noun] == expected[noun]
    of_late = [row for row in expected["events"] if row[1] == "late"]
    assert [row for row in target.contents["events"] if row[1] == "late"] == of_late
    early.write_bytes(early_bytes)
    target.run(early, again=True)
    target.distil()
    assert target.contents == expected


def test_raw_texts_of_a_turn_that_has_grown_stay_until_the_transcript_is_read_again(
    target: LaterTarget, tmp_path: Path
) -> None:
    chat = harbour(start=recently())
    path = chat.save(tmp_path / f"{SESSION}.jsonl")
    target.run(path, reads="all")
    before = {row[0]: row for row in target.contents["events"] if row[3] == "PostToolUse"}
    chat.edit(f"{PROJECT_DIR}/pier.py").agent("And the pier.")
    chat.save(path)
    target.run(path)
    now = {row[0]: row for row in target.contents["events"]}
    assert before.items() <= now.items()
    target.distil()
    assert target.contents == import_alone(tmp_path / "alone", path)


def test_calls_that_are_nested_too_deeply_are_the_same_events_now_and_later(
    target: LaterTarget, tmp_path: Path
) -> None:
    nested: Any = "deep"
    for _ in range(900):
        nested = [nested]
    chat = Chat(start=recently()).prompt("Chart the harbour")
    chat.tool("mcp__charts__draw", {"layers": nested}, "drawn")
    chat.edit(f"{PROJECT_DIR}/chart.py").agent("The chart is drawn.")
    path = chat.save(tmp_path / f"{SESSION}.jsonl")
    target.run(path)
    target.distil()
    assert target.waiting == (0, 0)
    assert target.contents == import_alone(tmp_path / "alone", path)


def test_sessions_that_may_be_open_get_their_raw_texts_at_once(
    target: LaterTarget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(newest_sessions, "FEW_BYTES", 0)
    now = recently()
    old = harbour("old", start=now - 2 * DAY).save(tmp_path / "old.jsonl")
    files = [*two_sessions(tmp_path, start=now), old]
    target.run(*files, reads="newest")
    rows = target.contents["events"]
    assert {row[1] for row in rows if row[13]} == {"early", "late"}
    assert {row[0] for row in target.memory["summaries"]} == {"late"}
    target.distil()
    assert target.contents == import_alone(tmp_path / "alone", *files)


def test_a_transcript_that_is_damaged_by_then_loses_only_the_memories(
    target: LaterTarget, tmp_path: Path
) -> None:
    early, late = two_sessions(tmp_path)
    target.run(early, late)
    early.write_bytes(b"\0{" * 5000)
    late.unlink()
    os.mkfifo(late)
    target.distil()
    assert target.waiting == (0, 6)
    assert len(target.contents["records"]) == 6


# Forgetting


def forget(store: Store, **selection: Any) -> str:
    wanted = Selection(**selection)
    token = store.preview_forgetting(wanted).token
    store.forget(wanted, token).result()
    return token


def test_what_is_forgotten_meanwhile_stays_forgotten_until_undo_restores_it(
    target: LaterTarget, tmp_path: Path
) -> None:
    files = two_sessions(tmp_path)
    target.run(*files)
    with closing(Store.open(target.layout.database, target.layout.backups)) as store:
        early, turn = store.session_by_content_id("early"), 4
        assert early is not None
        tokens = [
            forget(store, session=int(str(early["id"]))),
            forget(store, prompts=(turn,)),
        ]
    target.distil()
    assert len(target.memory["summaries"]) == 2
    assert target.waiting == (0, 0)
    with closing(Store.open(target.layout.database, target.layout.backups)) as store:
        for token in tokens:
            store.undo_forgetting(token).result()
    target.distil()
    assert target.waiting == (0, 0)
    assert target.memory == _memory_of_all(tmp_path, *files)


def test_raw_texts_of_forgotten_turns_do_not_come_back_before_undo(
    target: LaterTarget, tmp_path: Path
) -> None:
    files = two_sessions(tmp_path, start=recently())
    expected = import_alone(tmp_path / "alone", *files)
    target.run(*files)
    with closing(Store.open(target.layout.database, target.layout.backups)) as store:
        early = store.session_by_content_id("early")
        assert early is not None
        tokens = [forget(store, session=int(str(early["id"]))), forget(store, prompts=(4,))]
    target.distil()
    of_turn = "SELECT count(*), max(bytes) FROM tool_events WHERE turn_id = 4"
    ((count, size),) = target.rows(of_turn)
    assert (count > 0, size) == (True, 0)
    assert target.rows("SELECT DISTINCT content_session_id FROM sdk_sessions") == [("late",)]
    with closing(Store.open(target.layout.database, target.layout.backups)) as store:
        for token in tokens:
            store.undo_forgetting(token).result()
    target.distil()
    assert target.contents["events"] == expected["events"]


def test_raw_texts_that_are_too_old_by_then_are_not_stored(
    target: LaterTarget, tmp_path: Path
) -> None:
    path = harbour(start=recently()).save(tmp_path / f"{SESSION}.jsonl")
    target.run(path)
    with closing(sqlite3.connect(target.layout.database)) as connection, connection:
        connection.execute("UPDATE user_prompts SET retired = 1")
    target.distil()
    assert target.waiting == (0, 0)
    assert {row[13] for row in target.contents["events"]} == {0}
    assert len(target.memory["summaries"]) == 3


def test_events_get_no_words_if_no_record_is_kept(target: LaterTarget, tmp_path: Path) -> None:
    path = harbour(start=recently()).save(tmp_path / f"{SESSION}.jsonl")
    never = 1 << 62
    target.run(path, keep_record_since=never)
    with closing(Store.open(target.layout.database, target.layout.backups)) as store:
        distil_waiting(store, import_options(keep_record_since=never))
    alone = ImportTarget(tmp_path / "alone")
    alone.run(path, keep_record_since=never)
    assert target.contents == alone.contents
    assert target.contents["records"] == []


def _memory_of_all(directory: Path, *files: Path) -> Any:
    alone = ImportTarget(directory / "alone")
    alone.run(*files)
    return alone.memory


# In the worker


def in_worker(directory: Path, story: Story) -> IdleDistilling:
    additions = TranscriptAdditions(story.store, story.reader)
    return IdleDistilling(story.store, story.reader, additions, story.contexts, lambda: story.now)


def test_the_worker_distils_what_waits_and_renders_the_contexts(tmp_path: Path) -> None:
    files = library(tmp_path / "library")
    target = LaterTarget(tmp_path / "data")
    target.run(files[0], reads="all")
    target.run(*files[1:])
    with Story(tmp_path) as story:
        waiting, _ = story.store.count_undistilled()
        assert asyncio.run(in_worker(tmp_path, story).run()) == waiting > 3
        assert not story.store.is_any_outdated(1)
    assert target.contents == import_alone(tmp_path / "alone", *files)
    # Also those of the sessions that the import distilled.
    assert len(list(target.layout.contexts.glob("*-*"))) == 3


def test_a_reading_process_that_is_killed_is_started_again(tmp_path: Path) -> None:
    path = harbour().save(tmp_path / "a.jsonl")
    request = ReadRequest(path, import_options(reads="memories"))
    process = ReadingProcess()
    try:
        (session,) = process.read(request)
        assert [turn.distillate is not None for turn in session.turns] == [True] * 3
        assert process._process is not None
        os.kill(process._process.pid, signal.SIGKILL)
        (again,) = process.read(request)
        assert again == session
        with pytest.raises(BadInput):
            list(process.read(ReadRequest(tmp_path, request.options)))
        assert list(process.read(request)) == [session]
    finally:
        process.stop()


def test_a_transcript_that_takes_too_long_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importer, "READING_SECONDS", 0.0)
    process = ReadingProcess()
    try:
        with pytest.raises(BadInput, match="ended"):
            list(process.read(ReadRequest(harbour().save(tmp_path / "a.jsonl"), import_options())))
    finally:
        process.stop()


def command_lines() -> list[bytes]:
    lines = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                lines.append((entry / "cmdline").read_bytes() + (entry / "environ").read_bytes())
            except OSError:
                continue
    return lines


def reading_processes(home: Home) -> int:
    mark = os.fsencode(home.layout.root)
    return sum(importer.MODULE.encode() in line and mark in line for line in command_lines())


def many_sessions(home: Home, count: int, start: int = OLD) -> list[Path]:
    return [
        harbour(f"session-{number:03d}", start=start + number * 60_000).save_in(home.path)
        for number in range(count)
    ]


def import_most_later(home: Home, count: int, start: int = OLD) -> list[Path]:
    """Imports as if the turns were too many for the command to distil them."""
    files = many_sessions(home, count, start)
    with home.without_worker():
        target = LaterTarget(home.layout.root)
        target.run(*files[1:])
        target.run(files[0], reads="all")
    return files


def is_all_distilled(home: Home) -> bool:
    rows = home.rows("SELECT count(*) AS n FROM user_prompts WHERE observer_version = -1")
    return bool(rows[0]["n"] == 0)


@pytest.mark.parametrize("is_recent", [False, True], ids=["old", "recent"])
def test_the_command_leaves_older_sessions_to_a_worker_that_survives_being_killed(
    home: Home, tmp_path: Path, is_recent: bool
) -> None:
    files = import_most_later(home, 12, recently() if is_recent else OLD)
    done = home.command("import")
    assert done.returncode == 0, done.stderr
    assert "The worker is still summarising 33 turns of older sessions" in done.stdout
    for _ in range(3):
        wait_until(lambda: home.worker_pid() is not None, "the worker")
        home.kill_worker()
        wait_until(lambda: reading_processes(home) == 0, "the end of its process")
        home.start_worker()
    wait_until(lambda: is_all_distilled(home), "all memories")
    wait_until(lambda: not home.rows("SELECT * FROM undistilled_transcripts"), "the contexts")
    assert contents_of(home.layout.database) == import_alone(tmp_path / "alone", *files)
    assert "to summarise" not in home.command("status").stdout


def test_right_after_the_command_the_next_session_is_given_the_newest(home: Home) -> None:
    many_sessions(home, 12)
    assert home.command("import").returncode == 0
    wait_until(lambda: home.worker_pid() is not None, "the worker")
    assert "pulses" in home.context(session_start(session_id="the-next"))


def test_the_status_tells_what_waits_and_what_was_lost(home: Home) -> None:
    files = import_most_later(home, 12)
    target = LaterTarget(home.layout.root)
    status = home.command("status")
    assert "33 turns to summarise, in the background" in status.stdout
    for file in files[1:3]:
        file.unlink()
    target.distil()
    status = home.command("status")
    assert "6 turns without summary: their transcripts are gone" in status.stdout
    report = json.loads(home.command("status", "--json").stdout)
    assert report["imported"] == {"waiting": 0, "without_summary": 6}


@pytest.mark.parametrize("arguments", [[], ["--wait"]], ids=["paused", "with --wait"])
def test_without_a_worker_the_command_does_everything_itself(
    home: Home, tmp_path: Path, arguments: list[str]
) -> None:
    files = import_most_later(home, 12)
    if not arguments:
        assert home.command("pause").returncode == 0
    done = home.command("import", *arguments)
    assert done.returncode == 0, done.stderr
    assert "still" not in done.stdout
    assert home.worker_pid() is None
    assert contents_of(home.layout.database) == import_alone(tmp_path / "alone", *files)
    assert home.rows("SELECT * FROM unindexed") == []
    assert home.rows("SELECT * FROM undistilled_transcripts") == []
    assert len(list(home.layout.contexts.glob("*harbor*"))) == 1


def test_waiting_finishes_what_an_earlier_import_left(home: Home, tmp_path: Path) -> None:
    files = import_most_later(home, 12)
    report = json.loads(home.command("import", "--wait", "--json").stdout)
    assert (report["unchanged"], report["turns"], report["waiting"]) == (12, 0, 0)
    assert contents_of(home.layout.database) == import_alone(tmp_path / "alone", *files)


def test_a_worker_that_stops_leaves_no_process_behind(home: Home) -> None:
    import_most_later(home, 30)
    assert home.command("import").returncode == 0
    wait_until(lambda: reading_processes(home) == 1 or is_all_distilled(home), "its process")
    assert home.command("worker", "stop").returncode == 0
    wait_until(lambda: reading_processes(home) == 0, "the end of its process")
