"""The team that this machine joined: a private file with the server's address and a token."""

import json
from dataclasses import asdict, dataclass

from claude_mem.config import Layout, write_private
from claude_mem.errors import SettingsError
from claude_mem.urls import url_problem


@dataclass(frozen=True, slots=True)
class Membership:
    url: str  # of the server, without a slash at its end
    token: str
    person: str
    machine: str


def read_membership(layout: Layout) -> Membership | None:
    """None if this machine joined no team."""
    try:
        values = json.loads(layout.team.read_bytes())
        membership = Membership(**values)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError):
        raise SettingsError(
            f"{layout.team} cannot be read: join the team again (claude-mem team join)"
        ) from None
    check_url(membership.url)
    return membership


def write_membership(layout: Layout, membership: Membership) -> None:
    write_private(layout.team, json.dumps(asdict(membership), indent=1).encode())


def check_url(url: str) -> str:
    """Returns the URL without a slash at its end; raises SettingsError."""
    if problem := url_problem(url):
        raise SettingsError(f"{url} {problem}")
    return url.rstrip("/")
