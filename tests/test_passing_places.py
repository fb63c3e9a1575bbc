"""An installation that runs from a cache or a temporary directory leaves nothing that names it."""

import asyncio
import json
import shlex
import sys
from pathlib import Path

import pytest

from claude_mem import __version__, daemon, distribution
from claude_mem.distribution import install_command, passing_place, requirement
from claude_mem.install.launcher import launcher_parts
from claude_mem.worker.lock import WorkerLock
from tests.conftest import Home
from tests.test_upgrade import Installation

TAG = "Signature: 8a477f597d28d172789f06886806bc55\n"
HOME = Path("/home/dev/.claude-mem")


@pytest.fixture
def cached(tmp_path: Path, home: Home) -> Installation:
    """A copy as `uvx` leaves it; the machine has no uv, pipx or agent."""
    cache = tmp_path / "cache"
    (cache / "archive-v0").mkdir(parents=True)
    (cache / "CACHEDIR.TAG").write_text(TAG)
    home.environment |= {"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin", "CLAUDE_CODE_PATH": "/no/x"}
    (tmp_path / "bin").mkdir()
    return Installation.make(cache / "archive-v0" / "x")


def put_uv(tmp_path: Path, lasting: Installation) -> Path:
    """What uv does: it installs the command of an environment that stays. Returns its log."""
    log, tools = tmp_path / "uv.log", tmp_path / "tools"
    tools.mkdir()
    installed = f'#!/bin/sh\nexec {lasting.python} -m claude_mem "$@"\n'
    uv = tmp_path / "bin" / "uv"
    uv.write_text(
        f'#!/bin/sh\necho "$PATH $*" >>{log}\n'
        f'if [ "$2" = dir ]; then echo {tools}; exit; fi\n'
        f"printf %s {shlex.quote(installed)} >{tools}/claude-mem && chmod +x {tools}/claude-mem\n"
    )
    uv.chmod(0o755)
    return log


def settings_file(home: Home) -> Path:
    return home.path / ".claude" / "settings.json"


def test_install_from_a_cache_installs_itself_where_it_stays(
    home: Home, cached: Installation, tmp_path: Path
) -> None:
    home.layout.launcher.unlink()
    lasting = Installation.make(tmp_path / "lasting")
    log = put_uv(tmp_path, lasting)
    home.environment["PATH"] = f"{cached.python.parent}:{home.environment['PATH']}"
    preview = cached.command(home, "install", "--scope", "user", "--dry-run")
    assert "Would first run uv tool install" in preview.stdout and not log.exists()
    done = cached.command(home, "install", "--scope", "user", "--yes")
    assert done.returncode == 0, done.stderr
    assert "is in the cache" in done.stdout and "Added our hooks" in done.stdout
    path, _, arguments = log.read_text().splitlines()[0].partition(" ")
    assert arguments.startswith("tool install ") and str(cached.root) not in path
    assert launcher_parts(home.layout) == (lasting.python, lasting.package / "hook/__main__.py")
    written = [settings_file(home), home.layout.launcher, home.layout.mcp_launcher]
    assert not [p for p in written if str(cached.root) in p.read_text()]
    assert str(cached.root) not in home.layout.environment.read_text()


def test_install_from_a_cache_is_refused_with_the_command_where_no_tool_is_found(
    home: Home, cached: Installation, tmp_path: Path
) -> None:
    before = home.layout.launcher.read_bytes()
    done = cached.command(home, "install", "--scope", "user", "--yes")
    assert done.returncode == 1
    assert f"this copy is in {tmp_path / 'cache'}" in done.stderr
    assert "-m venv" in done.stderr and "claude-mem install" in done.stderr
    failing = tmp_path / "bin" / "uv"
    failing.write_text("#!/bin/sh\nexit 2\n")
    failing.chmod(0o755)
    done = cached.command(home, "install", "--scope", "user", "--yes")
    assert done.returncode == 1 and "`uv tool install" in done.stderr
    assert not settings_file(home).exists() and home.layout.launcher.read_bytes() == before


def test_a_worker_from_a_cache_keeps_the_launcher_of_an_installation_that_stays(
    home: Home, cached: Installation
) -> None:
    before = home.layout.launcher.read_bytes()
    done = cached.command(home, "worker", "start")
    assert done.returncode == 0, done.stderr
    assert home.layout.launcher.read_bytes() == before


