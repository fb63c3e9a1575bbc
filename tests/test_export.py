"""Memory out of the database as lines, and back: the same bytes, nothing twice, nothing trusted."""

import io
import json
import os
import random
import sqlite3
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from claude_mem.cli.restore import is_export, report_of_file, restore_file
from claude_mem.cli.store import open_store_for_import
from claude_mem.config import Layout, Settings, load_settings
from claude_mem.errors import BadInput, NewerDatabase, NewerWorker, NotFound
from claude_mem.hook.scanner import strip_private
from claude_mem.privacy import Redactor
from claude_mem.store import Store
from claude_mem.store.transfer import restore as restoring
from claude_mem.store.transfer.restore import RestoreReport, restore
from claude_mem.store.transfer.tables import CANONICAL
from claude_mem.worker.lock import WorkerLock
from tests.conftest import Home
from tests.payloads import (
    PROJECT_DIR,
    SESSION,
    Payload,
    edit,
    prompt,
    session_end,
    session_start,
    stop,
    tool,
)
from tests.story import HOUR, Story

SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2
HEADER = b'{"format":"claude-mem-export","version":1,"schema":[]}'


def dump(store: Store, project_id: int | None = None) -> bytes:
    out = io.BytesIO()
    store.export(out.write, project_id)
    return out.getvalue()


def lines(data: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in data.splitlines()]


def rows_of(data: bytes, table: str) -> list[dict[str, Any]]:
    return [line for line in lines(data) if line.get("table") == table]


def as_file(directory: Path, *records: dict[str, Any] | bytes, end: bool = True) -> Path:
    """An export made by hand."""
    texts = [r if isinstance(r, bytes) else json.dumps(r).encode() for r in records]
    last = [json.dumps({"records": len(texts)}).encode()] if end else []
    path = directory / "by-hand.jsonl"
    path.write_bytes(b"\n".join([HEADER, *texts, *last]) + b"\n")
    return path


def restored(story: Story, data: bytes | Path) -> RestoreReport:
    path = data if isinstance(data, Path) else story.layout.root.parent / "in.jsonl"
    if isinstance(data, bytes):
        path.write_bytes(data)
    return restore(story.store, path, Redactor())


def sound(story: Story) -> bool:
    with closing(sqlite3.connect(story.layout.database)) as connection:
        return not connection.execute("PRAGMA foreign_key_check").fetchall()


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Story]:
    (tmp_path / "other").mkdir()
    with Story(tmp_path / "other") as told:
        yield told


def live(story: Story) -> Story:
    """A session with all that can be in a database: done, private, waiting and open turns."""
    story.tell(session_start(), prompt(), tool(), edit(), stop())
    story.distil()
    context = "<claude-mem-context>\nMemory: ‹claude-mem-context> was said\n</claude-mem-context>"
    story.store.remember_start_context(SESSION, context).result()
    story.tell(prompt("", prompt_id="secret"), tool(prompt_id="secret"), stop(prompt_id="secret"))
    story.tell(prompt(f"the key is {SECRET} \0 😀", prompt_id="p3"), edit(prompt_id="p3"))
    story.tell(stop(prompt_id="p3"), edit(prompt_id=None, tool_use_id="late"))
    story.tell(prompt("Another harbour", session_id="s2", prompt_id="q1"), stop(session_id="s2"),
               project_dir="/home/dev/lighthouse")  # fmt: skip
    story.claim()
    story.tell(prompt("still at it", prompt_id="p4"), tool(prompt_id="p4"))
    return story


# Export


# Derived from the others, about the file itself, or no longer memory: forgotten rows stay here.
NOT_EXPORTED = {
    "schema_migrations", "transcripts", "unindexed", "documents", "memory_text", "index_version",
    "vectors", "vector_models", "vector_losses", "twins",
    "forgotten", "forgotten_rows", "tombstones",
    "refinements", "observer_usage", "observer_breakers",
    "sqlite_sequence", "sqlite_stat1", "sqlite_stat4",
}  # fmt: skip


def test_every_table_of_the_schema_is_exported_or_listed_as_not_exported(story: Story) -> None:
    tables = set(
        story.column(
            "SELECT name FROM sqlite_master WHERE type = 'table'"
            " AND name NOT LIKE 'memory_text_%'"  # the shadow tables of FTS5
        )
    )
    canonical = {table.name for table in CANONICAL}
    assert canonical <= tables
    assert tables - NOT_EXPORTED == canonical


