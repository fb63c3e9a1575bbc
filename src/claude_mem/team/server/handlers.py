"""What each route does, in the name of the person whose token came with it."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, cast

from starlette.responses import Response

from claude_mem.errors import BadInput
from claude_mem.store.transfer.export_reader import LARGEST_NUMBER
from claude_mem.team.server import access, listing, projects
from claude_mem.team.server import facts as stored_facts
from claude_mem.team.server import turns as stored_turns
from claude_mem.team.server.database import Database, Person
from claude_mem.team.server.export import export as export_lines
from claude_mem.team.server.export_limits import EXPORT_SECONDS, Busy, Exports, SentFile
from claude_mem.team.server.metrics import Metrics
from claude_mem.team.server.received import ReceivedTurn, TurnReader
from claude_mem.team.server.search import MAX_LIMIT, TeamQuery
from claude_mem.team.server.search import search as find
from claude_mem.team.wire import MAX_ITEMS, FactItem, Tombstone
from claude_mem.types import Json

if TYPE_CHECKING:
    from claude_mem.team.server.database import Connection

Body = dict[str, Json]


@dataclass(frozen=True, slots=True)
class Call:
    database: Database
    person: Person
    body: Body
    reader: TurnReader
    metrics: Metrics
    exports: Exports


# People, tokens, projects


def me(call: Call) -> Json:
    with call.database.transaction(call.person) as connection:
        shared = projects.list_projects(connection)
    return {
        "person": call.person.name,
        "scopes": list(call.person.scopes),
        "token_id": call.person.token_id,
        "projects": [project.as_json() for project in shared],
    }


def share(call: Call) -> Json:
    key, name = _text(call.body, "key"), _text(call.body, "name", required=False)
    with call.database.transaction(call.person) as connection:
        project = projects.share_project(connection, key, name, call.body.get("record") is True)
    return project.as_json()


def invite(call: Call) -> Json:
    invitation = access.Invitation(
        person_name=_text(call.body, "name"),
        scopes=_texts(call.body, "scopes") or ("read", "write"),
        project_ids=_numbers(call.body, "projects"),
        role=_text(call.body, "role", required=False) or "writer",
        days=_number(call.body, "days", access.INVITATION_DAYS),
    )
    for scope in invitation.scopes:
        access.require(call.person, scope)
    with call.database.transaction(call.person) as connection:
        return {"code": access.invite(connection, invitation, call.person)}


def accept_invitation(call: Call) -> Json:
    """Accepts an invitation to more projects, by a person of this server."""
    with call.database.transaction(call.person) as connection:
        access.join_projects(connection, _text(call.body, "code"), call.person)
    return me(call)


def tokens(call: Call) -> Json:
    with call.database.transaction(call.person) as connection:
        return {"tokens": cast(Json, access.list_tokens(connection))}


def create_token(call: Call) -> Json:
    scopes = _texts(call.body, "scopes") or call.person.scopes
    name = _text(call.body, "name", required=False)
    days = _optional(call.body, "days")
    with call.database.transaction(call.person) as connection:
        return {"token": access.create_token(connection, call.person, name, scopes, days)}


def revoke_token(call: Call) -> Json:
    with call.database.transaction(call.person) as connection:
        access.revoke_token(connection, call.person, _text(call.body, "id"))
    return {"revoked": True}


def members(call: Call) -> Json:
    with call.database.transaction(call.person) as connection:
        project = projects.get_project(connection, _number(call.body, "project"))
        return {"members": cast(Json, projects.list_members(connection, project))}


def remove_member(call: Call) -> Json:
    access.require(call.person, "admin")
    with call.database.transaction(call.person) as connection:
        project = projects.get_project(connection, _number(call.body, "project"))
        projects.remove_member(connection, project, _text(call.body, "person"))
    return {"removed": True}


# Turns


def push(call: Call) -> Json:
    """The outcome of each item, in their order; a refused one says why and hinders no other."""
    items = call.body.get("items")
    if not isinstance(items, list) or len(items) > MAX_ITEMS:
        raise BadInput(f"items must be a list of at most {MAX_ITEMS}", "items")
    project_id = _number(call.body, "project")
    with call.database.transaction(call.person) as connection:
        project = projects.get_project(connection, project_id)
    if project.role == "reader":
        raise access.NotAllowed(f"you can only read the project {project.name}", is_known=True)
    refused: dict[int, str] = {}
    received: list[ReceivedTurn] = []
    tombstones: list[Tombstone] = []
    facts: list[FactItem] = []
    for place, item in enumerate(items):
        try:
            if not isinstance(item, dict):
                raise BadInput("an item must be an object", "items")
            if item.get("kind") == "tombstone":
                tombstones.append(Tombstone(_uid(item), _number(item, "at_epoch")))
            elif item.get("kind") == "fact":
                facts.append(stored_facts.read_fact(item, call.reader.redactor))
            else:
                received.append(call.reader.read(item, with_record=project.shares_record))
        except BadInput as error:
            refused[place] = str(error)
    prepared = stored_turns.prepare(received)
    with call.database.transaction(call.person) as connection:
        outcomes: dict[str, str] = {
            **stored_turns.store(connection, call.person, project, prepared, tombstones)
        }
        ended = [tombstone.uid for tombstone in tombstones]
        outcomes |= stored_facts.store_facts(connection, call.person, project, facts, ended)
    results: list[Json] = [
        {"outcome": "refused", "reason": refused[place]}
        if place in refused
        else {"outcome": outcomes.get(str(cast(Body, item)["uid"]), "forgotten")}
        for place, item in enumerate(items)
    ]
    call.metrics.items(str(cast(Body, result)["outcome"]) for result in results)
    return {"results": results}


def digest(call: Call) -> Json:
    with call.database.transaction(call.person) as connection:
        project = projects.get_project(connection, _number(call.body, "project"))
        uids = list(_texts(call.body, "uids")) if call.body.get("uids") is not None else None
        count, value = stored_turns.digest(connection, call.person, project, uids)
    return {"turns": count, "digest": value}


def search(call: Call) -> Json:
    body = call.body
    limit = min(MAX_LIMIT, max(1, _number(body, "limit", 8)))
    moment = _number(body, "now", 0)
    if moment > LARGEST_NUMBER:
        raise BadInput("now must be a moment in milliseconds", "now")
    now = datetime.fromtimestamp(moment / 1000, UTC) if moment else None
    with call.database.transaction(call.person) as connection:
        query = TeamQuery(
            text=_text(body, "query", required=False),
            projects=_selected(call, connection),
            limit=limit,
            since=_optional(body, "since"),
            until=_optional(body, "until"),
            types=_texts(body, "types"),
        )
        return {"results": cast(Json, find(connection, query, now or datetime.now(UTC)))}


def timeline(call: Call) -> Json:
    body = call.body
    before = min(listing.MAX_DEPTH, _number(body, "before", 10))
    after = min(listing.MAX_DEPTH, _number(body, "after", 10))
    with call.database.transaction(call.person) as connection:
        anchor = None
        if body.get("anchor") is not None:
            anchor = listing.find(connection, _number(body, "anchor"))
            selected: Sequence[int] = (cast(int, anchor["project_id"]),)
            moment = cast(int, anchor["created_at_epoch"])
        else:
            selected, moment = _selected(call, connection), _number(body, "moment")
        rows = listing.around(connection, selected, moment, before, after + (anchor is not None))
    return {"anchor": cast(Json, anchor), "results": cast(Json, rows)}


def turns(call: Call) -> Json:
    with call.database.transaction(call.person) as connection:
        rows = listing.full(connection, _numbers(call.body, "ids"))
    return {"turns": cast(Json, rows)}


def recent(call: Call) -> Json:
    with call.database.transaction(call.person) as connection:
        rows = listing.recent_of_others(
            connection, _selected(call, connection), _number(call.body, "limit", 20)
        )
    return {"results": cast(Json, rows)}


def facts(call: Call) -> Json:
    with call.database.transaction(call.person) as connection:
        rows = stored_facts.list_facts(connection, _selected(call, connection))
    return {"facts": cast(Json, rows)}


def tombstones(call: Call) -> Json:
    since = _text(call.body, "since", required=False) or None
    if since is not None:
        try:
            datetime.fromisoformat(since)
        except ValueError:
            raise BadInput("since must be a moment in ISO 8601", "since") from None
    with call.database.transaction(call.person) as connection:
        return listing.tombstones(connection, since)


def export(call: Call) -> Response:
    """Exports into a file at the speed of the database: a connection never waits for a reader."""
    with call.database.transaction(call.person) as connection:
        selected = projects.select_projects(connection, key=_key(call.body))
    slot = call.exports.take(call.person)
    try:
        file = slot.enter_context(TemporaryFile())  # noqa: SIM115
        with (
            call.exports.reading(),
            call.database.transaction(call.person, is_snapshot=True) as connection,
        ):
            deadline = time.monotonic() + EXPORT_SECONDS
            for line in export_lines(connection, selected, own=call.body.get("own") is True):
                file.write(line)
                if time.monotonic() > deadline:
                    raise Busy(f"the export took over {EXPORT_SECONDS} seconds: name a project")
        file.seek(0)
    except BaseException:
        slot.close()
        raise
    return SentFile(file, slot)


def _selected(call: Call, connection: "Connection") -> tuple[int, ...]:
    shared = projects.select_projects(
        connection, key=_key(call.body), ids=_numbers(call.body, "projects")
    )
    return tuple(project.id for project in shared)


# Values


def _key(body: Body) -> str | None:
    return _text(body, "project_key", required=False) or None


def _text(body: Body, name: str, *, required: bool = True) -> str:
    value = body.get(name)
    if value is None and not required:
        return ""
    if not isinstance(value, str) or (required and not value):
        raise BadInput(f"{name} must be a text", name)
    return value.replace("\0", "").encode("utf-8", "replace").decode()


def _texts(body: Body, name: str) -> tuple[str, ...]:
    value = body.get(name)
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise BadInput(f"{name} must be a list of texts", name)
    return tuple(str(item).replace("\0", "") for item in value)


def _number(body: Body, name: str, default: int | None = None) -> int:
    value = body.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 62:
        raise BadInput(f"{name} must be a number", name)
    return value


def _optional(body: Body, name: str) -> int | None:
    return None if body.get(name) is None else _number(body, name)


def _numbers(body: Body, name: str) -> tuple[int, ...]:
    value = body.get(name)
    if value is None:
        return ()
    if not isinstance(value, list) or len(value) > 1_000:
        raise BadInput(f"{name} must be a list of numbers", name)
    return tuple(_number({name: item}, name) for item in value)


def _uid(item: Body) -> str:
    value = item.get("uid")
    if not isinstance(value, str) or not 0 < len(value) <= 64 or not value.isalnum():
        raise BadInput("a tombstone needs a uid", "uid")
    return value
