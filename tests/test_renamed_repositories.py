"""A repository whose origin has changed keeps its memory; what may be one is asked about."""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from claude_mem.intake.git_repository import checkout_of, has_object
from claude_mem.intake.projects import claim_of
from tests.api import open_api
from tests.test_project_access import SECRET, Place, with_a_link_to_its_git_directory
from tests.test_project_changes import OTHER_KEY, OTHER_ORIGIN
from tests.test_projects import KEY, ORIGIN, git, git_output, make_repository
from tests.trust_dialog import accept_trust_dialog

MERGE = f"claude-mem project merge {KEY} {OTHER_KEY}"


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """A known repository in which a session has begun."""
    known = make_repository(tmp_path / "harbor", ORIGIN)
    with open_api(tmp_path / "data", HOME=str(tmp_path)) as api:
        place = Place(api, tmp_path, known)
        place.work(known, f"The {SECRET}")
        place.start(known)
        yield place


def rename(directory: Path, origin: str = OTHER_ORIGIN) -> None:
    git(directory, "remote", "set-url", "origin", origin)


def test_a_repository_whose_origin_changed_keeps_its_memory(place: Place) -> None:
    rename(place.known)
    context, message = place.start(place.known)
    assert SECRET in context and "merge" not in message
    assert set(place.sessions()) == {OTHER_KEY}
    rename(place.known, ORIGIN)
    assert SECRET in place.start(place.known)[0], "and back"


def test_a_work_tree_brings_the_memory_of_its_renamed_repository(place: Place) -> None:
    rename(place.known)
    git(place.known, "worktree", "add", "-q", str(place.root / "feature"))
    assert SECRET in place.start(place.root / "feature")[0]
    assert SECRET in place.start(place.known)[0]


def test_a_clone_gets_what_a_renamed_repository_has(place: Place) -> None:
    rename(place.known)
    place.start(place.known)
    clone = make_repository(place.root / "clone", OTHER_ORIGIN)
    accept_trust_dialog(place.root, clone)
    assert SECRET in place.start(clone)[0]
    old_clone = make_repository(place.root / "old", ORIGIN)
    accept_trust_dialog(place.root, old_clone)
    assert SECRET in place.start(old_clone)[0], "also one that still has the old origin"


def test_the_names_that_a_project_had_name_it(place: Place) -> None:
    rename(place.known)
    place.start(place.known)
    for name in ("harbor", "port", KEY, OTHER_KEY):
        found = place.api.get_json("/api/search", query="relay volts", project=name)
        assert SECRET[:20] in json.dumps(found), name
    place.work(make_repository(place.root / "new" / "harbor", "https://gitlab.com/x/harbor"))
    found = place.api.get_json("/api/search", query="relay volts", project="harbor")
    assert SECRET[:20] not in json.dumps(found), "a name that a project has comes first"


def test_another_repository_at_the_same_path_gets_nothing(place: Place) -> None:
    shutil.rmtree(place.known)
    assert make_repository(place.known, OTHER_ORIGIN) == place.known
    context, message = place.start(place.known)
    assert SECRET not in context and MERGE in message, "it is asked"
    assert KEY in place.sessions()


def test_a_link_to_the_git_directory_of_a_renamed_repository_gets_nothing(place: Place) -> None:
    rename(place.known)
    for copy in (with_a_link_to_its_git_directory(place), place.root / "by-file"):
        copy.mkdir(exist_ok=True)
        if not (copy / ".git").exists():
            (copy / ".git").write_text(f"gitdir: {place.known / '.git'}\n")
        assert SECRET not in place.start(copy)[0]
    assert KEY in place.sessions()


def test_a_copy_with_the_times_of_a_repository_gets_nothing(place: Place) -> None:
    moved = place.root / "moved"
    place.known.rename(moved)
    shutil.copytree(moved, place.known)
    for name in ("description", "objects", "."):
        times = (moved / ".git" / name).stat()
        os.utime(place.known / ".git" / name, ns=(times.st_atime_ns, times.st_mtime_ns))
    rename(place.known)
    assert SECRET not in place.start(place.known)[0]


def test_a_repository_does_not_become_a_project_that_is_known_from_elsewhere(
    place: Place,
) -> None:
    other = make_repository(place.root / "port", OTHER_ORIGIN)
    place.work(other)
    place.start(other)
    accept_trust_dialog(place.root, place.known)
    rename(place.known)
    context, message = place.start(place.known)
    assert SECRET not in context and MERGE in message
    assert set(place.sessions()) == {KEY, OTHER_KEY}


