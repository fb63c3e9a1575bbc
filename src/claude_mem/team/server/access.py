"""Who may use the server: people, their tokens, and invitations.

Tokens and codes are random; the database holds only their SHA-256.
"""

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from claude_mem.errors import BadInput, ClaudeMemError, NotFound
from claude_mem.team.server.database import Person
from claude_mem.team.server.schema import SCHEMA
from claude_mem.team.wire import SCOPES
from claude_mem.types import Json

if TYPE_CHECKING:
    from claude_mem.team.server.database import Connection

INVITATION_DAYS = 7
MAX_TOKEN_DAYS = 3650
ROLES = ("reader", "writer", "admin")


class NotAllowed(ClaudeMemError):
    """No valid token, or one without the scope that the request needs."""

    def __init__(self, message: str, *, is_known: bool) -> None:
        super().__init__(message)
        self.is_known = is_known


class _InvalidInvitation(NotFound):
    def __init__(self) -> None:
        super().__init__("the invitation is not valid: it is unknown, expired or was used")


@dataclass(frozen=True, slots=True)
class Invitation:
    person_name: str
    scopes: tuple[str, ...] = ("read", "write")
    project_ids: tuple[int, ...] = ()
    role: str = "writer"
    days: int = INVITATION_DAYS


def digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "replace")).digest()


def new_secret() -> str:
    return secrets.token_urlsafe(32)


def authenticate(connection: "Connection", token: str) -> Person:
    row = connection.execute(
        f"SELECT token_id::text, person_id::text, name, scopes FROM {SCHEMA}.authenticate(%s)",
        (digest(token),),
    ).fetchone()
    if row is None:
        raise NotAllowed(
            "the token is not valid: it is unknown, expired or revoked", is_known=False
        )
    return Person(row[1], row[2], tuple(row[3]), row[0])


def require(person: Person, scope: str) -> None:
    if scope not in person.scopes:
        raise NotAllowed(f"the token lacks the scope {scope}", is_known=True)


def check_invitation(invitation: Invitation) -> None:
    if not invitation.person_name.strip() or len(invitation.person_name) > 100:
        raise BadInput("name must have 1 to 100 characters", "name")
    check_scopes(invitation.scopes)
    if invitation.role not in ROLES:
        raise BadInput(f"role must be one of {', '.join(ROLES)}", "role")
    if not 0 < invitation.days <= 365:
        raise BadInput("days must be a number from 1 to 365", "days")


def check_scopes(scopes: Sequence[str]) -> None:
    if not scopes or not set(scopes) <= set(SCOPES):
        raise BadInput(f"scopes must be some of {', '.join(SCOPES)}", "scopes")


def invite(connection: "Connection", invitation: Invitation, by: Person | None) -> str:
    """The code, which can be used once."""
    check_invitation(invitation)
    code = new_secret()
    connection.execute(
        "INSERT INTO invitations (hash, person_name, scopes, project_ids, role, invited_by,"
        " expires_at) VALUES (%s, %s, %s, %s, %s, %s, now() + %s)",
        (digest(code), invitation.person_name.strip(), list(invitation.scopes),
         list(invitation.project_ids), invitation.role, by.id if by else None,
         timedelta(days=invitation.days)),
    )  # fmt: skip
    return code


def accept(connection: "Connection", code: str, machine: str) -> tuple[str, Person]:
    """A new person with their first token."""
    token = new_secret()
    row = connection.execute(
        "SELECT person_id::text, name, scopes FROM accept_invitation(%s, %s, %s)",
        (digest(code), digest(token), machine[:100]),
    ).fetchone()
    if row is None:
        raise _InvalidInvitation()
    return token, Person(row[0], row[1], tuple(row[2]))


def join_projects(connection: "Connection", code: str, person: Person) -> None:
    """Makes the person of the transaction a member of the projects of an invitation."""
    row = connection.execute("SELECT join_projects(%s)", (digest(code),)).fetchone()
    if row is None or row[0] is None:
        raise _InvalidInvitation()
    if missing := sorted(set(row[0]) - set(person.scopes)):
        # The transaction ends here, and the invitation can still be used.
        reason = f"the invitation gives the scope {missing[0]}, which the token of this machine"
        raise NotAllowed(
            f"{reason} lacks: `claude-mem team leave`, then join with the invitation", is_known=True
        )


def create_token(
    connection: "Connection", person: Person, name: str, scopes: Sequence[str], days: int | None
) -> str:
    """Creates a token for another machine of the same person; it never may more, nor lives longer,
    than the token of the request."""
    check_scopes(scopes)
    if days is not None and not 0 < days <= MAX_TOKEN_DAYS:
        raise BadInput(f"days must be a number from 1 to {MAX_TOKEN_DAYS}", "days")
    if missing := sorted(set(scopes) - set(person.scopes)):
        raise NotAllowed(f"the token lacks the scope {missing[0]}", is_known=True)
    token = new_secret()
    connection.execute(
        "INSERT INTO tokens (person_id, hash, name, scopes, made_by, expires_at)"
        " SELECT person_id, %s, %s, %s, id, least(expires_at, now() + %s) FROM tokens"
        " WHERE id::text = %s",
        (digest(token), name[:100], list(scopes),
         timedelta(days=days) if days is not None else None, person.token_id),
    )  # fmt: skip
    return token


def list_tokens(connection: "Connection") -> list[dict[str, Json]]:
    rows = connection.execute(
        "SELECT id::text, name, scopes, created_at, expires_at, revoked_at FROM tokens"
        " ORDER BY created_at"
    )
    return [
        {"id": row[0], "name": row[1], "scopes": row[2], "created_at": _moment(row[3]),
         "expires_at": _moment(row[4]), "revoked_at": _moment(row[5])}
        for row in rows
    ]  # fmt: skip


def revoke_token(connection: "Connection", person: Person, token_id: str) -> None:
    """Revokes a token; without the scope `write`, only that of the request. With it go those that
    it made without that scope."""
    if token_id != person.token_id:
        require(person, "write")
    cursor = connection.execute(
        "WITH RECURSIVE ended AS ("
        " SELECT id, scopes FROM tokens WHERE id::text = %s"
        " UNION SELECT t.id, t.scopes FROM tokens t JOIN ended e ON t.made_by = e.id"
        " WHERE NOT 'write' = ANY (e.scopes))"
        " UPDATE tokens SET revoked_at = coalesce(revoked_at, now())"
        " WHERE id IN (SELECT id FROM ended)",
        (token_id,),
    )
    if not cursor.rowcount:
        raise NotFound("there is no token with this id")


def _moment(value: Any) -> str | None:
    return value.isoformat() if isinstance(value, datetime) else None