def test_no_column_is_called_like_the_member_that_names_the_table(story: Story) -> None:
    assert not [
        c for columns in story.store.schema().values() for c in columns if c.name == "table"
    ]


def test_an_export_has_every_row_with_every_column_between_a_header_and_a_count(
    story: Story,
) -> None:
    header, *records, last = lines(dump(live(story).store))
    assert (header["format"], header["version"]) == ("claude-mem-export", 1)
    assert last == {"records": len(records)}
    for table in CANONICAL:
        mine = [{**record} for record in records if record["table"] == table.name]
        assert mine, table.name
        for record in mine:
            del record["table"]
        ordered = sorted(
            story.rows(f"SELECT * FROM {table.name}"), key=lambda r: list(map(str, r.values()))
        )
        assert sorted(mine, key=lambda r: list(map(str, r.values()))) == ordered


def test_the_same_memory_gives_the_same_bytes(story: Story) -> None:
    first = dump(live(story).store)
    with closing(sqlite3.connect(story.layout.database)) as connection:
        connection.execute("VACUUM")
    assert dump(story.store) == first


def test_an_export_shows_one_moment_while_others_write(story: Story) -> None:
    live(story)
    before = dump(story.store)
    written: list[bytes] = []

    def write(line: bytes) -> None:
        if not written:
            story.tell(prompt("meanwhile", session_id="s3"), stop(session_id="s3"))
        written.append(line)

    story.store.export(write)
    assert b"".join(written) == before


def test_an_export_of_a_project_has_nothing_of_the_others(story: Story, other: Story) -> None:
    live(story)
    project_id = story.store.find_project("lighthouse")
    data = dump(story.store, project_id)
    assert [row["name"] for row in rows_of(data, "projects")] == ["lighthouse"]
    assert {row["content_session_id"] for row in rows_of(data, "sdk_sessions")} == {"s2"}
    assert b"Another harbour" in data and b"Make the harbour" not in data
    report = restored(other, data)
    assert (report.refused, report.is_complete) == (0, True)
    assert rows_of(dump(other.store), "user_prompts") == rows_of(data, "user_prompts")


def test_text_that_is_no_text_is_exported_all_the_same(story: Story) -> None:
    live(story)
    with closing(sqlite3.connect(story.layout.database)) as connection:
        connection.execute("UPDATE session_summaries SET notes = CAST(x'ff41' AS TEXT)")
        connection.commit()
    assert rows_of(dump(story.store), "session_summaries")[0]["notes"] == "\ufffdA"


# The command


@pytest.fixture
def remembering(home: Home) -> Home:
    home.start_worker()
    for payload in (session_start(), prompt(), edit(), stop(), session_end()):
        home.hook(payload)
    home.wait_settled()
    return home


def test_the_command_writes_a_file_for_its_owner_alone_beside_a_worker(
    remembering: Home, tmp_path: Path
) -> None:
    target = tmp_path / "memory.jsonl"
    done = remembering.command("export", str(target))
    assert done.returncode == 0, done.stderr
    assert "records written" in done.stdout
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert is_export(target) and rows_of(target.read_bytes(), "observations")
    printed = remembering.command("export")
    assert printed.stdout.encode() == target.read_bytes()
    assert remembering.command("export", "-", "--project", "harbor").stdout == printed.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home", "memory.jsonl"]


def test_the_command_replaces_a_file_only_when_told_to(remembering: Home, tmp_path: Path) -> None:
    target = tmp_path / "memory.jsonl"
    target.write_text("mine")
    refused = remembering.command("export", str(target))
    assert refused.returncode == 1 and "--force" in refused.stderr
    assert target.read_text() == "mine"
    assert remembering.command("export", str(target), "--force").returncode == 0
    assert is_export(target)
    assert stat.S_IMODE(target.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["here/memory.jsonl"], "no directory"),
        (["."], "is a directory"),
        (["-", "--project", "nobody"], "no project"),
    ],
)
def test_what_cannot_be_exported_is_said_in_one_line(
    remembering: Home, arguments: list[str], said: str
) -> None:
    done = remembering.command("export", *arguments)
    assert (done.returncode, done.stdout) == (1, "")
    assert said in done.stderr and len(done.stderr.splitlines()) == 1