def test_one_of_two_clones_with_another_origin_may_be_a_fork(place: Place) -> None:
    fork = make_repository(place.root / "fork", ORIGIN)
    accept_trust_dialog(place.root, fork)
    place.work(fork)
    place.start(fork)
    rename(fork)
    context, message = place.start(fork)
    assert SECRET not in context and MERGE in message
    assert KEY in place.sessions()


def test_what_is_shared_with_a_team_is_not_renamed_unasked(place: Place) -> None:
    columns = place.api.rows("SELECT name FROM pragma_table_info('team_projects')")
    insert = f"INSERT INTO team_projects VALUES (?{', 1' * (len(columns) - 1)})"
    place.api.worker.store.write(lambda c: c.execute(insert, (KEY,))).result()
    rename(place.known)
    context, message = place.start(place.known)
    assert SECRET not in context and MERGE in message


# A clone that is only likely to be the same


def test_commits_of_a_project_in_a_new_clone_are_asked_about_once(place: Place) -> None:
    for number in range(2):
        git(place.known, "commit", "-q", "--allow-empty", "-m", f"Work {number}")
        made = git_output(place.known, "rev-parse", "--short", "HEAD")
        ran(place, f"c{number}", f"git commit -m 'Work {number}'", f"[main {made}] Work {number}")
    clone = place.root / "clone"
    git(place.root, "clone", "-q", "--no-local", str(place.known), str(clone))
    rename(clone)
    context, message = place.start(clone)
    assert SECRET not in context
    assert MERGE in message and "made commits of this repository" in message
    assert "merge" not in place.start(clone)[1]
    place.api.post_json("/api/projects/merge", project=KEY, into=OTHER_KEY)
    assert SECRET in place.start(clone)[0]


def ran(place: Place, session: str, command: str, output: str) -> None:
    """A turn in the known repository that ran this command."""
    about = {"contentSessionId": session, "project_dir": str(place.known)}
    place.api.post_json("/api/sessions/init", prompt="Go on", **about)
    place.api.post_json(
        "/api/sessions/observations", tool_name="Bash", tool_input={"command": command},
        tool_response={"stdout": output, "stderr": "", "interrupted": False}, **about,
    )  # fmt: skip
    place.api.post_json("/api/sessions/summarize", last_assistant_message="Done.", **about)
    place.api.catch_up()


def test_a_pull_request_of_the_new_name_is_asked_about(place: Place) -> None:
    ran(place, "p", "gh pr create --title x", f"https://{OTHER_KEY}/pull/12\n")
    stranger = make_repository(place.root / "other", "https://github.com/someone/port.git")
    assert "merge" not in place.start(stranger)[1]
    clone = make_repository(place.root / "clone", OTHER_ORIGIN)
    context, message = place.start(clone)
    assert SECRET not in context
    assert MERGE in message and "has pull requests of this repository" in message


def test_objects_are_found_loose_and_packed(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r", ORIGIN)
    for number in range(40):
        git(repository, "commit", "-q", "--allow-empty", "-m", str(number))
    hashes = git_output(repository, "rev-list", "--all").split()
    git_dir = repository / ".git"
    missing = next(
        f"{n:07x}" for n in range(99) if not any(h.startswith(f"{n:07x}") for h in hashes)
    )
    for _ in range(2):
        assert all(has_object(git_dir, name[:7]) and has_object(git_dir, name) for name in hashes)
        assert not has_object(git_dir, missing)
        git(repository, "gc", "-q")
    (index,) = (git_dir / "objects" / "pack").glob("*.idx")
    index.chmod(0o600)
    whole = index.read_bytes()
    for broken in (whole[:600], whole[:8] + b"\xff" * 1024, b"", b"\xfftOc"):
        index.write_bytes(broken)
        assert not has_object(git_dir, missing)
    index.unlink()
    os.mkfifo(index)
    assert not has_object(git_dir, hashes[0])


def test_a_repository_without_the_files_of_a_clone_has_no_identity(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r", ORIGIN)
    assert checkout_of(claim_of(str(repository), None)) is not None
    (repository / ".git" / "description").unlink()
    assert checkout_of(claim_of(str(repository), None)) is None
