"""The points at which tests kill a process do nothing in an installed package."""

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import claude_mem

PACKAGE = Path(str(claude_mem.__file__)).parent
FAULT_INJECTION = "src/claude_mem/hook/fault_injection.py"
_PUT = """
import sys
sys.path.insert(0, sys.argv[1])
from claude_mem.hook import spooling
spooling.put(sys.argv[2].encode(), spooling.header(b"claude", b"Stop", 1, b"/"), b"{}")
"""


def put(directory: Path, marker: Path) -> int:
    """Spools an event with the package in the directory; the exit code."""
    data = marker.parent / "data"
    return subprocess.run(
        [sys.executable, "-I", "-S", "-c", _PUT, directory, data],
        env={"CLAUDE_MEM_FAULT": f"hook.after_rename:{marker}"},
    ).returncode


def test_a_wheel_does_not_contain_what_kills() -> None:
    root = PACKAGE.parents[1]
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))
    assert FAULT_INJECTION in project["tool"]["hatch"]["build"]["targets"]["wheel"]["exclude"]
    readers = [path for path in PACKAGE.rglob("*.py") if "CLAUDE_MEM_FAULT" in path.read_text()]
    assert readers == [root / FAULT_INJECTION]


def test_without_it_the_environment_neither_kills_nor_deletes(tmp_path: Path) -> None:
    marker, installed = tmp_path / "armed", tmp_path / "installed"
    marker.touch()
    leave_out = shutil.ignore_patterns("fault_injection.py", "__pycache__")
    shutil.copytree(PACKAGE / "hook", installed / "claude_mem/hook", ignore=leave_out)
    for name in ("__init__.py", "paths.py"):
        shutil.copy(PACKAGE / name, installed / "claude_mem" / name)
    assert put(installed, marker) == 0
    assert marker.exists()
    assert len(list((tmp_path / "data/spool").glob("*.event"))) == 1
    assert put(PACKAGE.parent, marker) == -9, "the same in a source tree"


@pytest.mark.parametrize("content", [b"notes", b"hang on"])
def test_in_a_source_tree_a_file_with_content_is_not_deleted(
    tmp_path: Path, content: bytes
) -> None:
    marker = tmp_path / "notes.md"
    marker.write_bytes(content)
    assert put(PACKAGE.parent, marker) == 0
    assert marker.read_bytes() == content
