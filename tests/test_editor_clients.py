"""The example clients of docs/editors.md, through whole sessions against the real worker."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.seed_worker import SeedWorker, running_worker

EXAMPLES = Path(__file__).parent.parent / "examples"
DOCUMENT = Path(__file__).parent.parent / "docs" / "editors.md"
# What the client uses of Node's types, which an extension gets from @types/node.
NODE_TYPES = """
declare module "node:child_process" {
  export function execFile(file: string, args: string[], done: (error: Error | null) => void): void;
}
declare module "node:fs/promises" {
  export function readFile(path: string, encoding: "utf8"): Promise<string>;
}
declare module "node:os" { export function homedir(): string; }
declare module "node:path" { export function join(...parts: string[]): string; }
declare const process: { env: Record<string, string | undefined>; argv: string[] };
"""
OPTIONS = {
    "strict": True,
    "target": "es2022",
    "module": "es2022",
    "moduleResolution": "node",
    "lib": ["es2022", "dom"],
    "types": [],
    "outDir": ".",
}


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[SeedWorker]:
    with running_worker(tmp_path) as running:
        # The clients start the worker by the command, which is the one of this checkout.
        command = running.path / "bin" / "claude-mem"
        command.parent.mkdir()
        command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m claude_mem "$@"\n')
        command.chmod(0o755)
        running.environment["PATH"] = f"{command.parent}{os.pathsep}{os.environ['PATH']}"
        yield running


def live(worker: SeedWorker, command: list[str], directory: str, session: str) -> dict[str, Any]:
    done = subprocess.run(
        [*command, directory, session], capture_output=True, text=True, env=worker.env(), timeout=60
    )
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def gets_its_memory_back(worker: SeedWorker, command: list[str], directory: Path) -> None:
    directory.mkdir()
    first = live(worker, command, str(directory), "first")
    assert first["context"] == ""
    second = live(worker, command, str(directory), "second")
    assert "Make the harbour light blink twice" in second["context"]
    assert "light.py" in second["context"]
    assert second["matches"][0]["strength"] == "strong"
    assert "relay" in second["matches"][0]["snippet"]
    rows = worker.rows("SELECT content_session_id AS id, status, prompt_counter FROM sdk_sessions")
    assert rows == [
        {"id": "first", "status": "completed", "prompt_counter": 1},
        {"id": "second", "status": "completed", "prompt_counter": 1},
    ]


def test_the_python_client_gets_its_memory_back(worker: SeedWorker, tmp_path: Path) -> None:
    command = [sys.executable, str(EXAMPLES / "whole_session.py")]
    gets_its_memory_back(worker, command, tmp_path / "harbor")


@pytest.mark.extra
def test_the_typescript_client_gets_its_memory_back(worker: SeedWorker, tmp_path: Path) -> None:
    assert shutil.which("node") and shutil.which("tsc"), "install nodejs and node-typescript"
    build = tmp_path / "build"
    build.mkdir()
    (build / "node.d.ts").write_text(NODE_TYPES)
    (build / "package.json").write_text('{"type": "module"}')
    files = [str(build / "node.d.ts"), str(EXAMPLES / "whole_session.ts")]
    (build / "tsconfig.json").write_text(json.dumps({"compilerOptions": OPTIONS, "files": files}))
    compiled = subprocess.run(["tsc", "-p", str(build)], capture_output=True, text=True)
    assert compiled.returncode == 0, compiled.stdout
    gets_its_memory_back(worker, ["node", str(build / "whole_session.js")], tmp_path / "harbor")


@pytest.mark.parametrize("name", ["claude_mem_client.ts", "claude_mem_client.py"])
def test_the_document_shows_the_clients_as_they_are(name: str) -> None:
    language = {"ts": "typescript", "py": "python"}[name.rsplit(".", 1)[1]]
    code = (EXAMPLES / name).read_text()
    assert f"```{language}\n{code}```" in DOCUMENT.read_text()


@pytest.mark.parametrize("name", ["whole_session.ts", "whole_session.py"])
def test_the_document_shows_how_they_are_used(name: str) -> None:
    assert f"(../examples/{name})" in DOCUMENT.read_text()
