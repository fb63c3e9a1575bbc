"""Forgetting, undo, and saved memories."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from claude_mem.intake.transcripts.past_sessions import TURNS_PER_PART, PastSessionReader
from claude_mem.redaction import Redactor
from claude_mem.store.clock import iso
from claude_mem.store.transfer.restore import restore
from claude_mem.store.transfer.tables import CANONICAL
from claude_mem.worker.contexts import rendered_context
from tests import payloads
from tests.api import Api, open_api
from tests.conftest import Home
from tests.payloads import PROJECT_DIR

HOUR = 3_600_000
BAKERY = "/home/dev/bakery"


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Api]:
    """Two sessions about a lighthouse, and one about bread."""
    with open_api(tmp_path / "data") as api:
        api.add_turn("one", "Mend the flickering lamp", "A bent fuse made it flicker.",
                      edited=f"{PROJECT_DIR}/src/lamp.py")  # fmt: skip
        api.add_turn("one", "Paint the door", "The door is green now.",
                      edited=f"{PROJECT_DIR}/src/door.py")  # fmt: skip
        api.add_turn("two", "Wind the clock", "The clock is wound.",
                      edited=f"{PROJECT_DIR}/src/clock.py")  # fmt: skip
        api.add_turn("three", "Bake bread", "Two loaves of baked bread.", project_dir=BAKERY)
        yield api


def everything(api: Api) -> dict[str, list[dict[str, Any]]]:
    """The rows of every canonical table."""
    return {
        table.name: api.rows(f"SELECT * FROM {table.name} ORDER BY 1, 2") for table in CANONICAL
    }


def search_ids(api: Api, query: str) -> list[str]:
    return [row["id"] for row in api.get_json("/api/search", query=query)["results"]]


def context(api: Api, directory: str = PROJECT_DIR) -> str:
    return api.get("/api/context/inject", project_dir=directory).text


def forget(api: Api, **selection: Any) -> dict[str, Any]:
    """Previews the selection, then confirms it."""
    preview = api.post_json("/api/forget", **selection)
    assert preview["forgotten"] is False
    done = api.post_json("/api/forget", **selection, confirm=preview["confirm"])
    assert done["forgotten"] is True and done["counts"] == preview["counts"]
    return done


def exported(api: Api) -> str:
    lines: list[bytes] = []
    api.worker.store.export(lines.append)
    return b"".join(lines).decode()


# Forgetting and undo


@pytest.mark.parametrize(
    ("selection", "words", "directory"),
    [
        ({"ids": [1, "S1", "P1"]}, ["flicker", "fuse", "lamp.py"], PROJECT_DIR),
        ({"session": "one"}, ["flicker", "fuse", "door"], PROJECT_DIR),
        ({"session": "1"}, ["flicker", "fuse", "door"], PROJECT_DIR),
        ({"file": "src/door.py"}, ["door.py"], PROJECT_DIR),
        ({"query": "bent fuse", "project": "harbor"}, ["bent"], PROJECT_DIR),
        ({"project": "bakery"}, ["bread", "baked", "bakery"], BAKERY),
    ],
)
def test_what_is_forgotten_is_gone_at_once_and_everywhere_and_undo_brings_it_back(
    memory: Api, selection: dict[str, Any], words: list[str], directory: str
) -> None:
    memory.start_session(payloads.session_start(session_id="later"), directory)
    memory.catch_up()
    before, text = everything(memory), context(memory, directory)
    nouns = ("observations", "summaries", "prompts", "sessions")
    pages = {noun: memory.get_json(f"/api/{noun}") for noun in nouns}
    rendered = rendered_context(memory.layout, directory)
    assert all(word in text + json.dumps(pages) for word in words)

    done = forget(memory, **selection)
    assert rendered and rendered_context(memory.layout, directory) == ""
    for word in words:
        assert search_ids(memory, f'"{word}"') == []
        for noun in pages:
            assert word not in json.dumps(memory.get_json(f"/api/{noun}"))
        assert word not in context(memory, directory)
        assert word not in rendered_context(memory.layout, directory)
        assert word not in exported(memory)
        assert word not in json.dumps(everything(memory))

    restored = memory.post_json("/api/forget/undo", undo=done["undo"])
    assert restored["counts"] == done["counts"]
    assert everything(memory) == before
    assert {noun: memory.get_json(f"/api/{noun}") for noun in pages} == pages
    assert context(memory, directory) == text
    assert rendered_context(memory.layout, directory) == rendered
    assert memory.rows("SELECT * FROM forgotten_rows") == memory.rows("SELECT * FROM tombstones")


def test_other_memories_stay(memory: Api) -> None:
    forget(memory, session="one")
    assert "clock" in context(memory) and search_ids(memory, "clock")
    forget(memory, project="bakery")
    assert "clock" in context(memory) and search_ids(memory, "clock")
    assert [p["name"] for p in memory.get_json("/api/projects")["projects"]] == ["harbor"]


def test_a_preview_changes_nothing_and_says_what_would_go(memory: Api) -> None:
    before = everything(memory)
    preview = memory.post_json("/api/forget", file="src/lamp.py")
    assert preview["counts"]["observations"] == 1 and preview["counts"]["sessions"] == 0
    assert any(line.startswith("#1 ") for line in preview["examples"])
    project_preview = memory.post_json("/api/forget", project="harbor")
    assert project_preview["counts"] == {
        "sessions": 2,
        "observations": 3,
        "summaries": 3,
        "prompts": 3,
    }
    assert any(line.startswith("session 1 ") for line in project_preview["examples"])
    assert everything(memory) == before


def test_a_query_forgets_what_fits_it_and_not_what_stands_beside_that(memory: Api) -> None:
    memory.add_turn("six", "Hm", "The grey walrus swam to the northern harbour at noon.")
    memory.add_turn("six", "Repair the wooden bridge over the river", "The bridge holds.")
    query = "where did the grey walrus swim at noon"
    assert "S5" in search_ids(memory, query)
    preview = memory.post_json("/api/forget", query=query)
    assert [line.split()[0] for line in preview["examples"]] == ["S5", "P5"]


def test_a_token_is_good_for_exactly_what_was_seen(memory: Api) -> None:
    token = memory.post_json("/api/forget", session="one")["confirm"]
    for other in ({"session": "two"}, {"ids": [1]}, {"project": "harbor"}):
        assert memory.post("/api/forget", **other, confirm=token).status_code == 400
    memory.add_turn("one", "One thing more", "It is done.")
    answer = memory.post("/api/forget", session="one", confirm=token)
    assert answer.status_code == 400 and "preview them again" in answer.json()["error"]
    assert memory.post("/api/forget", session="one", confirm="").json()["forgotten"] is False


def test_saying_it_twice_does_it_once(memory: Api) -> None:
    done = forget(memory, ids=[1])
    again = memory.post_json("/api/forget", ids=[1], confirm=done["undo"])
    assert again == done
    assert len(memory.get_json("/api/forgotten")["forgotten"]) == 1


def test_without_a_token_undo_takes_back_the_last(memory: Api) -> None:
    before = everything(memory)
    forget(memory, ids=["S1"])
    forget(memory, session="two")
    forget(memory, project="harbor")
    listed = memory.get_json("/api/forgotten")["forgotten"]
    assert [entry["counts"]["sessions"] for entry in listed] == [1, 1, 0]
    for _ in listed:
        memory.post_json("/api/forget/undo")
    assert everything(memory) == before
    assert memory.post("/api/forget/undo").status_code == 404


def test_a_memory_cannot_come_back_before_its_session_does(memory: Api) -> None:
    before = everything(memory)
    first = forget(memory, ids=[1])
    second = forget(memory, session="one")
    answer = memory.post("/api/forget/undo", undo=first["undo"])
    assert answer.status_code == 400 and "undo that first" in answer.json()["error"]
    memory.post_json("/api/forget/undo", undo=second["undo"])
    memory.post_json("/api/forget/undo", undo=first["undo"])
    assert everything(memory) == before


def test_a_project_that_began_anew_takes_its_past_back(memory: Api) -> None:
    forget(memory, project="bakery")
    memory.add_turn("elsewhere", "Plant a tree", "Planted.", project_dir="/home/dev/garden")
    memory.add_turn("four", "Bake a cake", "The cake is baked.", project_dir=BAKERY)
    new = {row["project_id"] for row in everything(memory)["sdk_sessions"]}
    assert "bread" not in str(everything(memory))
    memory.post_json("/api/forget/undo")
    assert "Two loaves of baked bread." in str(everything(memory)["session_summaries"])
    assert {row["project_id"] for row in everything(memory)["sdk_sessions"]} == new
    assert "Bake a cake" in context(memory, BAKERY)
    assert "bread" not in context(memory, "/home/dev/garden")


def test_the_time_to_undo_runs_out_and_then_it_is_gone_from_the_file(tmp_path: Path) -> None:
    with open_api(tmp_path / "data", CLAUDE_MEM_UNDO_HOURS="2") as api:
        api.add_turn("one", "Hide the xylophone", "It is under the xylophone stairs.")
        api.add_turn("two", "Wind the clock", "The clock is wound.")
        done = forget(api, session="one")
        assert done["until"] > done["at"]
        api.worker.housekeeping.tick(api.clock.ms + HOUR)
        assert api.get_json("/api/forgotten")["forgotten"]
        api.worker.housekeeping.tick(api.clock.ms + 3 * HOUR)
        assert api.get_json("/api/forgotten")["forgotten"] == []
        assert api.post("/api/forget/undo", undo=done["undo"]).status_code == 404
        database = api.layout.database
    assert b"xylophon" not in database.read_bytes().lower()
    assert b"wound" in database.read_bytes()


# What must not be recorded again


def test_a_forgotten_session_is_not_recorded_again_by_late_hooks(memory: Api) -> None:
    forget(memory, session="one")
    before = everything(memory)
    late = {"contentSessionId": "one", "project_dir": PROJECT_DIR}
    assert (
        memory.post_json("/api/sessions/observations", tool_name="Bash", **late)["status"]
        == "skipped"
    )
    assert memory.post_json("/api/sessions/summarize", **late)["status"] == "skipped"
    assert memory.post_json("/api/sessions/init", prompt="Go on", **late)["status"] == "skipped"
    memory.start_session(payloads.session_start("resume", session_id="one"))
    memory.catch_up()
    assert everything(memory) == before


def test_a_turn_that_lost_a_memory_is_not_distilled_again(memory: Api) -> None:
    forget(memory, ids=[1])
    before = everything(memory)
    prompt_id = memory.rows("SELECT prompt_id FROM user_prompts WHERE id = 1")[0]["prompt_id"]
    late = {"contentSessionId": "one", "prompt_id": prompt_id}
    memory.post_json("/api/sessions/summarize", last_assistant_message="A bent fuse again.", **late)
    memory.catch_up()
    after = everything(memory)
    assert after["observations"] == before["observations"]
    assert after["tool_events"] == before["tool_events"]
    assert "1" not in search_ids(memory, "fuse")


def test_a_prompt_in_the_queue_goes_with_its_session(memory: Api) -> None:
    about = {"contentSessionId": "five", "project_dir": PROJECT_DIR}
    memory.post_json("/api/sessions/init", prompt="Sing", **about)
    memory.post_json("/api/sessions/summarize", last_assistant_message="Sung.", **about)
    done = forget(memory, session="five")
    memory.catch_up()
    assert search_ids(memory, "sung") == []
    memory.post_json("/api/forget/undo", undo=done["undo"])
    memory.catch_up()
    assert search_ids(memory, "sung") == ["S5"]


def transcript(path: Path, session: str, *exchanges: tuple[str, str]) -> Path:
    lines: list[dict[str, Any]] = []
    for number, (prompt, answered) in enumerate(exchanges):
        hour, minute = divmod(8 * 60 + number, 60)
        common = {"sessionId": session, "cwd": PROJECT_DIR,
                  "timestamp": f"2025-11-15T{hour:02d}:{minute:02d}:00.000Z"}  # fmt: skip
        uuid = f"{number:08d}-0000-4000-8000-000000000000"
        lines.append({"type": "user", "uuid": uuid, "promptId": uuid, **common,
                      "message": {"role": "user", "content": prompt}})  # fmt: skip
        lines.append({"type": "assistant", "uuid": f"a{uuid[1:]}", **common,
                      "message": {"role": "assistant", "content": [
                          {"type": "text", "text": answered}]}})  # fmt: skip
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def titles(api: Api) -> list[str | None]:
    return [session["title"] for session in api.get_json("/api/sessions")["items"]]


def read_in(api: Api, path: Path, since: int = 0) -> int:
    """Imports a transcript from a turn on; how many turns were left out as forgotten."""
    outcomes = []
    for session in PastSessionReader(path, api.worker.reader, 0).sessions():
        later_turns = tuple(turn for turn in session.turns if turn.number > since)
        outcomes.append(
            api.worker.store.import_session(replace(session, turns=later_turns)).result()
        )
    return sum(outcome.forgotten for outcome in outcomes)


def test_a_forgotten_session_does_not_come_back_from_its_transcript_or_a_fork(
    memory: Api, tmp_path: Path
) -> None:
    exchanges = [("Tune the violin", "The violin is tuned."), ("And the cello", "The cello, too.")]
    path = transcript(tmp_path / "t.jsonl", "strings", *exchanges)
    assert read_in(memory, path) == 0
    assert search_ids(memory, "violin")
    done = forget(memory, session="strings")
    assert read_in(memory, path) == 2
    fork = transcript(tmp_path / "f.jsonl", "a-fork", *exchanges, ("And the harp", "Tuned."))
    assert read_in(memory, fork) == 2
    assert search_ids(memory, "violin") == [] and search_ids(memory, "harp")
    memory.post_json("/api/forget/undo", undo=done["undo"])
    assert search_ids(memory, "violin")


@pytest.mark.parametrize("what", ["the session", "its first prompt"])
@pytest.mark.parametrize("since", [0, 90], ids=["all", "the last of it"])
def test_no_piece_of_a_long_fork_tells_a_title_that_was_forgotten(
    memory: Api, tmp_path: Path, what: str, since: int
) -> None:
    exchanges = [("Tune the violin", "The violin is tuned.")]
    exchanges += [(f"Oil hinge {n}", f"Hinge {n} is oiled.") for n in range(2 * TURNS_PER_PART - 1)]
    read_in(memory, transcript(tmp_path / "t.jsonl", "strings", *exchanges))
    if what == "the session":
        forget(memory, session="strings")
    else:
        forget(memory, query="violin")
    exchanges += [(f"Wax harp {n}", f"Harp {n} is waxed.") for n in range(TURNS_PER_PART + 5)]
    fork = transcript(tmp_path / "f.jsonl", "a-fork", *exchanges)
    read_in(memory, fork, since)
    assert search_ids(memory, "harp") and search_ids(memory, "violin") == []
    assert "violin" not in json.dumps(memory.get_json("/api/sessions")).lower()
    assert "violin" not in context(memory)


def test_a_forgotten_prompt_without_an_id_does_not_come_back_from_its_transcript(
    memory: Api, tmp_path: Path
) -> None:
    memory.add_turn("old-client", "Tune the violin", "The violin is tuned.")
    times = {"T08:00:00.000Z": memory.clock.ms + 2000, "T08:01:00.000Z": memory.clock.ms + HOUR}
    forget(memory, query="violin")
    exchanges = [("Tune the violin", "The violin is tuned."), ("And the harp", "Waxed.")]
    path = transcript(tmp_path / "t.jsonl", "old-client", *exchanges)
    for written, ms in times.items():
        path.write_text(path.read_text().replace(f"2025-11-15{written}", iso(ms)))
    assert read_in(memory, path) == 1
    assert search_ids(memory, "violin") == [] and search_ids(memory, "harp")


@pytest.mark.parametrize("what", ["the session", "its first prompt"])
def test_the_title_of_a_fork_goes_with_the_turn_that_it_was_made_of(
    memory: Api, tmp_path: Path, what: str
) -> None:
    exchanges = [("Tune the violin", "The violin is tuned."), ("And the harp", "Waxed.")]
    read_in(memory, transcript(tmp_path / "t.jsonl", "a-first", *exchanges[:1]))
    read_in(memory, transcript(tmp_path / "f.jsonl", "z-fork", *exchanges))
    assert titles(memory).count("Tune the violin") == 2
    named = {"session": "a-first"} if what == "the session" else {"query": "violin"}
    done = forget(memory, **named)
    assert "violin" not in json.dumps(memory.get_json("/api/sessions")).lower()
    assert search_ids(memory, "harp")
    memory.post_json("/api/forget/undo", undo=done["undo"])
    assert titles(memory).count("Tune the violin") == 2


def test_a_forgotten_memory_does_not_come_back_from_a_grown_transcript(
    memory: Api, tmp_path: Path
) -> None:
    path = transcript(tmp_path / "t.jsonl", "strings", ("Tune the violin", "Not yet."))
    read_in(memory, path)
    forget(memory, query="violin")
    with path.open("a") as file:
        content = [{"type": "text", "text": "The violin is tuned."}]
        line = {
            "type": "assistant",
            "uuid": "b",
            "sessionId": "strings",
            "cwd": PROJECT_DIR,
            "timestamp": "2025-11-15T08:09:00.000Z",
            "message": {"role": "assistant", "content": content},
        }
        file.write(json.dumps(line) + "\n")
    assert read_in(memory, path) == 1
    fork = transcript(tmp_path / "f.jsonl", "a-fork", ("Tune the violin", "Not yet."))
    assert read_in(memory, fork) == 1
    assert search_ids(memory, "violin") == []
    assert "violin" not in json.dumps(memory.get_json("/api/sessions")).lower()


def test_a_project_that_was_forgotten_is_not_filled_from_older_transcripts(
    memory: Api, tmp_path: Path
) -> None:
    forget(memory, project="harbor")
    older = transcript(tmp_path / "t.jsonl", "never-seen", ("Tune the violin", "Tuned."))
    assert read_in(memory, older) == 1
    assert search_ids(memory, "violin") == []
    memory.clock.ms += HOUR
    memory.add_turn("new", "Begin anew", "Begun.")
    assert search_ids(memory, "begun")


def test_an_older_export_does_not_bring_back_what_was_forgotten(
    memory: Api, tmp_path: Path
) -> None:
    file = tmp_path / "all.jsonl"
    file.write_text(exported(memory))
    forget(memory, session="one")
    forget(memory, ids=["S3"])
    before = everything(memory)
    restored = restore(memory.worker.store, file, Redactor())
    assert restored.forgotten and not restored.added.total()
    assert everything(memory) == before


# Saved memories


def test_what_is_said_by_hand_is_remembered_and_shows_no_session(memory: Api) -> None:
    counts = memory.get_json("/api/stats")["database"]
    saved = memory.post_json(
        "/api/memories", text="Deploys go through the staging branch. Always.", type="decision",
        concepts=["gotcha", "decision"], files=["deploy.sh"], project_dir=PROJECT_DIR,
    )  # fmt: skip
    assert saved["new"] is True
    record = memory.get_json(f"/api/observation/{saved['id']}")
    assert record["title"] == "Deploys go through the staging branch"
    assert (record["type"], record["concepts"], record["files_read"], record["observer"]) == (
        "decision", ["gotcha"], ["deploy.sh"], "person",
    )  # fmt: skip
    assert search_ids(memory, "staging") == [str(saved["id"])]
    assert "staging branch" in context(memory)
    assert "staging branch" in rendered_context(memory.layout, PROJECT_DIR)
    assert "hand" not in json.dumps(memory.get_json("/api/sessions"))
    after = memory.get_json("/api/stats")["database"]
    assert after["sessions"] == counts["sessions"]
    assert after["observations"] == counts["observations"] + 1


def test_the_same_said_twice_is_one_memory_until_it_is_forgotten(memory: Api) -> None:
    about = {"text": "The lamp oil is in the cellar", "project_dir": PROJECT_DIR}
    first = memory.post_json("/api/memories", **about)
    assert memory.post_json("/api/memories", **about) == {"id": first["id"], "new": False}
    assert memory.post_json("/api/memories", text="Another", project="bakery")["new"]
    forget(memory, ids=[first["id"]])
    again = memory.post_json("/api/memories", **about)
    assert again["new"] is True and again["id"] != first["id"]
    memory.post_json("/api/forget/undo")
    assert len(search_ids(memory, "cellar")) == 2


def test_what_is_saved_after_a_project_was_forgotten_is_kept(memory: Api) -> None:
    memory.post_json("/api/memories", text="The oven is hot", project="bakery")
    forget(memory, project="bakery")
    assert search_ids(memory, "oven") == []
    memory.post_json("/api/memories", text="The oven is cold", project_dir=BAKERY)
    assert "oven is cold" in context(memory, BAKERY)
    memory.post_json("/api/forget/undo")
    assert len(search_ids(memory, '"oven"')) == 2
    memory.post_json("/api/memories", text="The oven is sold", project_dir=BAKERY)
    assert len(search_ids(memory, '"oven"')) == 3


def test_private_text_and_secrets_said_by_hand_are_not_kept(memory: Api) -> None:
    key = "sk-ant-api03-" + "Ab1" * 30
    saved = memory.post_json(
        "/api/memories", text=f"Use <private>the hidden door</private> and {key} there",
        title="A <private>hidden</private> way", project_dir=PROJECT_DIR,
    )  # fmt: skip
    record = json.dumps(memory.get_json(f"/api/observation/{saved['id']}"))
    assert "hidden" not in record and key not in record
    assert key.encode() not in memory.bytes_on_disk()
    answer = memory.post("/api/memories", text="<private>all</private>", project_dir=PROJECT_DIR)
    assert answer.status_code == 400 and "private" in answer.json()["error"]


def test_memory_by_hand_outlives_export_and_restore(memory: Api, tmp_path: Path) -> None:
    memory.post_json("/api/memories", text="The oven is hot", project="bakery")
    file = tmp_path / "all.jsonl"
    file.write_text(exported(memory))
    with open_api(tmp_path / "other") as other:
        assert restore(other.worker.store, file, Redactor()).refused == 0
        assert "hand" not in json.dumps(other.get_json("/api/sessions"))
        assert len(other.get_json("/api/sessions")["items"]) == 3
        assert search_ids(other, "oven")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)
NAMES = ["ids", "session", "file", "query", "project", "confirm", "text", "title", "type",
         "concepts", "files", "project_dir", "undo", "x"]  # fmt: skip
LIKELY = st.sampled_from(["one", "1", "harbor", "lamp", "src", "decision", [1, "S1"], ["P1"]])


@given(
    path=st.sampled_from(["/api/forget", "/api/forget/undo", "/api/memories"]),
    body=st.dictionaries(st.sampled_from(NAMES), LIKELY | JSON, max_size=4),
)
@settings(max_examples=200)
def test_any_body_is_answered_or_clearly_refused(
    memory: Api, path: str, body: dict[str, Any]
) -> None:
    answer = memory.request("POST", path, content=json.dumps(body).encode())
    assert answer.status_code in (200, 400, 404), answer.text
    assert answer.status_code == 200 or answer.json()["error"]
    assert memory.count("sdk_sessions") >= 3  # nothing goes unconfirmed


# The command


def test_the_command_remembers_shows_forgets_and_brings_back(home: Home) -> None:
    done = home.command("remember", "The lamp oil is in the cellar", "--concept", "gotcha")
    assert done.returncode == 0, done.stderr
    assert "Saved as #1" in done.stdout
    assert "Already saved as #1" in home.command("remember", "The lamp oil is in the cellar",
                                            "--concept", "gotcha").stdout  # fmt: skip
    preview = home.command("forget", "1")
    assert "#1 The lamp oil" in preview.stdout and "Nothing was forgotten yet" in preview.stdout
    command = preview.stdout.rsplit("claude-mem ", 1)[1].split()
    assert "Forgotten: 1 observation." in home.command(*command).stdout
    assert "Nothing found" in home.command("search", "cellar").stdout
    assert "1 observation\n" in home.command("forget", "--list").stdout
    assert "Restored: 1 observation" in home.command("forget", "--undo").stdout
    assert "cellar" in home.command("search", "cellar").stdout
    assert home.command("forget", "--query", "cellar", "--yes").returncode == 0
    assert "Nothing found" in home.command("search", "cellar").stdout
    for wrong in (["forget"], ["forget", "12x"], ["forget", "99", "--yes"], ["remember", " "],
                  ["forget", "--undo", "nope"], ["forget", "--list", "1"]):  # fmt: skip
        refused = home.command(*wrong)
        assert refused.returncode == 1 and refused.stderr.startswith("claude-mem: "), wrong


def test_the_index_of_a_forgotten_memory_goes_with_it(memory: Api) -> None:
    forget(memory, session="one")
    with closing(sqlite3.connect(memory.layout.database)) as connection:
        documents = connection.execute("SELECT title FROM documents").fetchall()
    assert not [title for (title,) in documents if "lamp" in title.lower()]