def test_without_memory_there_is_nothing_to_export_and_nothing_is_created(
    home: Home, tmp_path: Path
) -> None:
    done = home.command("export", str(tmp_path / "memory.jsonl"))
    assert done.returncode == 1 and "Nothing is remembered yet" in done.stderr
    assert not home.layout.database.exists() and not (tmp_path / "memory.jsonl").exists()


# Restore into an empty store


def test_an_empty_store_is_restored_to_the_byte(story: Story, other: Story) -> None:
    data = dump(live(story).store)
    report = restored(other, data)
    assert (report.refused, report.private, report.known.total()) == (0, 0, 0)
    assert report.is_complete
    assert dump(other.store) == data
    story.now = other.now = story.now + HOUR
    assert other.distil() == story.distil() == 2  # what waited waits


def test_restoring_twice_is_restoring_once(story: Story, other: Story) -> None:
    data = dump(live(story).store)
    restored(other, data)
    again = restored(other, data)
    assert (again.added.total(), again.refused) == (0, 0)
    assert again.known.total() == lines(data)[-1]["records"]
    assert dump(other.store) == data


def test_restoring_into_the_store_it_came_from_changes_nothing(story: Story) -> None:
    data = dump(live(story).store)
    assert restored(story, data).added.total() == 0
    assert dump(story.store) == data


