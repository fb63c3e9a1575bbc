"""What the module of an agent declares: an `Agent`, whose functions know the formats of its client.

They are pure: `intake/` reads payloads and transcripts with them, `install/` attaches the agent
with them, and `server/hooks.py` answers its hooks.
"""

import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from claude_mem.agents.reading.fields import Fields
from claude_mem.hook.other_agents import Output
from claude_mem.types import Json

Payload = dict[str, Json]
NO_CONTEXT = Output()
Tested = Literal["real client", "sample payloads"]


@dataclass(frozen=True, slots=True)
class Normalised:
    """An event in the format of Claude Code's hooks."""

    kind: str
    payload: Payload


@dataclass(frozen=True, slots=True)
class TranscriptEvent:
    """An event of a past session, in the same format."""

    kind: str
    payload: Payload
    at_ms: int | None  # None where the transcript has no valid timestamp


@dataclass(frozen=True, slots=True)
class AgentEvent:
    name: str  # as the client names it
    kind: str  # as Claude Code names it; the installed hook passes it
    timeout: int = 30  # seconds; generous, for machines that are asleep or swapping
    matcher: str | None = None


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """Paths relative to the agent's directory, and to that of a project; "": there is none."""

    user: str = ""
    project: str = ""
    may_be_jsonc: bool = False  # the client also reads it under the name *.jsonc


@dataclass(frozen=True, slots=True)
class Entry:
    """An element of a list in a JSON file, such as `hooks.Stop`, or a member of an object."""

    place: tuple[str, ...]  # of the list, or of the member itself
    value: Json
    is_element: bool = True
    is_default: bool = False  # only where the file has no such member; it stays at the end


@dataclass(frozen=True, slots=True)
class TomlEntry:
    """A table `[parent.name]` with a command, in a TOML file."""

    parent: str
    name: str
    command: Path


# What a file has of ours: entries, a table, or the text of the whole file.
Ours = tuple[Entry, ...] | TomlEntry | str
Lines = list[Fields]
Events = list[TranscriptEvent]


@dataclass(frozen=True, slots=True)
class Transcripts:
    """How past sessions of an agent are recognised and read, without private text."""

    pattern: str  # relative to the agent's directory, or to its `data_home`
    # By the first line of a file, or by the one JSON object that it is.
    is_known: Callable[[Fields], bool] = lambda _: False
    read: Callable[[Lines, Path], Events] | None = None
    # Where it keeps them in a SQLite database: the JSON texts of a session, as `read` takes them.
    read_database: Callable[[sqlite3.Connection], Iterator[Lines]] | None = None


@dataclass(frozen=True, slots=True)
class Agent:
    name: str  # on the command line, and the dialect of its events
    title: str
    programs: tuple[str, ...]  # whose presence on the PATH means that it is installed
    home: str  # its directory, relative to the user's
    events: tuple[AgentEvent, ...]
    context: tuple[str, ...]  # the kinds of events that give the agent text
    tested: Tested
    # The events of a payload of its hooks; None: they are Claude Code's.
    normalise: Callable[[str, Fields], list[Normalised]] | None = None
    output: Output = NO_CONTEXT
    hooks: ConfigFile = ConfigFile()
    hooks_of: Callable[["Agent", Path], Ours] | None = None  # that run the launcher
    mcp: ConfigFile = ConfigFile()
    server_of: Callable[[Path], Ours] | None = None
    transcripts: Transcripts | None = None
    shell: tuple[str, ...] = ()  # variables of the commands that it runs
    rules: str = ""  # a rules file of a project, for clients whose hooks cannot give context
    rules_text: str = ""
    home_variable: str = ""  # that names its directory instead
    data_home: str = ""  # of transcripts, where that is not `home`
    advice: str = ""  # what the user has to do in the agent after the installation
    notes: tuple[str, ...] = ()
