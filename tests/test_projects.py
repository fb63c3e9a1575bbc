"""Which project a directory belongs to: the same wherever and however it is worked on."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claude_mem.intake.projects import Projects, identify, normalise
from claude_mem.intake.untrusted_files import LARGEST_FILE
from claude_mem.types import Project

ORIGIN = "https://github.com/dev/harbor.git"
KEY = "github.com/dev/harbor"
AUTHOR = {
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_SYSTEM": "/dev/null",
    "GIT_AUTHOR_NAME": "dev",
    "GIT_AUTHOR_EMAIL": "dev@example.org",
    "GIT_COMMITTER_NAME": "dev",
    "GIT_COMMITTER_EMAIL": "dev@example.org",
}


def git(directory: Path, *arguments: str) -> None:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    subprocess.run(
        ["git", *arguments],
        cwd=directory,
        env=environ | AUTHOR,
        check=True,
        capture_output=True,
        timeout=60,
    )


def git_output(directory: Path, *arguments: str) -> str:
    command = ["git", *arguments]
    return subprocess.run(command, cwd=directory, check=True, capture_output=True, text=True,
                          timeout=60).stdout.strip()  # fmt: skip


def make_repository(path: Path, origin: str | None = None) -> Path:
    path.mkdir(parents=True)
    git(path, "init", "-q")
    git(path, "commit", "-q", "--allow-empty", "-m", "begin")
    if origin is not None:
        git(path, "remote", "add", "origin", origin)
    return path.resolve()


def key(directory: Path, home: Path | None = None) -> str:
    return identify(str(directory), home).key


# The origin's URL


@pytest.mark.parametrize(
    "url",
    [
        "https://github.com/dev/harbor.git",
        "https://github.com/dev/harbor",
        "https://github.com/dev/harbor/",
        "https://github.com/dev/harbor.git/",
        "http://github.com/dev/harbor.git",
        "https://GitHub.com/dev/harbor.git",
        "https://dev@github.com/dev/harbor.git",
        "https://dev:word@github.com/dev/harbor.git",
        "https://github.com:443/dev/harbor.git",
        "https://dev:word@github.com:8443/dev/harbor.git",
        "ssh://git@github.com/dev/harbor.git",
        "ssh://git@github.com:2222/dev/harbor.git",
        "git+ssh://git@github.com/dev/harbor.git",
        "git://github.com/dev/harbor.git",
        "git@github.com:dev/harbor.git",
        "git@GITHUB.COM:dev/harbor",
        "git@github.com:/dev/harbor.git",
        "github.com:dev/harbor.git",
    ],
)
def test_every_way_to_write_an_origin_is_one_project(url: str) -> None:
    assert normalise(url) == KEY


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://gitlab.com/group/sub/harbor.git", "gitlab.com/group/sub/harbor"),
        ("https://github.com/dev/harbor.js", "github.com/dev/harbor.js"),
        ("https://github.com/dev/harbor.git.git", "github.com/dev/harbor.git"),
        ("https://github.com/Dev/Harbor", "github.com/Dev/Harbor"),
        ("ssh://git@[2001:db8::1]:22/dev/harbor", "[2001:db8::1]/dev/harbor"),
    ],
)
def test_what_tells_projects_apart_is_kept(url: str, expected: str) -> None:
    assert normalise(url) == expected


@pytest.mark.parametrize(
    "place",
    [
        "/srv/git/harbor.git",
        "../harbor",
        "./harbor",
        "~/harbor",
        "harbor",
        "file:///srv/git/harbor.git",
        "C:\\code\\harbor",
        "C:/code/harbor.git",
        "",
        " ",
        "https://github.com",
        "https://github.com/",
        "https://github.com/.git",
        "://",
        ":",
        "git@github.com:",
    ],
)
def test_an_origin_that_is_a_place_or_nothing_names_no_project(place: str) -> None:
    assert normalise(place) is None


@pytest.mark.parametrize(
    "url",
    [
        "https://dev:hunter22@github.com/dev/harbor.git",
        "https://dev:hun@ter22@github.com/dev/harbor.git",
        "ssh://hunter22@github.com/dev/harbor.git",
        "https://github.com/dev/harbor.git?private_token=hunter22",
        "https://hunter22@github.com/dev/harbor?access_token=hunter22#hunter22",
    ],
)
def test_no_part_of_a_password_is_in_the_key(url: str) -> None:
    assert normalise(url) == KEY


@given(st.text())
def test_normalising_never_fails(url: str) -> None:
    found = normalise(url)
    assert found is None or "/" in found


# Repositories


def test_the_key_is_the_origin_and_the_name_its_last_part(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "checkout", ORIGIN)
    assert identify(str(repository), None) == Project(KEY, "harbor")


def test_without_an_origin_the_key_is_the_root(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "harbor")
    assert identify(str(repository), None) == Project(str(repository), "harbor")


def test_another_remote_is_not_the_origin(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "harbor")
    git(repository, "remote", "add", "upstream", ORIGIN)
    assert key(repository) == str(repository)


def test_where_one_pushes_to_is_not_where_it_comes_from(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "harbor", ORIGIN)
    git(repository, "remote", "set-url", "--push", "origin", "git@example.org:fork.git")
    assert key(repository) == KEY


def test_two_clones_are_one_project_and_two_repositories_without_origin_are_two(
    tmp_path: Path,
) -> None:
    clones = [make_repository(tmp_path / name, ORIGIN) for name in ("a", "b")]
    assert key(clones[0]) == key(clones[1])
    others = [make_repository(tmp_path / name / "harbor") for name in ("c", "d")]
    assert key(others[0]) != key(others[1])


@pytest.mark.parametrize("origin", [ORIGIN, None])
def test_a_subdirectory_belongs_to_its_repository(tmp_path: Path, origin: str | None) -> None:
    repository = make_repository(tmp_path / "harbor", origin)
    below = repository / "src" / "deep"
    below.mkdir(parents=True)
    assert identify(str(below), None) == identify(str(repository), None)
    assert identify(str(below / "not" / "there"), None) == identify(str(repository), None)


@pytest.mark.parametrize("origin", [ORIGIN, None])
def test_a_worktree_belongs_to_its_main_repository(tmp_path: Path, origin: str | None) -> None:
    repository = make_repository(tmp_path / "harbor", origin)
    worktree = tmp_path / "elsewhere" / "feature"
    git(repository, "worktree", "add", "-q", str(worktree))
    (worktree / "src").mkdir()
    main = identify(str(repository), None)
    assert identify(str(worktree), None) == identify(str(worktree / "src"), None) == main


def test_a_worktree_of_a_bare_repository_belongs_to_it(tmp_path: Path) -> None:
    source, bare = make_repository(tmp_path / "source"), tmp_path / "harbor.git"
    git(tmp_path, "clone", "-q", "--bare", str(source), str(bare))
    git(bare, "remote", "remove", "origin")
    worktree = tmp_path / "feature"
    git(bare, "worktree", "add", "-q", str(worktree))
    assert key(worktree) == str(bare.resolve())


def add_submodule(tmp_path: Path, origin: str | None) -> tuple[Path, Path]:
    library = make_repository(tmp_path / "library")
    repository = make_repository(tmp_path / "harbor", ORIGIN)
    git(
        repository,
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "add",
        "-q",
        str(library),
        "lib",
    )
    submodule = repository / "lib"
    if origin is not None:
        git(submodule, "remote", "set-url", "origin", origin)
    return repository, submodule


def test_a_submodule_is_a_project_of_its_own(tmp_path: Path) -> None:
    repository, submodule = add_submodule(tmp_path, "https://github.com/dev/library.git")
    assert identify(str(submodule), None) == Project("github.com/dev/library", "library")
    assert key(repository) == KEY


def test_a_submodule_with_a_local_origin_is_its_own_root(tmp_path: Path) -> None:
    _, submodule = add_submodule(tmp_path, None)
    assert identify(str(submodule), None) == Project(str(submodule), "lib")


def test_a_repository_with_its_git_directory_elsewhere_is_still_one(tmp_path: Path) -> None:
    repository = tmp_path / "harbor"
    git(tmp_path, "init", "-q", "--separate-git-dir", str(tmp_path / "kept.git"), str(repository))
    git(repository, "remote", "add", "origin", ORIGIN)
    assert key(repository) == KEY


def test_a_link_to_a_repository_leads_to_it(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "harbor")
    link = tmp_path / "link"
    link.symlink_to(repository)
    assert key(link) == str(repository)


# The home


def test_a_repository_at_home_does_not_swallow_what_lies_below(tmp_path: Path) -> None:
    home = make_repository(tmp_path / "dev", "https://github.com/dev/dotfiles.git")
    plain = home / "notes"
    plain.mkdir()
    assert identify(str(plain), home) == Project(str(plain), "notes")
    assert identify(str(home), home) == Project(str(home), "dev")


def test_a_repository_below_home_counts(tmp_path: Path) -> None:
    home = make_repository(tmp_path / "dev", "https://github.com/dev/dotfiles.git")
    repository = make_repository(home / "work" / "harbor", ORIGIN)
    assert key(repository, home) == KEY


def test_a_home_that_is_a_link_is_known_by_where_it_leads(tmp_path: Path) -> None:
    home = make_repository(tmp_path / "dev", ORIGIN)
    (tmp_path / "link").symlink_to(home)
    (home / "notes").mkdir()
    assert Projects(tmp_path / "link").of(str(home / "notes")).key == str(home / "notes")


# No repository, or what is left of one


def test_a_directory_without_git_is_its_real_path(tmp_path: Path) -> None:
    plain = tmp_path / "notes"
    plain.mkdir()
    (tmp_path / "link").symlink_to(plain)
    real = Project(str(plain.resolve()), "notes")
    assert identify(str(plain), None) == identify(str(tmp_path / "link"), None) == real


def test_a_directory_that_is_gone_is_still_a_project(tmp_path: Path) -> None:
    assert identify(str(tmp_path / "gone"), None).name == "gone"


def test_the_root_of_the_file_system_has_a_name() -> None:
    assert identify("/", None) == Project("/", "/")


def test_no_directory_is_the_unknown_project() -> None:
    assert identify("", None) == Project("unknown", "unknown")


BROKEN = {
    "empty": b"",
    "nonsense": b"what is this",
    "leads nowhere": b"gitdir: /nowhere/at/all",
    "leads to nothing": b"gitdir:",
    "with a NUL": b"gitdir: /a\0b",
    "not UTF-8": b"gitdir: /\xff\xfe",
    "endless": b"gitdir: " + b"x" * 100_000,
    "leads to itself": b"gitdir: .git",
}


@pytest.mark.parametrize("content", BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_git_file_leaves_the_directory_a_project(tmp_path: Path, content: bytes) -> None:
    directory = tmp_path / "harbor"
    directory.mkdir()
    (directory / ".git").write_bytes(content)
    assert identify(str(directory), None) == Project(str(directory.resolve()), "harbor")


CONFIGS = {
    "missing": None,
    "empty": b"",
    "not UTF-8": b'[remote "origin"]\n\turl = \xff\n',
    "without value": b'[remote "origin"]\n\turl\n',
    "an empty url": b'[remote "origin"]\n\turl =\n',
    "of another section": b'[remote "upstream"]\n\turl = https://github.com/dev/harbor\n',
    "closed again": b'[remote "origin"]\n[core]\n\turl = https://github.com/dev/harbor\n',
    "NULs": b"\0" * 1000,
}


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS.keys())
def test_a_config_without_a_usable_origin_leaves_the_root(
    tmp_path: Path, config: bytes | None
) -> None:
    directory = tmp_path / "harbor"
    (directory / ".git").mkdir(parents=True)
    if config is not None:
        (directory / ".git" / "config").write_bytes(config)
    assert key(directory) == str(directory.resolve())


@pytest.mark.parametrize(
    "config",
    [
        '[remote "origin"]\n\turl = https://github.com/dev/harbor.git\n',
        '[Remote "origin"]\n  URL=https://github.com/dev/harbor.git\n',
        '[ remote "origin" ]\n\turl = "https://github.com/dev/harbor.git"\n',
        '[core]\n\tbare = false\r\n[remote "origin"]\r\n\turl = https://github.com/dev/harbor\r\n',
        '[remote "origin"]\n\tpushurl = b:c\n\turl = https://github.com/dev/harbor\n',
        '[remote "origin"]\n\tfetch = x\n\turl = https://github.com/dev/harbor\n\turl = b:c\n',
    ],
)
def test_the_config_may_be_written_as_git_allows(tmp_path: Path, config: str) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").write_bytes(config.encode())
    assert key(tmp_path) == KEY


def test_a_huge_config_is_read_to_a_limit(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    config = tmp_path / ".git" / "config"
    section = f'[remote "origin"]\n\turl = {ORIGIN}\n'
    config.write_text(section + "# x\n" * LARGEST_FILE)
    assert key(tmp_path) == KEY
    config.write_text("# x\n" * LARGEST_FILE + section)
    assert key(tmp_path) == str(tmp_path.resolve())


# Hostile repositories

READ_IN_ANOTHER_PROCESS = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (512 << 20, 512 << 20))
from claude_mem.intake.projects import identify
print(identify(sys.argv[1], None).key)
"""