def test_doctor_finds_a_launcher_in_a_cache(home: Home, cached: Installation) -> None:
    home.layout.launcher.unlink()
    assert cached.command(home, "worker", "start").returncode == 0
    rows = json.loads(home.command("doctor", "--json").stdout)
    (check,) = [row for row in rows if row["check"] == "interpreter"]
    assert check["verdict"] == "wrong" and str(cached.python) in check["found"]
    assert check["mend"] == "claude-mem install"
    rows = json.loads(cached.command(home, "doctor", "--json").stdout)
    (check,) = [row for row in rows if row["check"] == "interpreter"]
    assert check["mend"].endswith("then its claude-mem install")


@pytest.mark.parametrize(
    ("prefix", "place"),
    [
        ("/tmp/try", "/tmp"),
        ("/var/tmp/a/b", "/var/tmp"),
        ("/home/dev/.local/pipx/venvs/claudemem", None),
        ("/home/dev/.cache/pypoetry/virtualenvs/app", None),
    ],
)
def test_a_temporary_directory_does_not_stay(prefix: str, place: str | None) -> None:
    python, script = Path(prefix, "bin", "python"), Path(prefix, "lib", "claude_mem")
    assert passing_place(python, script, HOME) == (Path(place) if place else None)
    assert passing_place(python, script, Path(prefix, "data")) is None


def test_an_environment_that_is_tagged_itself_stays(tmp_path: Path) -> None:
    """`uv venv` and `uv tool install` tag every environment."""
    (tmp_path / "CACHEDIR.TAG").write_text(TAG)
    assert passing_place(tmp_path / "bin" / "python", tmp_path / "lib", tmp_path / "data") is None
    inner = tmp_path / "archive-v0" / "x"
    python, script = inner / "bin" / "python", inner / "lib"
    assert passing_place(python, script, tmp_path / "data") == tmp_path
    assert passing_place(Path("/usr/bin/python3"), script, tmp_path / "data") == tmp_path
    (tmp_path / "CACHEDIR.TAG").write_text("not a tag")
    assert passing_place(python, script, tmp_path / "data") is None


def test_the_cache_of_an_older_pipx_does_not_stay(tmp_path: Path) -> None:
    venv = tmp_path / "pipx" / ".cache" / "0a0"
    venv.mkdir(parents=True)
    python = venv / "bin" / "python"
    assert passing_place(python, venv / "lib", tmp_path) is None
    (venv / "pipx_metadata.json").touch()
    assert passing_place(python, venv / "lib", tmp_path) == venv.parent


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ({"url": "file:///src/claude%20mem", "dir_info": {"editable": True}},
         "/src/claude mem[team]"),
        ({"url": "file:///d/claudemem-0.1.0-py3-none-any.whl", "archive_info": {}},
         "/d/claudemem-0.1.0-py3-none-any.whl[team]"),
        ({"url": "https://x.example/c.git", "vcs_info": {"vcs": "git", "commit_id": "abc"}},
         "claudemem[team] @ git+https://x.example/c.git@abc"),
        ({}, f"claudemem[team]=={__version__}"),
    ],
    ids=["checkout", "wheel", "repository", "index"],
)  # fmt: skip
def test_an_extra_is_installed_from_where_this_copy_came_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: dict[str, object], expected: str
) -> None:
    record = tmp_path / "claudemem-0.1.0.dist-info" / "direct_url.json"
    record.parent.mkdir()
    record.write_text(json.dumps(source))
    monkeypatch.syspath_prepend(tmp_path)
    assert requirement("team") == expected
    words = shlex.split(install_command("team"))
    assert words[:4] == [sys.executable, "-m", "pip", "install"] and words[-1] == expected
    assert ("--editable" in words) == ("dir_info" in source)


def test_a_worker_ends_when_its_package_is_gone_but_not_while_it_is_replaced(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "package"
    entry = package / "__init__.py"
    package.mkdir()
    entry.touch()
    monkeypatch.setattr(distribution, "PACKAGE", package)
    monkeypatch.setattr(daemon, "FILES_CHECK_SECONDS", 0.0)
    lock = WorkerLock.acquire(home.layout)
    assert lock is not None

    async def watch() -> None:
        stopping = asyncio.Event()
        watching = asyncio.create_task(daemon.watch_files(home.layout, lock, stopping))
        entry.unlink()
        await asyncio.sleep(0)  # one check
        entry.touch()
        for _ in range(3):
            await asyncio.sleep(0)
        assert not watching.done()
        entry.unlink()
        await watching
        assert stopping.is_set()

    asyncio.run(watch())
    lock.release()
