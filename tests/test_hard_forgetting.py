"""`forget --hard`: every file of the data directory is searched for the bytes afterwards.

With a real worker, a model's answer that was kept, a rejected payload, logs and backups around.
"""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from claude_mem.mcp.tools import IMPLEMENTATIONS, Call
from claude_mem.store import backups
from claude_mem.store.database import connect
from tests.api import Api, open_api
from tests.conftest import Home, wait_until
from tests.fake_api import FakeApi
from tests.live_files import plain_bytes
from tests.observed import answer, says, use
from tests.payloads import PROJECT_DIR, edit, prompt, session_end, session_start, stop, tool
from tests.variants import mostly_extra

WORD = "xanthocroid77"  # of what is forgotten
OTHER = "lanternfish55"  # of what stays
BAKERY = "/home/dev/bakery"
SECRET_TURN = "aaaaaaaa-0000-4000-8000-000000000001"


def play(home: Home, session: str, word: str, turn: str, project_dir: str = PROJECT_DIR) -> None:
    about = {"session_id": session, "prompt_id": turn}
    for payload in (
        session_start(session_id=session),
        prompt(f"Rotate the {word} of the harbour", **about),
        tool(tool_response={"stdout": f"the value is {word} now"}, **about),
        edit(f"{project_dir}/{word}.py", **about),
        stop(f"I rotated the {word} because the {word} was too old.", **about),
        session_end(**about),
    ):
        assert home.hook(payload, CLAUDE_PROJECT_DIR=project_dir).returncode == 0
    home.wait_settled()


def files_with(home: Home, word: str) -> list[str]:
    return sorted(
        str(path.relative_to(home.layout.root))
        for path, content in home.files().items()
        if word.encode() in content.lower()
    )


def back_up(home: Home) -> None:
    with closing(connect(home.layout.database, readonly=True)) as connection:
        backups.back_up(connection, home.layout.backups, 3)


def leave_traces(home: Home, api: FakeApi) -> None:
    """The text in every kind of file that may hold it."""
    use(home, api, "anthropic")
    home.environment["CLAUDE_MEM_EMBEDDER"] = "none"
    api.say(says(answer(f"The {OTHER} was rotated")))
    play(home, "other", OTHER, "bbbbbbbb-0000-4000-8000-000000000002")
    wait_until(lambda: not home.rows("SELECT 1 FROM refinements"), "the answer to the first turn")
    back_up(home)
    api.say(says(f"Well: the {WORD} was rotated, and I will not answer as you ask."))
    play(home, "secret", WORD, SECRET_TURN)
    wait_until(lambda: home.rows("SELECT 1 FROM refinements WHERE reply IS NOT NULL"), "a reply")
    assert WORD in home.context(session_start(session_id="later"))
    home.hook(b'{"session_id": "secret", "note": "' + WORD.encode(), "Stop")
    home.hook(b'{"session_id": 5, "note": "' + WORD.encode() + b'"}', "Stop")
    home.wait_settled()
    for name in ("worker.log", "worker.log.1", "hook.log"):
        with (home.layout.worker_log.parent / name).open("a") as log:
            log.write(f"something about {WORD}\n")
    back_up(home)
    damaged = home.layout.database.with_name("memory.db.damaged-20260101T000000000000")
    damaged.write_bytes(home.layout.database.read_bytes() + WORD.encode())


SELECTIONS = {
    "session": ["--session", "secret"],
    "query": ["--query", WORD],
}


def ids_of_turn(home: Home) -> list[str]:
    (turn,) = home.rows(f"SELECT id FROM user_prompts WHERE prompt_id = '{SECRET_TURN}'")
    ids = [f"P{turn['id']}"]
    for table, mark in (("observations", ""), ("session_summaries", "S")):
        rows = home.rows(f"SELECT id FROM {table} WHERE turn_id = {turn['id']}")
        ids += [f"{mark}{row['id']}" for row in rows]
    return ids


@pytest.mark.parametrize("way", mostly_extra(["session", "ids", "query"]))
def test_no_byte_of_it_stays_in_any_file(home: Home, api: FakeApi, way: str) -> None:
    leave_traces(home, api)
    places = " ".join(files_with(home, WORD))
    for place in ("memory.db", "backups/", "spool/rejected/", "contexts/", "logs/worker.log",
                  "logs/worker.log.1", "logs/hook.log", "memory.db.damaged-"):  # fmt: skip
        assert place in places
    selection = ids_of_turn(home) if way == "ids" else SELECTIONS[way]

    preview = home.command("forget", *selection, "--hard")
    assert preview.returncode == 0 and "cannot be undone" in preview.stdout
    assert " ".join(files_with(home, WORD)) == places, "a preview changes nothing"
    command = preview.stdout.rsplit("claude-mem ", 1)[1].split()
    done = home.command(*command)
    assert done.stdout.startswith("Forgotten for good: "), done.stdout + done.stderr
    assert "still removing" not in done.stdout

    assert files_with(home, WORD) == []
    assert home.command(*command).stdout == done.stdout, "repeated: the same answer"
    assert "Nothing can be restored" in home.command("forget", "--list").stdout
    assert home.command("forget", "--undo").returncode == 1
    # What is not forgotten is still there, is found, and is in the fresh backup.
    assert OTHER in home.command("search", OTHER).stdout
    assert OTHER in home.context(session_start(session_id="next"))
    (backup,) = home.layout.backups.iterdir()
    assert OTHER.encode() in plain_bytes(backup)
    # Neither late hooks nor the end of the worker bring it back.
    home.hook(stop(f"Late: {WORD}", session_id="secret", prompt_id=SECRET_TURN))
    home.wait_settled()
    assert home.command("worker", "stop").returncode == 0
    assert files_with(home, WORD) == []


