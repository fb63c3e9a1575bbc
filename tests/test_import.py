"""Past sessions become memory: each once, the same in any order of files and number of runs."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from claude_mem.intake.transcripts import importer
from tests.conftest import Home
from tests.importing import (
    HIDDEN,
    ImportTarget,
    forked,
    import_alone,
    library,
)
from tests.payloads import PROJECT_DIR
from tests.story import DAY
from tests.transcripts import OLD, SESSION, Chat, harbour, recently

KEY = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2


@pytest.fixture
def target(tmp_path: Path) -> ImportTarget:
    return ImportTarget(tmp_path / "target")


def test_a_session_of_the_past_becomes_memory(target: ImportTarget, tmp_path: Path) -> None:
    report = target.run(harbour().save(tmp_path / "a.jsonl"))
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
    target.run(*files)
    once = target.contents
    report = target.run(*files)
    assert (report.unchanged, report.files) == (len(files), 0)
    assert target.contents == once
    report = target.run(*files, again=True)
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
        target.run(*order[run::runs])
    assert target.contents == import_alone(directory / "alone", *files)


def test_read_side_by_side_it_is_the_same(target: ImportTarget, tmp_path: Path) -> None:
    files = library(tmp_path / "library")
    assert len(files) > importer.MOST_WITHOUT_POOL
    target.run(*files, processes=3)
    assert target.contents == import_alone(tmp_path / "alone", *files)


def test_read_in_pieces_it_is_the_same(
    target: ImportTarget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = library(tmp_path / "library")
    long = Chat("long", start=OLD + 5 * DAY)
    for number in range(90):
        long.prompt(f"Light lamp {number}").edit(f"{PROJECT_DIR}/lamp{number}.py")
        long.agent(f"Lamp {number} is lit.")
    files.append(long.save(tmp_path / "library/long.jsonl"))
    expected = import_alone(tmp_path / "alone", *files)
    monkeypatch.setattr(importer, "LARGE_FILE_BYTES", 100)
    target.run(*files)
    assert target.contents == expected
    ended = {row[0]: row[-1] for row in expected["sessions"]}
    assert ended["long"] == long.now


def test_a_fork_leaves_shared_turns_with_its_origin(target: ImportTarget, tmp_path: Path) -> None:
    origin = harbour()
    fork = forked(origin, "z-fork")
    target.run(fork.save(tmp_path / "z.jsonl"), origin.save(tmp_path / "a.jsonl"))
    prompts = [(row[0], row[1], row[2][:12]) for row in target.memory["prompts"]]
    assert prompts == [
        (SESSION, 1, "The harbour "),
        (SESSION, 2, "Do the same "),
        (SESSION, 3, "Which comman"),
        ("z-fork", 4, "And the fog "),
    ]


def test_every_prefix_of_a_growing_file_comes_to_what_the_whole_file_is(
    target: ImportTarget, tmp_path: Path
) -> None:
    """A client writes while we read, and half a line may be at the end."""
    chat = harbour(start=recently())
    chat.prompt("Once more").agent("API Error: 529", isApiErrorMessage=True).prompt("And again")
    chat.agent("Again, then.")
    file = tmp_path / f"{SESSION}.jsonl"
    for count in range(1, len(chat.lines) + 1):
        part = b"".join(line + b"\n" for line in chat.lines[:count])
        file.write_bytes(part[:-30] if count % 3 == 0 else part)
        target.run(file)
    target.run(chat.save(file))
    assert target.contents == import_alone(tmp_path / "alone", file)


@settings(max_examples=15)
@given(st.data())
def test_copies_of_different_length_come_to_the_longest_in_any_order(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    directory = tmp_path_factory.mktemp("copies")
    chat = harbour()
    cuts = data.draw(st.lists(st.integers(4, len(chat.lines) - 1), max_size=4, unique=True))
    file = directory / f"{SESSION}.jsonl"
    target = ImportTarget(directory / "target")
    for cut in data.draw(st.permutations([*cuts, len(chat.lines)])):
        file.write_bytes(b"".join(line + b"\n" for line in chat.lines[:cut]))
        target.run(file, again=True)
    chat.save(file)
    assert target.contents == import_alone(directory / "alone", file)


def test_more_of_the_turns_since_a_day_and_then_all_come_to_all(
    target: ImportTarget, tmp_path: Path
) -> None:
    files = library(tmp_path / "library")
    target.run(*files, since_ms=OLD + DAY)
    part = target.contents
    assert [row[0] for row in part["sessions"]] == ["fresh", "private", "windows"]
    target.run(*files, project=PROJECT_DIR)
    target.run(*files)
    assert target.contents == import_alone(tmp_path / "alone", *files)


# Raw events, private text and secrets


def test_raw_events_are_kept_of_late_turns_and_only_the_proof_of_old_ones(
    target: ImportTarget, tmp_path: Path
) -> None:
    late, old = harbour("late", start=recently()), harbour("old", start=OLD)
    target.run(late.save(tmp_path / "late.jsonl"), old.save(tmp_path / "old.jsonl"))
    raw: dict[str, list[Any]] = {"late": [], "old": []}
    for row in target.contents["events"]:
        raw[row[1]].append(row[8:14])
    assert len(raw["late"]) == len(raw["old"]) > 10
    assert {bytes_ > 0 for *_, bytes_ in raw["late"]} == {True, False}  # a prompt has its own place
    assert set(raw["old"]) == {(None, None, None, None, None, 0)}
    observations = target.contents["observations"]
    memories = [[row[1:16] for row in observations if row[0] == session]
                for session in ("late", "old")]  # fmt: skip
    assert [row[2:] for row in memories[0]] == [row[2:] for row in memories[1]]


def test_nothing_private_and_no_secret_reaches_the_disk(home: Home) -> None:
    chat = Chat(start=recently()).prompt(f"Log in with {KEY} <private>{HIDDEN}</private>")
    chat.agent(f"The token {KEY} works. <private>{HIDDEN}</private>")
    chat.bash(f"curl -H 'Authorization: token {KEY}' x", f"logged in as {KEY}")
    chat.failing(f"push {KEY}", f"denied for {KEY}")
    chat.edit(f"{PROJECT_DIR}/env.py", "TOKEN = ''", f"TOKEN = '{KEY}'")
    chat.write_file(f"{PROJECT_DIR}/.env", f"GITHUB_TOKEN={KEY}\n")
    chat.agent(f"I wrote the token {KEY} to .env, where the deployment of pier 7 reads it.")
    chat.prompt(f"<private>{HIDDEN}</private>").bash("order cake", "the cake is ordered").agent(
        "cake"
    )
    chat.save_in(home.path)
    done = home.command("import")
    assert done.returncode == 0, done.stderr
    assert "1 turn skipped: private" in done.stdout
    written = b"".join(home.files().values()) + done.stdout.encode()
    assert b"pier 7" in written
    for secret in (KEY, HIDDEN, "cake"):
        assert secret.encode() not in written
