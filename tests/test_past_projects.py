"""Projects of directories that do not exist: by shape, by what sessions named, and joined later."""

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from claude_mem.errors import AmbiguousProject
from claude_mem.index.text.filters import Filters
from claude_mem.intake.projects import Projects
from claude_mem.intake.transcripts.importer import import_transcripts
from claude_mem.intake.transcripts.missing_directories import (
    CHUNK,
    known_projects,
    merge_known_projects,
)
from claude_mem.recall.formatting import search_text
from claude_mem.recall.search import Query, search
from claude_mem.store import Store
from claude_mem.store.listing import Page
from claude_mem.types import Project
from tests.importing import ImportTarget, import_options
from tests.payloads import bash, prompt, stop
from tests.story import Story
from tests.transcripts import Chat

LAMP = Project("github.com/dev/lamp", "lamp")
REMOTES = "origin\tgit@github.com:dev/lamp.git (fetch)\norigin\tgit@github.com:dev/lamp.git (push)"


@pytest.fixture
def story(tmp_path: Path) -> Iterator[Story]:
    with Story(tmp_path) as story:
        yield story


def saved(directory: Path, chat: Chat) -> Path:
    directory.mkdir(exist_ok=True)
    file = directory / f"{chat.session}.jsonl"
    file.write_bytes(chat.data())
    return file


def chat_in(cwd: str, number: int, text: str = "Light the lamp") -> Chat:
    return Chat(f"5d0c7a11-2b3e-4f60-9a81-{number:012d}", cwd=cwd).prompt(text).agent("Lit.")


# By shape


@pytest.mark.parametrize(
    "directory",
    ["/nowhere/lamp/.claude/worktrees/fix", "/nowhere/lamp/.worktrees/fix/web",
     "/nowhere/lamp-worktrees/fix", "/nowhere/lamp"],
)  # fmt: skip
def test_a_removed_work_tree_is_of_the_project_of_its_repository(directory: str) -> None:
    assert Projects(None).of(directory) == Project("/nowhere/lamp", "lamp")


def test_a_removed_work_tree_is_of_the_repository_that_still_exists(tmp_path: Path) -> None:
    git = tmp_path / "lamp" / ".git"
    git.mkdir(parents=True)
    (git / "config").write_text('[remote "origin"]\n\turl = git@github.com:dev/lamp.git\n')
    assert Projects(None).of(str(tmp_path / "lamp-worktrees" / "fix")) == LAMP
    assert Projects(None).of(str(tmp_path / "lamp" / ".claude" / "worktrees" / "x")) == LAMP


def test_a_windows_work_tree_is_of_its_repository() -> None:
    expected = Project("D:\\lamp", "lamp")
    assert Projects(None).of("D:\\lamp\\.claude\\worktrees\\fix") == expected
    assert Projects(None).of("D:\\lamp") == expected


def test_a_directory_that_exists_is_what_it_is(tmp_path: Path) -> None:
    place = tmp_path / "lamp" / ".worktrees" / "fix"
    place.mkdir(parents=True)
    assert Projects(None).of(str(place)).key == str(place)


# By what is known


def test_a_known_directory_and_its_work_trees_are_of_the_known_project() -> None:
    projects = Projects(None, {"/nowhere/lamp": LAMP})
    for directory in ("/nowhere/lamp", "/nowhere/lamp/.worktrees/fix"):
        assert projects.of(directory) == LAMP


def test_the_folder_of_a_tool_is_of_the_only_known_project_of_that_name() -> None:
    place = "/Users/dev/conductor/workspaces/lamp/lisbon"
    assert Projects(None, {"/nowhere/lamp": LAMP}).of(place) == LAMP
    other = Project("github.com/other/lamp", "lamp")
    two = Projects(None, {"/nowhere/lamp": LAMP, "/elsewhere/lamp": other})
    assert two.of(place) == Project("/Users/dev/conductor/workspaces/lamp", "lamp")


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("git remote -v", REMOTES),
        ("git push", "To github.com:dev/lamp.git\n   1a2b3c4..5d6e7f8  main -> main\n"),
        ("git push", "remote:\nTo https://github.com/dev/lamp.git\n * [new branch] x -> x\n"),
    ],
)
def test_git_facts_of_one_session_tell_the_project_of_its_directory(
    tmp_path: Path, command: str, output: str
) -> None:
    told = chat_in("/nowhere/hut/.worktrees/a", 1).bash(command, output)
    files = [saved(tmp_path, told), saved(tmp_path, chat_in("/nowhere/hut", 2))]
    known = known_projects(files, [], None)
    assert known == {"/nowhere/hut": LAMP}
    assert Projects(None, known).of("/nowhere/hut/.worktrees/b") == LAMP


def test_a_pull_request_of_a_session_tells_its_project(tmp_path: Path) -> None:
    chat = chat_in("D:\\hut", 1)
    chat.line("pr-link", prNumber=7, prUrl="https://github.com/dev/lamp/pull/7",
              prRepository="dev/lamp")  # fmt: skip
    assert known_projects([saved(tmp_path, chat)], [], None) == {"D:\\hut": LAMP}


@pytest.mark.parametrize("before_end", [-10, 0, 5, 20, 45, 70, 200])
def test_what_tells_the_project_is_found_wherever_a_large_file_is_cut(
    tmp_path: Path, before_end: int
) -> None:
    chat = chat_in("/nowhere/hut", 1).bash("git remote -v", REMOTES)
    file = saved(tmp_path, chat)
    head, remotes, tail = file.read_bytes().partition(b"origin\\t")
    filler = b"-" * (2 * CHUNK - len(head) - before_end - 3) + b"\\n "
    file.write_bytes(head + filler + remotes + tail)
    assert known_projects([file], [], None) == {"/nowhere/hut": LAMP}


