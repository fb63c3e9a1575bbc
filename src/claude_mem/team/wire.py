"""What client and server agree on: how a turn is named and sent.

A turn travels as the rows of an export that belong to it, without ids and paths of the machine that
recorded it; so what the server returns can be imported like any export.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from claude_mem.types import Json

Values = Mapping[str, Any]

MAX_ITEMS = 200  # of a push
MAX_BODY = 8 * 1024 * 1024
MAX_RECORD = 1024 * 1024  # bytes of a turn; a longer record is not sent
TABLES = ("sdk_sessions", "user_prompts", "session_summaries", "observations", "turn_records")
# Ids and paths of the machine, and what only the worker there needs.
LOCAL_COLUMNS = frozenset((
    "id", "turn_id", "session_id", "project_id", "memory_session_id", "parent_turn",
    "project_dir", "transcript_path", "start_context", "provider", "provider_session_id",
    "outside",
))  # fmt: skip
SCOPES = ("read", "write", "admin")
FACT_KINDS = ("rule", "decision", "command", "fault", "place")  # those that outlast a session
MAX_FACTS = 1_000  # of a user in a project
MAX_SOURCES = 100  # turns of a fact


@dataclass(frozen=True, slots=True)
class TurnItem:
    """A turn as it is pushed. Of two versions the one that lost more to forgetting wins, then the
    later one, then that with the greater hash: every order of arrival leads to the same result."""

    uid: str
    version: int  # milliseconds
    sealed: int
    rows: tuple[dict[str, Json], ...]
    is_restored: bool = False  # after forgetting was undone

    @property
    def hash(self) -> str:
        return rows_hash(self.rows)

    def as_json(self) -> dict[str, Json]:
        return {
            "kind": "turn",
            "uid": self.uid,
            "version": self.version,
            "sealed": self.sealed,
            "hash": self.hash,
            "restored": self.is_restored,
            "rows": list(self.rows),
        }


@dataclass(frozen=True, slots=True)
class Tombstone:
    uid: str
    at_epoch: int

    def as_json(self) -> dict[str, Json]:
        return {"kind": "tombstone", "uid": self.uid, "at_epoch": self.at_epoch}


@dataclass(frozen=True, slots=True)
class FactItem:
    """A fact of a project that holds, in the words of its user."""

    kind: str
    subject: str
    value: str
    scope: str
    origin: str
    version: int  # milliseconds: when it was last stated
    is_restored: bool = False  # after it was ended
    sources: tuple[str, ...] = ()  # uids of turns, sorted

    @property
    def uid(self) -> str:
        """The same on every machine of the user."""
        return _digest("\0".join(("fact", self.kind, self.scope, self.subject, self.value)))

    @property
    def hash(self) -> str:
        return _digest("\0".join((self.origin, str(self.version), *self.sources)))

    def as_json(self) -> dict[str, Json]:
        return {
            "kind": "fact",
            "uid": self.uid,
            "version": self.version,
            "restored": self.is_restored,
            "sources": list(self.sources),
            "fact": {
                "kind": self.kind,
                "subject": self.subject,
                "value": self.value,
                "scope": self.scope,
                "origin": self.origin,
            },
        }


Item = TurnItem | Tombstone | FactItem


def turn_uid(content_session_id: str, prompt_id: str) -> str:
    """The same on every machine that has the turn."""
    return _digest(f"{content_session_id}\0{prompt_id}")


def session_uid(content_session_id: str) -> str:
    return _digest(content_session_id)


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=16).hexdigest()


def rows_hash(rows: Sequence[Mapping[str, Json]]) -> str:
    """Hashes the rows without that of the session, which changes with its later turns."""
    own = [row for row in rows if row.get("table") != "sdk_sessions"]
    text = json.dumps(own, ensure_ascii=True, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def digest_of(pairs: Sequence[tuple[str, str]]) -> str:
    """Returns the digest of all turns, as (uid, hash): whether both sides hold the same."""
    joined = "".join(f"{uid}{hash_}" for uid, hash_ in sorted(pairs))
    return hashlib.sha256(joined.encode()).hexdigest()
