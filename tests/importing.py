"""Imports into a new store, and transcripts of every kind to import."""

import json
from contextlib import closing
from pathlib import Path
from typing import Any

from claude_mem.config import Layout
from claude_mem.intake.transcripts.import_options import ImportOptions
from claude_mem.intake.transcripts.import_report import Report
from claude_mem.intake.transcripts.importer import import_transcripts
from claude_mem.store import Store
from claude_mem.store.clock import now_ms
from tests.conftest import Home
from tests.contents import Contents, contents_of, memory_in
from tests.empty_database import put_empty_database
from tests.payloads import PROJECT_DIR
from tests.story import DAY
from tests.transcripts import OLD, SESSION, Chat, harbour, recently

OTHER_DIR = "/home/dev/lighthouse"
HIDDEN = "the cook's birthday"


def import_options(**changes: Any) -> ImportOptions:
    values: dict[str, Any] = {
        "own_root": "/home/dev/.claude-mem", "home": "", "keep_raw_since": now_ms() - 30 * DAY,
    }  # fmt: skip
    return ImportOptions(**{**values, **changes})


class ImportTarget:
    """A new store into which transcripts are imported."""

    def __init__(self, directory: Path) -> None:
        self.layout = Layout(directory)
        self.layout.create()
        put_empty_database(self.layout.database)

    def run(self, *files: Path, again: bool = False, processes: int = 1, **options: Any) -> Report:
        with closing(Store.open(self.layout.database, self.layout.backups)) as store:
            return import_transcripts(
                store, list(files), import_options(**options), again=again, processes=processes
            )

    @property
    def contents(self) -> Contents:
        return contents_of(self.layout.database)

    @property
    def memory(self) -> Contents:
        return memory_in(self.layout.database)


def import_alone(directory: Path, *files: Path) -> Contents:
    """The contents of a new store after one import of these files."""
    target = ImportTarget(directory)
    target.run(*files)
    return target.contents


def forked(origin: Chat, session: str) -> Chat:
    """The same lines under another session id, and one more turn."""
    fork = Chat(session, start=origin.now, cwd=origin.cwd)
    fork.lines = [line.replace(f'"{origin.session}"'.encode(), f'"{session}"'.encode())
                  for line in origin.lines]  # fmt: skip
    return fork.prompt("And the fog horn?").agent("The fog horn stays silent: `horn.mute` is set.")


def library(directory: Path) -> list[Path]:
    """One file of each kind: forks, copies, private prompts, old clients, several sessions."""
    origin = harbour()
    fork = forked(origin, "a-fork-whose-id-comes-last")
    early = forked(origin, "0-a-fork-whose-id-comes-first")
    copy = Chat("copy-of-all").raw(origin.data().replace(SESSION.encode(), b"copy-of-all"))
    secret = Chat("private", start=OLD + DAY).prompt(f"<private>{HIDDEN}</private>").agent("Yes.")
    secret.prompt("Paint the pier").edit(f"{PROJECT_DIR}/pier.py").agent("The pier is green now.")
    ancient = harbour("ancient", prompt_ids=False, cwd=OTHER_DIR, start=OLD - 90 * DAY)
    windows = Chat("windows", cwd="D:\\work\\harbor", start=OLD + 2 * DAY).prompt("Fix the crane")
    windows.edit("D:\\work\\harbor\\crane.py").agent(
        "The crane lifts again: `lift()` was inverted."
    )
    fresh = harbour("fresh", start=recently())
    mixed = Chat("mixed-1").prompt("Count the gulls").agent("There are 7 gulls on the pier.")
    mixed.raw(Chat("mixed-2", start=OLD + 500).prompt("Feed them").agent("They ate 3 fish.").data())
    chats = (origin, fork, early, copy, secret, ancient, windows, fresh, mixed)
    return [chat.save(directory / f"{chat.session}.jsonl") for chat in chats]


def run_import(home: Home, *arguments: str) -> dict[str, Any]:
    """The report of `claude-mem import --json`."""
    done = home.command("import", "--json", *arguments)
    assert done.returncode == 0, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return report
