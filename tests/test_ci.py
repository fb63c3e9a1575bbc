"""What CI runs, and where."""

import os
import subprocess
from pathlib import Path

import pytest

RUN = Path(__file__).parent.parent / ".ci" / "run"
PROGRAMS = ("make", "node", "npm", "tsc", "chromium")  # made here: nothing is installed or tested


@pytest.mark.parametrize("name", ["checkout", "claude-mem"])
def test_ci_tests_a_directory_named_as_git_clone_names_it(tmp_path: Path, name: str) -> None:
    checkout, programs, log = tmp_path / name, tmp_path / "bin", tmp_path / "log"
    (checkout / ".ci").mkdir(parents=True)
    (checkout / ".ci" / "run").write_bytes(RUN.read_bytes())
    programs.mkdir()
    for program in PROGRAMS:
        path = programs / program
        path.write_text(f'#!/bin/sh\necho "$PWD\t$(echo *)\t$*" >>{log}\n')
        path.chmod(0o755)
    environment = {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "HOME": str(tmp_path)}
    kept = Path(".ci", "checkout", "claude-mem", ".venv") if name == "checkout" else Path(".venv")
    for file, stale in (("first", "second"), ("second", "first")):
        (checkout / stale).unlink(missing_ok=True)
        (checkout / file).touch()
        log.unlink(missing_ok=True)
        subprocess.run(["bash", checkout / ".ci" / "run"], env=environment, check=True, timeout=60)
        rows = [line.split("\t") for line in log.read_text().splitlines()]
        assert [target.split()[-1] for *_, target in rows] == ["compiled-tests", "test", "test-all"]
        assert {Path(directory).name for directory, *_ in rows} == {"claude-mem"}
        for _, files, _ in rows:
            assert file in files.split() and stale not in files.split()
        (checkout / kept).mkdir(exist_ok=True)
        assert (checkout / kept / "kept").exists() == (file == "second")
        (checkout / kept / "kept").touch()