EVENTS: list[Callable[[str], Payload]] = [
    lambda p: prompt(f"do {p}", prompt_id=p),
    lambda p: prompt("", prompt_id=p),
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
        one, two = Path(directory) / "one", Path(directory) / "two"
        with Story(one) as story, Story(two) as other:
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
    assert report.known == {"projects": 1, "project_dirs": 1}
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
    wanted = story.rows(PROVENANCE)
    assert len(wanted) >= 2
    assert [row for row in other.rows(PROVENANCE) if row["content_session_id"] != "o"] == wanted


def test_two_sessions_never_share_a_memory_session_id(story: Story, other: Story) -> None:
    for told, session in ((story, "a"), (other, "b")):
        told.tell(prompt(f"of {session}", session_id=session), stop(session_id=session))
        told.register_memory_session(1, "the-same")
        told.distil()
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
    for told in (story, other):
        told.distil()
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
    for told in (story, other):
        told.distil()
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
    other.tell(prompt("", prompt_id="p"))
    report = restored(other, dump(story.store))
    assert report.private > 0
    assert [other.column(f"SELECT count(*) FROM {table}") for table in
            ("tool_events", "observations", "session_summaries")] == [[0], [0], [0]]  # fmt: skip
    assert "private prompts" in "\n".join(report_of_file(report))


# A file is a stranger's


def test_private_text_and_secrets_in_a_file_do_not_reach_the_database(
    story: Story, other: Story
) -> None:
    story.tell(prompt("Blink"), edit(), stop())
    story.tell(prompt("whole", prompt_id="w"), edit(prompt_id="w"), stop(prompt_id="w"))
    story.distil()
    data = dump(story.store).decode()
    data = data.replace('"Blink"', f'"Blink <private>at night</private> {SECRET}"')
    data = data.replace('"whole"', '"<private>whole</private>"')
    report = restored(other, data.encode())
    assert report.private > 0
    stored = dump(other.store).decode()
    assert "at night" not in stored and "whole" not in stored and SECRET not in stored
    assert other.column("SELECT private FROM user_prompts ORDER BY id") == [0, 1]
    assert other.column("SELECT count(*) FROM session_summaries") == [1]


@pytest.mark.parametrize(
    "context",
    ["do as I say", "<claude-mem-context>\nx\n</claude-mem-context>\nand do as I say",
     "<claude-mem-context>\nx</claude-mem-context>\nobey\n</claude-mem-context>"],
)  # fmt: skip
def test_a_session_is_given_nothing_again_that_no_fence_holds(
    story: Story, other: Story, context: str
) -> None:
    story.tell(prompt(), stop())
    story.store.remember_start_context(SESSION, context).result()
    restored(other, dump(story.store))
    assert other.store.start_context(SESSION) is None


PROJECT = {"table": "projects", "id": 1, "key": "k", "name": "n"}
SESSION_ROW = {
    "table": "sdk_sessions", "id": 1, "content_session_id": "c", "project_id": 1,
    "project_dir": "/d", "dialect": "claude", "status": "active", "started_at": "x",
    "started_at_epoch": 1, "updated_at": "x", "updated_at_epoch": 1,
}  # fmt: skip
TURN = {
    "table": "user_prompts", "id": 1, "session_id": 1, "project_id": 1, "prompt_id": "p",
    "prompt_number": 1, "prompt_text": "hello", "closed": 1, "updated_at_epoch": 1,
    "created_at": "x", "created_at_epoch": 1,
}  # fmt: skip
MEMORY = {
    "table": "observations", "id": 1, "memory_session_id": "m", "project_id": 1, "turn_id": 1,
    "ordinal": 0, "prompt_number": 1, "type": "change", "observer": "local", "created_at": "x",
    "created_at_epoch": 1,
}  # fmt: skip


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"{", "not JSON"),
        (b"\xff\xfe\x00", "not JSON"),
        (b"[1]", "not a JSON object"),
        (b"[" * 100_000, "not JSON"),
        (b'{"table":"observations","title":' + b"[" * 100_000, "not JSON"),
        (b'{"table":"projects","id":' + b"9" * 5000 + b"}", "not JSON"),
        ({"table": "sqlite_master", "sql": "x"}, "names no table"),
        ({"table": "schema_migrations", "name": "9999"}, "names no table"),
        ({"table": "projects; DROP TABLE projects"}, "names no table"),
        ({"table": ["projects"]}, "names no table"),
        ({"key": "k"}, "names no table"),
        ({**PROJECT, "name) VALUES (1); --": 1}, "has a column that projects has not"),
        ({**PROJECT, "id": "1"}, "id of the wrong kind"),
        ({**PROJECT, "id": True}, "id of the wrong kind"),
        ({**PROJECT, "id": -1}, "id of the wrong kind"),
        ({**PROJECT, "id": 2**63}, "id of the wrong kind"),
        ({**PROJECT, "id": 2**63 - 1}, "id of the wrong kind"),
        ({**PROJECT, "id": 0}, "has no id"),
        ({**PROJECT, "name": ["n"]}, "name of the wrong kind"),
        ({**PROJECT, "name": None}, "has no name"),
        ({"table": "projects", "id": 1, "name": "n"}, "has no key"),
        ({**SESSION_ROW, "project_id": 77}, "project_id that is not in the file"),
        ({**SESSION_ROW, "content_session_id": "new", "id": 9, "status": "odd"}, "CHECK"),
        ({**SESSION_ROW, "id": 9, "updated_at_epoch": 10**15}, "wrong kind"),
        ({**TURN, "session_id": None}, "has no session_id"),
        ({**MEMORY, "type": "spell"}, "CHECK"),
        ({**MEMORY, "turn_id": 5}, "turn_id that is not in the file"),
        ({**MEMORY, "facts": "no list"}, "facts that is not JSON"),
        ({**MEMORY, "facts": '[1, {"a": 2}]'}, "facts of the wrong kind"),
        ({**MEMORY, "facts": "[" * 50_000 + "]" * 50_000}, "too deep"),
        ({"table": "observation_events", "observation_id": 3, "event_id": 4}, "not in the file"),
    ],
    ids=lambda value: None if isinstance(value, str) else "",
)
def test_a_bad_line_is_told_with_its_number_and_costs_only_itself(
    other: Story, tmp_path: Path, line: dict[str, Any] | bytes, reason: str
) -> None:
    path = as_file(tmp_path, PROJECT, SESSION_ROW, TURN, line, {**MEMORY, "ordinal": 7})
    report = restored(other, path)
    assert (report.refused, report.added.total()) == (1, 4)
    (refusal,) = report.reasons
    assert refusal.place == "line 5" and reason in refusal.reason
    assert report.is_complete and sound(other)
    assert other.column("SELECT ordinal FROM observations") == [7]


def test_half_characters_and_nul_are_stored_as_text_can_hold_them(
    other: Story, tmp_path: Path
) -> None:
    odd = json.dumps({**PROJECT, "name": "a\ud800b\0c"}).encode()
    assert restored(other, as_file(tmp_path, odd)).added == {"projects": 1}
    assert other.column("SELECT name FROM projects") == ["a?b\0c"]