def key_within_limits(directory: Path) -> str:
    """Read by a process that may neither wait for long nor take much memory."""
    done = subprocess.run(
        [sys.executable, "-c", READ_IN_ANOTHER_PROCESS, str(directory)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_fifo_as_config_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    os.mkfifo(tmp_path / ".git" / "config")
    assert key_within_limits(tmp_path) == str(tmp_path.resolve())


def test_a_fifo_as_git_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".git")
    assert key_within_limits(tmp_path) == str(tmp_path.resolve())


def test_a_fifo_as_commondir_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / ".git").write_text("gitdir: inner")
    os.mkfifo(tmp_path / "inner" / "commondir")
    assert key_within_limits(tmp_path) == str(tmp_path.resolve())


@pytest.mark.parametrize("name", [".git", ".git/config"])
def test_a_device_is_not_read(tmp_path: Path, name: str) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).symlink_to("/dev/zero")
    assert key_within_limits(tmp_path) == str(tmp_path.resolve())


@pytest.mark.parametrize("name", [".git", ".git/config"])
def test_of_a_sparse_file_only_the_beginning_is_read(tmp_path: Path, name: str) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    with (tmp_path / name).open("wb") as file:
        file.truncate(1_500_000_000)
    assert key_within_limits(tmp_path) == str(tmp_path.resolve())


