"""The environment of a project cannot choose the data directory, and so consent."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from claude_mem import daemon
from claude_mem.config import Layout, repository_of
from claude_mem.errors import WorkerError
from claude_mem.install.launcher import launcher_text, mcp_launcher_text, runs_newer, write_launcher
from claude_mem.install.plugin import SHIPPED
from claude_mem.server import client


def planted(directory: Path) -> Path:
    """A data directory of a repository, with launchers that leave a mark; returns the mark."""
    directory.mkdir(parents=True)
    mark = directory / "was-run"
    for name in ("hook", "mcp"):
        (directory / name).write_text(f"#!/bin/sh\ntouch '{mark}'\n")
        (directory / name).chmod(0o755)
    return mark


@pytest.mark.parametrize("text_of", [launcher_text, mcp_launcher_text])
def test_a_launcher_uses_the_directory_that_it_was_written_for(
    tmp_path: Path, text_of: Callable[[Layout, str], str]
) -> None:
    program = tmp_path / "python"
    program.write_text('#!/bin/sh\necho "$CLAUDE_MEM_DATA_DIR"\n')
    program.chmod(0o700)
    launcher = tmp_path / "launcher"
    launcher.write_text(text_of(Layout(tmp_path / "it's $HOME"), str(program)))
    done = subprocess.run(["sh", launcher, "claude", "Stop"], capture_output=True, text=True,
                          env={"CLAUDE_MEM_DATA_DIR": "/repository/.cache"})  # fmt: skip
    assert done.stdout == f"{tmp_path}/it's $HOME\n"


@pytest.mark.parametrize("script", ["hooks/run.sh", "mcp.sh"])
def test_the_plugin_runs_no_launcher_of_a_directory_that_the_environment_names(
    tmp_path: Path, script: str
) -> None:
    mark = planted(tmp_path / "repository" / ".cache")
    environ = {"HOME": str(tmp_path), "CLAUDE_MEM_DATA_DIR": str(mark.parent)}
    environ["PATH"] = os.environ["PATH"]
    subprocess.run(["sh", SHIPPED / "claudemem" / script], env=environ, capture_output=True)
    assert not mark.exists()


def test_no_worker_uses_a_data_directory_inside_a_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    layout = Layout(tmp_path / "repository" / ".cache" / "memory")
    (tmp_path / "repository" / ".git").mkdir(parents=True)
    environ = {"HOME": str(tmp_path), "CLAUDE_MEM_DATA_DIR": str(layout.root)}
    with pytest.raises(WorkerError, match="inside the repository"):
        client.start(layout, environ)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    assert daemon.main([]) == 1
    assert "inside the repository" in capsys.readouterr().err
    assert not layout.root.exists()


def test_a_home_directory_may_be_a_repository_and_a_link_hides_none(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    layout = Layout(tmp_path / ".claude-mem")
    assert repository_of(layout, {"HOME": str(tmp_path)}) is None
    assert repository_of(layout, {"HOME": "/home/dev"}) == tmp_path.resolve()
    project = tmp_path / "harbor"
    (project / ".git").mkdir(parents=True)
    layout.root.symlink_to(project)
    assert repository_of(layout, {"HOME": str(tmp_path)}) == project.resolve()


def test_only_a_launcher_that_nobody_else_can_read_replaces_the_worker(tmp_path: Path) -> None:
    package = tmp_path / "claude_mem"
    (package / "hook").mkdir(parents=True)
    (package / "__init__.py").write_text('__version__ = "99.0"\n')
    script = package / "hook" / "__main__.py"
    script.write_text("")
    layout = Layout(tmp_path / "data")
    layout.create()
    text = write_launcher(layout).read_text()
    own_script = text.split(" -I -S ")[1].split(" ")[0]
    layout.launcher.write_text(text.replace(own_script, str(script)))
    assert runs_newer(layout), "as a newer installation writes it"
    layout.launcher.chmod(0o755)
    assert not runs_newer(layout), "as a repository has it"
