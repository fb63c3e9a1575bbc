"""Facts that hold: checked, stored in the name of their person, and listed with it.

A fact that its person ended has a tombstone, as a turn that was forgotten. It holds again if it was
stated after that, or if the end was undone.
"""

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal

from claude_mem.errors import BadInput
from claude_mem.redaction import Redactor
from claude_mem.team.server.projects import QuotaExceeded, TeamProject
from claude_mem.team.wire import FACT_KINDS, MAX_FACTS, MAX_SOURCES, FactItem
from claude_mem.types import Json

if TYPE_CHECKING:
    from claude_mem.team.server.database import Connection, Person

MAX_TEXT, MAX_UID = 2_000, 64
MAX_LISTED = 200
ORIGINS = ("person", "agent", "outside")

Outcome = Literal["stored", "forgotten"]


def read_fact(item: dict[str, Json], redactor: Redactor) -> FactItem:
    """Raises BadInput."""
    fact, version = item.get("fact"), item.get("version")
    if not isinstance(fact, dict) or not isinstance(version, int) or not 0 <= version < 1 << 53:
        raise BadInput("a fact needs its values and a version", "fact")
    texts: dict[str, str] = {}
    for name in ("kind", "subject", "value", "scope", "origin"):
        value = fact.get(name)
        if not isinstance(value, str) or len(value) > MAX_TEXT:
            raise BadInput(f"{name} must be a text of at most {MAX_TEXT} characters", name)
        texts[name] = value.replace("\0", " ").encode("utf-8", "replace").decode()
    if texts["kind"] not in FACT_KINDS or texts["origin"] not in ORIGINS or not texts["value"]:
        raise BadInput("a fact has an unknown kind or origin, or no value", "kind")
    if texts["kind"] == "rule" and texts["origin"] != "person":
        raise BadInput("only a person makes a rule", "origin")
    read = FactItem(**texts, version=version, is_restored=item.get("restored") is True,
                    sources=_sources(item))  # fmt: skip
    if read.uid != item.get("uid"):
        raise BadInput("the uid of a fact does not match its values", "uid")
    for name in ("subject", "value", "scope"):
        if redactor.redact(texts[name]) != texts[name]:
            raise BadInput("a fact contains a secret", name)
    return read


def _sources(item: dict[str, Json]) -> tuple[str, ...]:
    """None if a client that does not send them stated the fact."""
    uids = item.get("sources") or []
    if not isinstance(uids, list) or len(uids) > MAX_SOURCES:
        raise BadInput(f"sources must be a list of at most {MAX_SOURCES} uids", "sources")
    for uid in uids:
        if not isinstance(uid, str) or len(uid) > MAX_UID or not (uid.isascii() and uid.isalnum()):
            raise BadInput("sources must be uids of turns", "sources")
    return tuple(str(uid) for uid in uids)


def store_facts(
    connection: "Connection",
    person: "Person",
    project: TeamProject,
    facts: Sequence[FactItem],
    ended: Iterable[str],
) -> dict[str, Outcome]:
    """What became of each, by uid. Tombstones are stored already. Raises QuotaExceeded."""
    place = (project.id, person.id)
    connection.execute(
        "DELETE FROM facts WHERE project_id = %s AND person_id = %s AND uid = ANY (%s)",
        (*place, list(ended)),
    )
    if not facts:
        return {}
    uids = [fact.uid for fact in facts]
    connection.execute(
        "DELETE FROM tombstones t USING unnest(%s::text[], %s::bigint[], %s::bool[])"
        " f(uid, version, restored) WHERE t.project_id = %s AND t.person_id = %s"
        " AND t.uid = f.uid AND (f.restored OR f.version > t.at_epoch)",
        (uids, [fact.version for fact in facts], [fact.is_restored for fact in facts], *place),
    )
    rows = connection.execute(
        "SELECT uid FROM tombstones WHERE project_id = %s AND person_id = %s AND uid = ANY (%s)",
        (*place, uids),
    )
    forgotten = {row[0] for row in rows}
    _insert(connection, place, [fact for fact in facts if fact.uid not in forgotten])
    count = connection.execute(
        "SELECT count(*) FROM facts WHERE project_id = %s AND person_id = %s", place
    ).fetchone()
    if count is not None and count[0] > 2 * MAX_FACTS:
        raise QuotaExceeded(project.name, "facts of a person", 2 * MAX_FACTS)
    return {uid: "forgotten" if uid in forgotten else "stored" for uid in uids}


def _insert(connection: "Connection", place: tuple[int, str], facts: Sequence[FactItem]) -> None:
    columns = [
        [fact.uid for fact in facts],
        [fact.version for fact in facts],
        *([getattr(fact, name) for fact in facts]
          for name in ("kind", "subject", "value", "scope", "origin")),
        [json.dumps(fact.sources) for fact in facts],
    ]  # fmt: skip
    connection.execute(
        "INSERT INTO facts SELECT DISTINCT ON (f.uid) %s, %s, f.* FROM unnest(%s::text[],"
        " %s::bigint[], %s::text[], %s::text[], %s::text[], %s::text[], %s::text[], %s::text[])"
        " f(uid, version, kind, subject, value, scope, origin, sources)"
        " ORDER BY f.uid, f.version DESC"
        " ON CONFLICT (project_id, person_id, uid) DO UPDATE SET version = excluded.version,"
        " origin = excluded.origin, sources = excluded.sources"
        " WHERE excluded.version >= facts.version",
        (*place, *columns),
    )


def list_facts(connection: "Connection", projects: Iterable[int]) -> list[dict[str, Json]]:
    """Lists facts with whose they are; rules first, then the latest."""
    rows = connection.execute(
        "SELECT f.uid, f.kind, f.subject, f.value, f.scope, f.origin, f.version, p.name,"
        " f.person_id = person(), f.project_id FROM facts f JOIN people p ON p.id = f.person_id"
        " WHERE f.project_id = ANY (%s)"
        " ORDER BY f.kind <> 'rule', f.kind <> 'decision', f.version DESC, f.uid LIMIT %s",
        (list(projects), MAX_LISTED),
    )
    names = ("uid", "kind", "subject", "value", "scope", "origin", "last_seen_epoch", "owner",
             "is_own", "project_id")  # fmt: skip
    return [dict(zip(names, row, strict=True)) for row in rows]