@pytest.mark.parametrize(
    "url",
    [
        "https://" + "@" * 30_000,
        "https://" + "a@" * 15_000 + "/",
        "ssh://" + ":1" * 15_000,
        "@" * 30_000 + ":x",
        "a" * 30_000,
    ],
)
def test_a_url_of_30_kb_is_no_project(tmp_path: Path, url: str) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").write_text(f'[remote "origin"]\n\turl = {url}\n')
    assert key_within_limits(tmp_path) == str(tmp_path.resolve())


# What is no path on this machine


@pytest.mark.parametrize(
    ("directory", "name"),
    [
        ("C:\\Users\\dev\\harbor", "harbor"),
        ("C:/Users/dev/harbor/", "harbor"),
        ("\\\\server\\share\\harbor", "harbor"),
        ("harbor", "harbor"),
        ("./harbor", "harbor"),
    ],
)
def test_a_path_of_another_machine_is_not_looked_for_where_the_worker_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, directory: str, name: str
) -> None:
    monkeypatch.chdir(make_repository(tmp_path / "pier", ORIGIN))
    assert identify(directory, None) == Project(directory, name)


@pytest.mark.parametrize("directory", ["/a\0b", "/" + "x" * 5000, "/a/" * 3000, "/caf\udce9"])
def test_a_path_that_cannot_be_looked_up_is_still_a_project(directory: str) -> None:
    assert identify(directory, None).name


def test_links_that_lead_in_a_circle_are_still_a_project(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    assert identify(str(tmp_path / "a"), None).name == "a"


@given(st.text())
def test_whatever_a_directory_is_called_it_is_a_project(directory: str) -> None:
    found = identify(directory, None)
    assert found.key and found.name


# Memory of what was found


def test_a_project_is_found_once_until_a_session_starts_there(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "harbor")
    projects = Projects(None)
    assert projects.of(str(repository)).key == str(repository)
    git(repository, "remote", "add", "origin", ORIGIN)
    assert projects.of(str(repository)).key == str(repository)
    projects.drop_cached(str(repository))
    assert projects.of(str(repository)).key == KEY


def test_dropping_what_was_never_known_is_fine() -> None:
    Projects(None).drop_cached("/nowhere")