def test_a_session_that_names_several_repositories_tells_nothing(tmp_path: Path) -> None:
    chat = chat_in("/nowhere/hut", 1).bash("git remote -v", REMOTES)
    chat.bash("git -C ../x remote -v", "origin\thttps://github.com/dev/x (fetch)")
    assert known_projects([saved(tmp_path, chat)], [], None) == {}


def test_a_session_that_mentions_a_known_repository_of_its_name_belongs_to_it(
    tmp_path: Path,
) -> None:
    mentions = "See https://github.com/dev/lamp/issues/3"
    named = saved(tmp_path, chat_in("/nowhere/lamp", 1, mentions))
    owner = saved(tmp_path, chat_in("/nowhere/dev/copy", 2, mentions))
    other = saved(tmp_path, chat_in("/nowhere/hut", 3, mentions))
    silent = saved(tmp_path, chat_in("/elsewhere/lamp", 4))
    known = known_projects([named, owner, other, silent], [("/gone", LAMP)], None)
    assert known == {"/gone": LAMP, "/nowhere/lamp": LAMP, "/nowhere/dev/copy": LAMP}


def test_files_that_cannot_be_read_are_passed_over(tmp_path: Path) -> None:
    empty = tmp_path / "empty.jsonl"
    empty.touch()
    assert known_projects([empty, tmp_path / "none.jsonl", tmp_path], [], None) == {}


def test_an_import_puts_all_work_trees_into_one_project(tmp_path: Path) -> None:
    told = chat_in("/nowhere/hut/.claude/worktrees/a", 1).bash("git remote -v", REMOTES)
    files = [saved(tmp_path / "t", chat) for chat in (
        told, chat_in("/nowhere/hut", 2), chat_in("/nowhere/hut/.worktrees/b/web", 3),
    )]  # fmt: skip
    report = ImportTarget(tmp_path / "data").run(*files)
    assert {project: len(tally.sessions) for project, tally in report.projects.items()} == {LAMP: 3}


# Joining


def test_a_later_import_joins_what_an_earlier_one_could_not_place(tmp_path: Path) -> None:
    target = ImportTarget(tmp_path / "data")
    target.run(saved(tmp_path / "t", chat_in("/nowhere/hut", 1, "Never push the lamp.")))
    told = chat_in("/nowhere/hut", 2, "Never push the lamp.").bash("git remote -v", REMOTES)
    target.run(saved(tmp_path / "t", told))
    with Story(tmp_path) as story:
        assert [project["key"] for project in story.store.projects()] == [LAMP.key]
        assert story.rows("PRAGMA foreign_key_check") == []
        (rule,) = story.store.facts(story.store.find_project("lamp"), ["rule"])
        assert rule.count == 2
        story.tell(prompt("Open the door", session_id="s9"))  # a transaction updates the index
        found = search(
            story.store, Query("push", Filters(story.store.find_project("lamp"))), datetime.now(UTC)
        )
        assert len(found.rows) == 2


def test_projects_of_removed_work_trees_are_joined_and_the_memory_stays(story: Story) -> None:
    place = "/nowhere/lamp/.worktrees/fix"
    story.tell(prompt("Light it"), bash("make test", "1 passed"), stop(), project_dir=place)
    story.distil()
    story.store.write(
        lambda c: c.execute("UPDATE projects SET key = ?, name = 'fix'", (place,))
    ).result()
    assert merge_known_projects(story.store, Projects(None)) == 1
    assert merge_known_projects(story.store, Projects(None)) == 0
    (project,) = story.store.projects()
    assert (project["key"], project["name"]) == ("/nowhere/lamp", "lamp")
    assert story.count("session_summaries") == 1
    assert [fact.value for fact in story.store.facts(story.store.find_project("lamp"))] == [
        "make test"
    ]


# The same name twice


def test_projects_of_the_same_name_are_told_apart_in_every_list(story: Story) -> None:
    for number, place in enumerate(("/nowhere/a/lamp", "/nowhere/b/lamp", "/nowhere/door")):
        ids = {"session_id": f"s{number}", "prompt_id": f"p{number}"}
        story.tell(prompt(f"Light the lamp {number}", **ids), stop("Lit the lamp.", **ids),
                   project_dir=place)  # fmt: skip
    story.distil()
    names = {"/nowhere/a/lamp", "/nowhere/b/lamp", "door"}
    for noun in ("summaries", "prompts", "sessions"):
        records, _ = story.store.page(noun, Page())
        assert {record["project"] for record in records} == names
    found = search(story.store, Query("lamp"), datetime.now(UTC))
    assert {row.project for row in found.rows} == names
    assert "[/nowhere/a/lamp]" in search_text(found, UTC)
    with pytest.raises(AmbiguousProject):
        story.store.find_project("lamp")
    assert story.store.find_project("/nowhere/a/lamp")


def test_a_preview_without_a_store_knows_the_projects_too(tmp_path: Path) -> None:
    told = saved(tmp_path, chat_in("/nowhere/hut", 1).bash("git remote -v", REMOTES))
    report = import_transcripts(None, [told], import_options())
    assert list(report.projects) == [LAMP]


def test_a_directory_of_an_earlier_session_is_known_from_the_store(tmp_path: Path) -> None:
    target = ImportTarget(tmp_path / "data")
    told = chat_in("/nowhere/hut", 1).bash("git remote -v", REMOTES)
    target.run(saved(tmp_path / "t", told))
    target.run(saved(tmp_path / "t", chat_in("/nowhere/hut/.worktrees/x", 2)))
    with closing(Store.open(target.layout.database, target.layout.backups)) as store:
        assert [project["sessions"] for project in store.projects()] == [2]
