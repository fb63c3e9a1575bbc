"""An export restored into a store that is empty or not: nothing is lost, nothing is doubled."""

import json
import os
import sqlite3
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from claude_mem.cli.imports import report_of_file, restore_file
from claude_mem.cli.open_store import open_store_for_import
from claude_mem.config import Layout, Settings, load_settings
from claude_mem.errors import NewerDatabase, NewerWorker
from claude_mem.hook.private_text import strip_private
from claude_mem.redaction import Redactor
from claude_mem.store import Store
from claude_mem.worker.lock import WorkerLock
from tests.conftest import Home
from tests.exports import SECRET, dump, lines, live, restored, sound
from tests.payloads import (
    PROJECT_DIR,
    Payload,
    edit,
    private_prompt,
    prompt,
    session_end,
    session_start,
    stop,
    tool,
)
from tests.story import HOUR, Story

# Restore into an empty store


def test_an_empty_store_is_restored_to_the_byte(story: Story, other: Story) -> None:
    data = dump(live(story).store)
    report = restored(other, data)
    assert (report.refused, report.private, report.existing.total()) == (0, 0, 0)
    assert report.is_complete
    assert dump(other.store) == data
    story.now = other.now = story.now + HOUR
    assert other.distil() == story.distil() == 2  # what waited waits


def test_restoring_twice_is_restoring_once(story: Story, other: Story) -> None:
    data = dump(live(story).store)
    restored(other, data)
    again = restored(other, data)
    assert (again.added.total(), again.refused) == (0, 0)
    assert again.existing.total() == lines(data)[-1]["records"]
    assert dump(other.store) == data


def test_restoring_into_the_store_it_came_from_changes_nothing(story: Story) -> None:
    data = dump(live(story).store)
    assert restored(story, data).added.total() == 0
    assert dump(story.store) == data


EVENTS: list[Callable[[str], Payload]] = [
    lambda p: prompt(f"do {p}", prompt_id=p),
    lambda p: private_prompt(prompt_id=p),
    lambda p: edit(prompt_id=p),
    lambda p: tool(prompt_id=p, session_id="s2"),
    lambda p: stop(prompt_id=p),
    lambda p: stop(prompt_id=p, session_id="s2"),
    lambda p: session_end(prompt_id=None),
]


