"""Storing pushed turns and tombstones.

A push is one transaction and can be repeated: a turn is identified by its person and uid, and a
version that is not newer changes nothing. Pushes of one person to one project wait for each other,
so that no two of them decide about the same turn at once.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Literal

from claude_mem.index.text.documents import names_time
from claude_mem.team.server.embedding import similar_words, vectors_of
from claude_mem.team.server.projects import TeamProject, count_changes, random_id
from claude_mem.team.server.received import ReceivedTurn
from claude_mem.team.wire import Tombstone, digest_of

if TYPE_CHECKING:
    from claude_mem.team.server.database import Connection, Person

Outcome = Literal["stored", "unchanged", "older", "forgotten"]


@dataclass(slots=True)
class _Changes:
    turns: int = 0
    bytes: int = 0
    passages: int = 0


@dataclass(frozen=True, slots=True)
class _Stored:
    id: int
    order: tuple[int, int, str]
    bytes: int
    passages: int


@dataclass(frozen=True, slots=True)
class PreparedTurn:
    """A turn with what takes the processor long, and is done before the transaction begins."""

    turn: ReceivedTurn
    vectors: tuple[str, ...]
    pieces: tuple[bytes, ...]


def prepare(turns: Sequence[ReceivedTurn]) -> list[PreparedTurn]:
    texts = [[passage.text for passage in turn.passages] for turn in turns]
    vectors = iter(vectors_of([text for of_turn in texts for text in of_turn]))
    pieces = similar_words().pieces
    return [
        PreparedTurn(turn, tuple(islice(vectors, len(of_turn))), tuple(map(pieces, of_turn)))
        for turn, of_turn in zip(turns, texts, strict=True)
    ]


def store(
    connection: "Connection",
    person: "Person",
    project: TeamProject,
    turns: Sequence[PreparedTurn],
    tombstones: Sequence[Tombstone],
) -> dict[str, Outcome]:
    """What became of each turn, by uid. Raises QuotaExceeded, and then stores nothing."""
    connection.execute(
        "SELECT pg_advisory_xact_lock(hashtextextended(%s, %s))", (person.id, project.id)
    )
    changes = _Changes()
    uids = [prepared.turn.uid for prepared in turns]
    stored = _stored(connection, person, project, [*uids, *(t.uid for t in tombstones)])
    _apply_tombstones(connection, person, project, tombstones, stored, changes)
    restored = [p.turn.uid for p in turns if p.turn.is_restored]
    _restore(connection, person, project, restored)
    forgotten = _forgotten(connection, person, project, uids)
    outcomes: dict[str, Outcome] = {}
    accepted: list[PreparedTurn] = []
    for prepared in turns:
        outcome = _outcome(prepared.turn, stored.get(prepared.turn.uid), forgotten)
        outcomes[prepared.turn.uid] = outcome
        if outcome == "stored":
            accepted.append(prepared)
    _insert(connection, person, project, accepted, stored, changes)
    if changes.turns or changes.bytes:
        count_changes(connection, project.id, changes.turns, changes.bytes, changes.passages)
    return outcomes


def _outcome(turn: ReceivedTurn, stored: _Stored | None, forgotten: set[str]) -> Outcome:
    if turn.uid in forgotten:
        return "forgotten"
    if stored is None:
        return "stored"
    if stored.order[2] == turn.hash and stored.order[0] == turn.sealed:
        return "unchanged"
    return "stored" if (turn.sealed, turn.version, turn.hash) > stored.order else "older"


def _stored(
    connection: "Connection", person: "Person", project: TeamProject, uids: Sequence[str]
) -> dict[str, _Stored]:
    rows = connection.execute(
        "SELECT uid, id, sealed, version, hash, bytes, passages FROM turns"
        " WHERE project_id = %s AND person_id = %s AND uid = ANY (%s)",
        (project.id, person.id, list(uids)),
    )
    return {row[0]: _Stored(row[1], (row[2], row[3], row[4]), row[5], row[6]) for row in rows}


def _apply_tombstones(
    connection: "Connection",
    person: "Person",
    project: TeamProject,
    tombstones: Sequence[Tombstone],
    stored: dict[str, _Stored],
    changes: _Changes,
) -> None:
    if not tombstones:
        return
    connection.execute(
        "INSERT INTO tombstones (project_id, person_id, uid, at_epoch)"
        " SELECT %s, %s, t.uid, t.at_epoch FROM unnest(%s::text[], %s::bigint[]) t(uid, at_epoch)"
        " ON CONFLICT (project_id, person_id, uid) DO NOTHING",
        (project.id, person.id, [t.uid for t in tombstones], [t.at_epoch for t in tombstones]),
    )
    deleted = [stored.pop(t.uid) for t in tombstones if t.uid in stored]
    _delete(connection, project, deleted, changes)


def _delete(
    connection: "Connection", project: TeamProject, deleted: Sequence[_Stored], changes: _Changes
) -> None:
    if not deleted:
        return
    rows = connection.execute(
        "DELETE FROM turns WHERE project_id = %s AND id = ANY (%s) RETURNING session_id",
        (project.id, [turn.id for turn in deleted]),
    ).fetchall()
    connection.execute(
        "DELETE FROM sessions s WHERE project_id = %s AND id = ANY (%s) AND NOT EXISTS"
        " (SELECT 1 FROM turns t WHERE t.project_id = s.project_id AND t.session_id = s.id)",
        (project.id, list({row[0] for row in rows})),
    )
    changes.turns -= len(rows)
    changes.bytes -= sum(turn.bytes for turn in deleted)
    changes.passages -= sum(turn.passages for turn in deleted)


def _restore(
    connection: "Connection", person: "Person", project: TeamProject, uids: Sequence[str]
) -> None:
    if uids:
        connection.execute(
            "DELETE FROM tombstones WHERE project_id = %s AND person_id = %s AND uid = ANY (%s)",
            (project.id, person.id, list(uids)),
        )


def _forgotten(
    connection: "Connection", person: "Person", project: TeamProject, uids: Sequence[str]
) -> set[str]:
    rows = connection.execute(
        "SELECT uid FROM tombstones WHERE project_id = %s AND person_id = %s AND uid = ANY (%s)",
        (project.id, person.id, list(uids)),
    )
    return {row[0] for row in rows}


def _insert(
    connection: "Connection",
    person: "Person",
    project: TeamProject,
    turns: Sequence[PreparedTurn],
    stored: Mapping[str, _Stored],
    changes: _Changes,
) -> None:
    if not turns:
        return
    sessions = _save_sessions(connection, person, project, [p.turn for p in turns])
    ids: dict[str, int] = {}
    for prepared in turns:
        turn = prepared.turn
        previous = stored.get(turn.uid)
        ids[turn.uid] = previous.id if previous else random_id()
        changes.turns += previous is None
        changes.bytes += turn.bytes - (previous.bytes if previous else 0)
        changes.passages += len(turn.passages) - (previous.passages if previous else 0)
    connection.execute(
        "INSERT INTO turns (project_id, person_id, id, uid, session_id, number, created_at_epoch,"
        " version, sealed, hash, type, title, title_stems, words, size, bytes, passages, content)"
        " SELECT %s, %s, t.* FROM unnest(%s::bigint[], %s::text[], %s::bigint[], %s::int[],"
        " %s::bigint[], %s::bigint[], %s::int[], %s::text[], %s::text[], %s::text[], %s::text[],"
        " %s::int[], %s::int[], %s::int[], %s::int[], %s::text[]) t"
        " ON CONFLICT (project_id, id) DO UPDATE SET session_id = excluded.session_id,"
        " number = excluded.number, created_at_epoch = excluded.created_at_epoch,"
        " version = excluded.version, sealed = excluded.sealed, hash = excluded.hash,"
        " type = excluded.type, title = excluded.title, title_stems = excluded.title_stems,"
        " words = excluded.words, size = excluded.size, bytes = excluded.bytes,"
        " passages = excluded.passages, content = excluded.content",
        (project.id, person.id, *_columns([_turn_row(p.turn, ids, sessions) for p in turns])),
    )
    connection.execute(
        "DELETE FROM passages WHERE project_id = %s AND turn_id = ANY (%s)",
        (project.id, [ids[uid] for uid in ids if uid in stored]),
    )
    rows = [row for prepared in turns for row in _passage_rows(prepared, ids[prepared.turn.uid])]
    if rows:
        connection.execute(
            "INSERT INTO passages (project_id, turn_id, number, kind, words, names_time, text,"
            " terms, pieces, lexemes, embedding) SELECT %s, p.turn_id, p.number, p.kind, p.words,"
            " p.names_time, p.text, p.terms, p.pieces, p.lexemes::tsvector, p.vector::halfvec"
            " FROM unnest(%s::bigint[], %s::smallint[], %s::text[], %s::int[], %s::bool[],"
            " %s::text[], %s::bytea[], %s::bytea[], %s::text[], %s::text[])"
            " p(turn_id, number, kind, words, names_time, text, terms, pieces, lexemes, vector)",
            (project.id, *_columns(rows)),
        )


def _columns(rows: Sequence[Sequence[object]]) -> list[list[object]]:
    return [list(column) for column in zip(*rows, strict=True)]


def _turn_row(
    turn: ReceivedTurn, ids: Mapping[str, int], sessions: Mapping[str, int]
) -> tuple[object, ...]:
    document = turn.document
    return (
        ids[turn.uid], turn.uid, sessions[turn.session_uid], document.place,
        document.created_at_epoch, turn.version, turn.sealed, turn.hash, document.type,
        _clean(document.title), _clean(document.title_stems),
        sum(passage.words for passage in turn.passages), document.size, turn.bytes,
        len(turn.passages), turn.content,
    )  # fmt: skip


def _passage_rows(prepared: PreparedTurn, turn_id: int) -> list[tuple[object, ...]]:
    return [
        (turn_id, number, passage.kind, passage.words, names_time(passage.text), passage.text,
         passage.terms, pieces, passage.lexemes, vector)
        for number, (passage, vector, pieces) in enumerate(
            zip(prepared.turn.passages, prepared.vectors, prepared.pieces, strict=True)
        )
    ]  # fmt: skip


def _save_sessions(
    connection: "Connection",
    person: "Person",
    project: TeamProject,
    turns: Sequence[ReceivedTurn],
) -> dict[str, int]:
    """Saves sessions; returns their ids by uid. Of two versions the later one is kept."""
    newest: dict[str, ReceivedTurn] = {}
    for turn in sorted(turns, key=lambda turn: turn.version):
        newest[turn.session_uid] = turn
    rows = [
        (random_id(), uid, _clean(str(turn.session.get("title") or "")) or None,
         json.dumps(turn.session, separators=(",", ":")), turn.version)
        for uid, turn in newest.items()
    ]  # fmt: skip
    connection.execute(
        "INSERT INTO sessions (project_id, person_id, id, uid, title, content, version)"
        " SELECT %s, %s, s.* FROM"
        " unnest(%s::bigint[], %s::text[], %s::text[], %s::text[], %s::bigint[]) s"
        " ON CONFLICT (project_id, person_id, uid) DO UPDATE SET title = excluded.title,"
        " content = excluded.content, version = excluded.version"
        " WHERE excluded.version > sessions.version",
        (project.id, person.id, *_columns(rows)),
    )
    ids = connection.execute(
        "SELECT uid, id FROM sessions WHERE project_id = %s AND person_id = %s AND uid = ANY (%s)",
        (project.id, person.id, list(newest)),
    )
    return dict(ids.fetchall())


def _clean(text: str) -> str:
    return text.replace("\0", " ").encode("utf-8", "replace").decode()


def digest(
    connection: "Connection", person: "Person", project: TeamProject, uids: list[str] | None
) -> tuple[int, str]:
    """How many of these turns of the person the project holds, or of all, and their digest."""
    rows = connection.execute(
        "SELECT uid, hash FROM turns WHERE project_id = %s AND person_id = %s"
        " AND (%s::text[] IS NULL OR uid = ANY (%s))",
        (project.id, person.id, uids, uids),
    ).fetchall()
    return len(rows), digest_of(rows)