def test_a_project_is_forgotten_with_its_name(home: Home) -> None:
    home.start_worker()
    play(home, "other", OTHER, "bbbbbbbb-0000-4000-8000-000000000002")
    play(home, "secret", WORD, SECRET_TURN, BAKERY)
    back_up(home)
    done = home.command("forget", "--project", "bakery", "--hard", "--yes")
    assert done.returncode == 0, done.stderr
    assert files_with(home, WORD) == [] and files_with(home, "bakery") == []
    assert files_with(home, OTHER)
    home.hook(prompt(f"Again {WORD}", session_id="secret"), CLAUDE_PROJECT_DIR=BAKERY)
    home.wait_settled()
    assert files_with(home, WORD) == [], "the mark is a hash, and still holds"


@pytest.mark.parametrize("point", ["erase.before_leftovers", "erase.before_scrub"])
def test_a_worker_killed_in_between_completes_it_when_it_starts_again(
    home: Home, tmp_path: Path, point: str
) -> None:
    marker = tmp_path / "armed"
    home.environment["CLAUDE_MEM_FAULT"] = f"{point}:{marker}"
    play(home, "other", OTHER, "bbbbbbbb-0000-4000-8000-000000000002")
    play(home, "secret", WORD, SECRET_TURN)
    back_up(home)
    marker.touch()
    assert home.command("forget", "--session", "secret", "--hard", "--yes").returncode != 0
    assert not marker.exists() and files_with(home, WORD)
    home.start_worker()
    wait_until(lambda: files_with(home, WORD) == [], "the text to leave every file")
    assert files_with(home, OTHER)


def test_hard_is_the_same_over_http_and_a_soft_token_does_not_confirm_it(tmp_path: Path) -> None:
    with open_api(tmp_path / "data") as api:
        api.add_turn("one", f"Rotate the {WORD}", f"The {WORD} is rotated.")
        api.add_turn("two", f"Polish the {OTHER}", f"The {OTHER} shines.")
        soft = api.post_json("/api/forget", session="one")
        hard = api.post_json("/api/forget", session="one", hard=True)
        assert soft["hard"] is False and hard["hard"] is True
        refused = api.post("/api/forget", session="one", hard=True, confirm=soft["confirm"])
        assert refused.status_code == 400
        assert api.post("/api/forget", session="one", hard="maybe").status_code == 400
        done = api.post_json("/api/forget", session="one", hard=True, confirm=hard["confirm"])
        assert done["forgotten"] is done["hard"] is done["scrubbed"] is True
        assert done["counts"] == hard["counts"] and "undo" not in done
        assert WORD.encode() not in api.bytes_on_disk()
        assert OTHER.encode() in api.bytes_on_disk()
        assert WORD not in json.dumps(api.rows("SELECT * FROM tombstones"))


def test_the_tool_of_agents_forgets_for_good(tmp_path: Path) -> None:
    with open_api(tmp_path / "data") as api:
        api.add_turn("one", f"Rotate the {WORD}", f"The {WORD} is rotated.")

        async def run(arguments: dict[str, Any]) -> str:
            return await IMPLEMENTATIONS["forget"](Call(api.worker, PROJECT_DIR, arguments))

        def call(**arguments: Any) -> str:
            return api.runner.run(run(arguments))

        preview = call(session="one", hard=True)
        assert "for good; nobody can undo it" in preview
        token = preview.rsplit('"', 2)[1]
        done = call(session="one", hard=True, confirm=token)
        assert done.startswith("Forgotten for good: 1 session") and "undo" not in done
        assert WORD.encode() not in api.bytes_on_disk()
        assert call(session="one", hard=True, confirm=token) == done


def forget(api: Api, **selection: Any) -> None:
    preview = api.post_json("/api/forget", **selection)
    api.post_json("/api/forget", **selection, confirm=preview["confirm"])


def test_what_was_forgotten_before_of_the_same_turn_leaves_the_trash(tmp_path: Path) -> None:
    with open_api(tmp_path / "data") as api:
        api.add_turn("one", f"Rotate the {WORD}", f"The {WORD} is rotated.",
                     edited=f"{PROJECT_DIR}/{WORD}.py")  # fmt: skip
        api.add_turn("two", f"Polish the {OTHER}", f"The {OTHER} shines.")
        # The trash of another turn has a context that repeats the text.
        api.start_session(session_start(session_id="later"))
        api.catch_up()
        forget(api, ids=["S2"])
        forget(api, ids=["S1"])
        forget(api, session="one", hard=True)
        assert WORD.encode() not in api.bytes_on_disk()
        assert len(api.get_json("/api/forgotten")["forgotten"]) == 1
        api.post_json("/api/forget/undo")
        assert f"The {OTHER} shines" in json.dumps(api.get_json("/api/summaries"))


def test_a_reader_that_uses_the_journal_delays_it(tmp_path: Path) -> None:
    with open_api(tmp_path / "data") as api:
        api.add_turn("one", f"Rotate the {WORD}", f"The {WORD} is rotated.")
        api.add_turn("two", f"Polish the {OTHER}", f"The {OTHER} shines.")
        with closing(sqlite3.connect(api.layout.database, isolation_level=None)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM user_prompts").fetchone()
            preview = api.post_json("/api/forget", session="one", hard=True)
            selection = {"session": "one", "hard": True, "confirm": preview["confirm"]}
            assert api.post_json("/api/forget", **selection)["scrubbed"] is False
        api.runner.run(api.worker.scrub_data_directory())
        assert api.post_json("/api/forget", **selection)["scrubbed"] is True
        assert WORD.encode() not in api.bytes_on_disk()