@given(
    st.lists(st.tuples(st.sampled_from(EVENTS), st.sampled_from(["a", "b", "c"])), max_size=12),
    st.integers(0, 12),
)
@settings(max_examples=15)
def test_whatever_happened_comes_back_to_the_byte(
    events: list[tuple[Callable[[str], Payload], str]], distilled_at: int
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        first, second = Path(directory) / "one", Path(directory) / "two"
        with Story(first) as story, Story(second) as other:
            for position, (event, prompt_id) in enumerate(events):
                story.tell(event(prompt_id))
                if position == distilled_at:
                    story.distil()
            data = dump(story.store)
            report = restored(other, data)
            assert (report.refused, report.private) == (0, 0)
            assert dump(other.store) == data


@given(st.text(alphabet=st.sampled_from("ab1Z=:'\"\\ \n<>/[]{}.…pasword-tkey_sgh"), max_size=80))
def test_what_was_redacted_once_is_not_changed_again(text: str) -> None:
    redactor = Redactor()
    for sample in (text, f"password='{text}'", f"token={text}{SECRET} {text}"):
        once = redactor.redact(sample)
        assert redactor.redact(once) == once
        stripped = strip_private(json.dumps({"a": sample}).encode())
        assert strip_private(stripped) == stripped


# Merging


def test_a_store_that_remembers_already_gets_what_it_has_not(story: Story, other: Story) -> None:
    other.tell(session_start(session_id="o"), prompt("Paint the pier", session_id="o"))
    other.tell(edit(session_id="o", path=f"{PROJECT_DIR}/pier.py"), stop(session_id="o"))
    other.distil()
    mine = dump(other.store)
    data = dump(live(story).store)
    report = restored(other, data)
    assert (report.refused, report.private) == (0, 0)
    assert report.existing == {"projects": 1, "project_dirs": 1}
    assert sound(other)
    merged = dump(other.store)
    assert set(mine.splitlines()[1:-1]) <= set(merged.splitlines())
    assert other.column("SELECT count(*) FROM projects WHERE name = 'harbor'") == [1]
    restored(other, data)
    assert dump(other.store) == merged


PROVENANCE = (
    "SELECT o.title, e.event_key, t.prompt_id, s.content_session_id, p.key"
    " FROM observations o JOIN observation_events l ON l.observation_id = o.id"
    " JOIN tool_events e ON e.id = l.event_id JOIN user_prompts t ON t.id = o.turn_id"
    " AND t.id = e.turn_id JOIN sdk_sessions s ON s.id = t.session_id AND s.memory_session_id ="
    " o.memory_session_id JOIN projects p ON p.id = o.project_id ORDER BY 1, 2"
)


def test_memories_keep_their_sources_when_their_ids_change(story: Story, other: Story) -> None:
    other.tell(prompt("first", session_id="o"), edit(session_id="o"), stop(session_id="o"))
    other.distil()
    live(story).now += HOUR
    story.distil()
    restored(other, dump(story.store))
    expected = story.rows(PROVENANCE)
    assert len(expected) >= 2
    assert [row for row in other.rows(PROVENANCE) if row["content_session_id"] != "o"] == expected


def test_two_sessions_never_share_a_memory_session_id(story: Story, other: Story) -> None:
    for each, session in ((story, "a"), (other, "b")):
        each.tell(prompt(f"of {session}", session_id=session), stop(session_id=session))
        each.register_memory_session(1, "the-same")
        each.distil()
    report = restored(other, dump(story.store))
    assert report.refused == 0
    ids = other.column("SELECT memory_session_id FROM sdk_sessions ORDER BY content_session_id")
    assert len(set(ids)) == 2 and ids[1] == "the-same"
    requests = "SELECT s.content_session_id, m.request FROM session_summaries m JOIN sdk_sessions s"
    assert other.rows(f"{requests} USING (memory_session_id) ORDER BY 1") == [
        {"content_session_id": "a", "request": "of a"},
        {"content_session_id": "b", "request": "of b"},
    ]


def test_a_number_that_another_prompt_of_the_session_has_is_given_anew(
    story: Story, other: Story
) -> None:
    story.tell(prompt("theirs", prompt_id="x"), stop(prompt_id="x"))
    other.tell(prompt("ours", prompt_id="y"), stop(prompt_id="y"))
    for each in (story, other):
        each.distil()
    data = dump(story.store)
    for _ in range(2):
        assert restored(other, data).refused == 0
        assert other.rows("SELECT prompt_text, prompt_number FROM user_prompts ORDER BY 2") == [
            {"prompt_text": "ours", "prompt_number": 1},
            {"prompt_text": "theirs", "prompt_number": 2},
        ]
    assert other.column("SELECT prompt_number FROM session_summaries ORDER BY id") == [1, 2]
    assert other.session()["prompt_counter"] == 2


def test_two_observers_views_of_one_turn_are_not_mixed(story: Story, other: Story) -> None:
    happened = (prompt(), edit(tool_use_id="t1"), stop())
    story.tell(*happened, edit(tool_use_id="t2", path=f"{PROJECT_DIR}/pier.py"))
    other.tell(*happened)
    for each in (story, other):
        each.distil()
    with closing(sqlite3.connect(story.layout.database)) as connection:
        connection.execute("UPDATE session_summaries SET observer = 'another'")
        connection.commit()
    before = other.rows("SELECT * FROM observations")
    report = restored(other, dump(story.store))
    assert report.refused == 0
    assert other.rows("SELECT * FROM observations") == before
    other.now += HOUR
    # The event that was new is not forgotten: the turn is distilled again, here.
    assert other.distil() == 1
    assert other.column("SELECT files_modified FROM observations") == ['["light.py", "pier.py"]']


def test_what_is_private_here_stays_private(story: Story, other: Story) -> None:
    story.tell(prompt("not for you", prompt_id="p"), edit(prompt_id="p"), stop(prompt_id="p"))
    story.distil()
    other.tell(private_prompt(prompt_id="p"))
    report = restored(other, dump(story.store))
    assert report.private > 0
    assert [other.column(f"SELECT count(*) FROM {table}") for table in
            ("tool_events", "observations", "session_summaries")] == [[0], [0], [0]]  # fmt: skip
    assert "private prompts" in "\n".join(report_of_file(report))


# From a command, beside a worker


def settings_of(layout: Layout) -> Settings:
    return load_settings({"HOME": "/nowhere", "CLAUDE_MEM_DATA_DIR": str(layout.root)})


def many(story: Story) -> bytes:
    events = []
    for number in range(250):
        for payload in (prompt(f"do {number}", prompt_id=f"p{number}"),
                        edit(prompt_id=f"p{number}"), stop(prompt_id=f"p{number}")):  # fmt: skip
            story.now += 1000
            events.append(story.event(payload))
    story.store.record_events(events).result()
    story.distil()
    return dump(story.store)


def test_a_killed_restore_is_completed_by_the_next(story: Story, tmp_path: Path) -> None:
    data = many(story)
    file, layout = tmp_path / "in.jsonl", Layout(tmp_path / "fresh")
    file.write_bytes(data)
    marker = tmp_path / "marker"
    program = (
        "import sys; from pathlib import Path; from claude_mem.config import load_settings\n"
        "from claude_mem.cli.imports import restore_file\n"
        "restore_file(load_settings({'CLAUDE_MEM_DATA_DIR': sys.argv[1]}), Path(sys.argv[2]))"
    )
    counts = []
    for _ in range(2):
        marker.touch()
        killed = subprocess.run(
            [sys.executable, "-c", program, str(layout.root), str(file)],
            env={**os.environ, "CLAUDE_MEM_FAULT": f"restore.after_batch:{marker}"},
            timeout=60,
        )
        assert killed.returncode == -9
        with Store.open(layout.database, layout.backups) as store:
            counts.append(sum(store.counts().values()))
    assert 0 < counts[0] == counts[1]
    report = restore_file(settings_of(layout), file)
    assert report.is_complete and report.refused == 0 < report.existing.total()
    with Store.open(layout.database, layout.backups) as store:
        assert dump(store) == data


def test_a_restore_beside_a_running_worker_counts_at_once(
    story: Story, home: Home, tmp_path: Path
) -> None:
    file = tmp_path / "in.jsonl"
    file.write_bytes(many(story))
    home.start_worker()
    pid = home.worker_pid()
    report = restore_file(settings_of(home.layout), file)
    assert (report.refused, report.is_complete) == (0, True)
    assert home.worker_pid() == pid
    assert "Files edited: light.py" in home.context(session_start(session_id="new"))
    home.hook(prompt("and now", session_id="new", prompt_id="n"))
    home.hook(stop(session_id="new", prompt_id="n"))
    home.wait_settled()
    assert home.rows("SELECT count(*) AS n FROM session_summaries")[0]["n"] == 251


def test_without_a_worker_the_next_session_is_given_what_was_restored(
    story: Story, home: Home, tmp_path: Path
) -> None:
    story.tell(prompt(), edit(), stop())
    story.distil()
    file = tmp_path / "in.jsonl"
    file.write_bytes(dump(story.store))
    restore_file(settings_of(home.layout), file)
    (context,) = (path for path in home.layout.contexts.iterdir() if path.name[0] != ".")
    assert "Files edited: light.py" in context.read_text()


def test_a_data_directory_is_created_for_its_owner_alone(tmp_path: Path) -> None:
    layout = Layout(tmp_path / "a" / "b")
    with open_store_for_import(settings_of(layout)) as store:
        assert store.counts()["sessions"] == 0
        assert stat.S_IMODE(layout.root.stat().st_mode) == 0o700
        assert stat.S_IMODE(layout.database.stat().st_mode) == 0o600
        lock = WorkerLock.acquire(layout)  # nobody keeps a worker from starting
        assert lock is not None
        lock.release()


def test_nothing_is_written_to_a_database_of_a_newer_version(story: Story) -> None:
    with closing(sqlite3.connect(story.layout.database)) as connection:
        connection.execute(
            "INSERT INTO schema_migrations (name, applied_at) VALUES ('9999_later', 'x')"
        )
        connection.commit()
    with pytest.raises(NewerDatabase):
        open_store_for_import(settings_of(story.layout))
    with pytest.raises(NewerDatabase):  # or when it became newer after it was opened
        story.store.merge_rows([]).result()


def test_beside_a_newer_worker_nothing_is_imported(tmp_path: Path) -> None:
    layout = Layout(tmp_path / "data")
    layout.create()
    layout.worker_state.write_text(json.dumps({"pid": os.getpid(), "version": "99.0"}))
    lock = WorkerLock.acquire(layout)
    assert lock is not None
    try:
        with pytest.raises(NewerWorker, match="Upgrade"):
            open_store_for_import(settings_of(layout))
    finally:
        lock.release()
    assert not layout.database.exists()