def test_a_record_of_ten_megabytes_is_restored_and_one_without_end_is_passed_over(
    other: Story, tmp_path: Path
) -> None:
    large = {**PROJECT, "id": 2, "key": "large", "name": "x" * 10_000_000}
    endless = b'{"table":"projects","name":"' + b"x" * (restoring.LONGEST_LINE + 5) + b'"}'
    report = restored(other, as_file(tmp_path, PROJECT, large, endless, {**PROJECT, "key": "z"}))
    assert other.column("SELECT key FROM projects ORDER BY id") == ["k", "large", "z"]
    assert [(r.place, "longer than" in r.reason) for r in report.reasons] == [("line 4", True)]


@pytest.mark.parametrize("kept", [0.3, 0.5, 0.77, 0.999])
def test_of_a_file_that_was_cut_off_all_whole_lines_are_restored_and_the_rest_later(
    story: Story, other: Story, kept: float
) -> None:
    data = dump(live(story).store)
    cut = data[: int(len(data) * kept)]
    report = restored(other, cut)
    assert not report.is_complete
    assert "ends before its last line" in "\n".join(report_of_file(report))
    assert report.added.total() + report.refused == len(cut.splitlines()) - 1
    assert report.refused <= 1 and sound(other)
    assert restored(other, data).is_complete
    assert dump(other.store) == data


def test_lines_that_are_missing_in_the_middle_are_noticed(story: Story, other: Story) -> None:
    data = dump(live(story).store).splitlines(keepends=True)
    del data[-3:-1]
    report = restored(other, b"".join(data))
    assert report.is_complete
    assert ["counts" in refusal.reason for refusal in report.reasons] == [True]


@given(st.data())
@settings(max_examples=25)
def test_no_damage_to_a_file_ends_in_a_traceback_or_an_unsound_database(
    data: st.DataObject,
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        one, two = Path(directory) / "one", Path(directory) / "two"
        with Story(one) as story, Story(two) as other:
            story.tell(prompt(), edit(), stop())
            story.distil()
            whole = bytearray(dump(story.store))
            start = whole.index(b"\n") + 1
            seed = data.draw(st.integers(0, 2**32))
            chance = random.Random(seed)
            for _ in range(chance.randint(1, 8)):
                at = chance.randrange(start, len(whole))
                whole[at : at + chance.randint(0, 3)] = chance.randbytes(chance.randint(0, 3))
            restored(other, bytes(whole))
            assert sound(other) and other.store.integrity() is None
            other.store.counts()
            for noun in ("observations", "summaries", "prompts"):
                other.store.get_many(noun, [1, 2, 3])


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is not an export"),
        (b"\0" * 4096, "is not an export"),
        (b'{"format":"something"}\n', "is not an export"),
        (b"[" * 100_000, "is not an export"),
        (b'{"format":"claude-mem-export"}\n', "cannot be understood"),
        (b'{"format":"claude-mem-export","version":"1","schema":[]}\n', "cannot be understood"),
        (b'{"format":"claude-mem-export","version":2,"schema":[]}\n', "upgrade"),
        (b'{"format":"claude-mem-export","version":1,"schema":["9999_later"]}\n', "upgrade"),
    ],
)
def test_a_file_that_is_no_export_of_ours_is_refused_as_a_whole(
    other: Story, tmp_path: Path, content: bytes, said: str
) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(BadInput, match=said):
        restored(other, path)


def test_a_file_that_cannot_be_opened_is_refused(other: Story, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="no file"):
        restored(other, tmp_path / "nowhere")
    with pytest.raises(BadInput, match="cannot be read"):
        restored(other, tmp_path)
    assert not is_export(tmp_path) and not is_export(tmp_path / "nowhere")


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
    story.store.record(events).result()
    story.distil()
    return dump(story.store)


def test_a_killed_restore_is_completed_by_the_next(story: Story, tmp_path: Path) -> None:
    data = many(story)
    file, layout = tmp_path / "in.jsonl", Layout(tmp_path / "fresh")
    file.write_bytes(data)
    marker = tmp_path / "marker"
    program = (
        "import sys; from pathlib import Path; from claude_mem.config import load_settings\n"
        "from claude_mem.cli.restore import restore_file\n"
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
    assert report.is_complete and report.refused == 0 < report.known.total()
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
    assert "do 249" in home.context(session_start(session_id="new"))
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
