"""A test run that fails when any process of it attempted a connection beyond this machine.

pytest loads it through `tests/conftest.py`. The process that pytest was started as begins the
watch; what it starts is watched with it, so xdist's workers and nested runs only look.
"""

import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.network_watch import Attempt, CannotWatchError, NetworkWatch, attempts

_RECORD, _REFUSED = "CLAUDE_MEM_TEST_NETWORK_RECORD", "CLAUDE_MEM_TEST_NETWORK_UNWATCHED"


@dataclass(frozen=True, slots=True)
class WatchedRun:
    """The record, and where in it this run begins."""

    record: Path
    begin: int = 0
    nested: bool = False

    def beyond(self) -> list[Attempt]:
        """What a test provoked is that test's matter; in a nested run it is the run's."""
        provoked = set() if self.nested else set(_lines(self._provoked))
        found = attempts(self.record)[self.begin :]
        return [attempt for attempt in found if attempt.place not in provoked]

    def provoke(self, place: str) -> None:
        """Said by a test before it has something attempt this."""
        with self._provoked.open("a") as file:
            file.write(f"{place}\n")

    @property
    def _provoked(self) -> Path:
        return self.record.with_name("provoked")


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def current_run() -> WatchedRun | str:
    """The run that this process belongs to, or why there is none."""
    record = os.environ.get(_RECORD)
    return (
        WatchedRun(Path(record)) if record else os.environ.get(_REFUSED, "pytest did not begin it")
    )


def _begin(not_ours: Path | None, clients: Path) -> WatchedRun | str:
    if record := os.environ.get(_RECORD):
        return WatchedRun(Path(record), begin=len(attempts(Path(record))), nested=True)
    record_path = Path(tempfile.mkdtemp(prefix="claude-mem-network-")) / "record"
    try:
        NetworkWatch(record_path, not_ours, clients).begin()
    except CannotWatchError as reason:
        record_path.parent.rmdir()
        os.environ[_REFUSED] = str(reason)
        return str(reason)
    os.environ[_RECORD] = str(record_path)
    return WatchedRun(record_path)


_KEY = pytest.StashKey[WatchedRun | str]()


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # one of xdist's workers is watched with the rest
        from tests.agent_clients import ROOT
        from tests.real_client import bundled_client

        config.stash[_KEY] = _begin(not_ours=bundled_client(), clients=ROOT)


def pytest_sessionfinish(session: pytest.Session) -> None:
    run = session.config.stash.get(_KEY, "")
    if isinstance(run, WatchedRun) and run.beyond():
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    run = config.stash.get(_KEY, "")
    if isinstance(run, str):
        terminalreporter.write_line(f"network: not watched on this machine ({run})")
        return
    if beyond := run.beyond():
        terminalreporter.section("attempts to reach beyond this machine", red=True)
        for attempt in beyond:
            terminalreporter.write_line(f"{attempt.place}, by {attempt.process}")
    else:
        terminalreporter.write_line("network: no process of this run went beyond this machine")


def pytest_unconfigure(config: pytest.Config) -> None:
    run = config.stash.get(_KEY, "")
    if isinstance(run, WatchedRun) and not run.nested:
        shutil.rmtree(run.record.parent, ignore_errors=True)
