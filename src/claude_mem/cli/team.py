"""claude-mem team: join a team and share projects with it; run its server."""

import os
import platform
import sys
from collections.abc import Mapping
from typing import Any

import click

from claude_mem.cli.groups import Group
from claude_mem.cli.open_store import open_reader, open_store_for_import
from claude_mem.cli.output import json_option
from claude_mem.cli.user_only import refuse_agents
from claude_mem.config import Settings
from claude_mem.distribution import install_command
from claude_mem.errors import BadInput, ClaudeMemError, NotFound, NotRunning
from claude_mem.hook.spooling import wake
from claude_mem.server import client as worker
from claude_mem.text import format_pairs, pluralize


@click.group(cls=Group)
def team() -> None:
    """Share the memory of projects with a team, or between your machines.

    What is not shared stays on this machine. `claude-mem team serve` runs the server.
    """


# This machine's part


@team.command()
@click.argument("url")
@click.option("--invitation", help="The code of an invitation; it works once.")
@click.option(
    "--token", help="Your own token: `claude-mem team token` prints it on another of your machines."
)
@click.option("--machine", default=platform.node, help="The name of this machine.")
@click.pass_obj
def join(
    settings: Settings, url: str, invitation: str | None, token: str | None, machine: str
) -> None:
    """Join the team server at URL. With another invitation, join more of its projects."""
    refuse_agents()
    from claude_mem.team.client import membership as members
    from claude_mem.team.client.remote import ask_blocking

    if bool(invitation) == bool(token):
        raise BadInput("set --invitation or --token")
    address = members.check_url(url)
    previous = members.read_membership(settings.layout)
    if previous is not None and previous.url == address and invitation:
        me = ask_blocking(previous, "invitations/accept", {"code": invitation})
        _tell_worker(settings)
        click.echo(f"You are {previous.person}, and a member of these projects:")
        _print_projects(me["projects"])
        return
    if previous is not None:
        raise BadInput(f"this machine joined {previous.url} already: claude-mem team leave")
    if invitation:
        nobody = members.Membership(address, "", "", machine)
        token = str(ask_blocking(nobody, "join", {"code": invitation, "machine": machine})["token"])
    joined = members.Membership(address, str(token), "", machine)
    me = ask_blocking(joined, "me", {})
    settings.layout.create()
    members.write_membership(
        settings.layout, members.Membership(address, str(token), str(me["person"]), machine)
    )
    _tell_worker(settings)
    click.echo(f"Joined {address} as {me['person']}.")
    _print_projects(me["projects"])
    click.echo("To share a project of this machine: claude-mem team share PROJECT")


@team.command()
@click.argument("project")
@click.option("--record", is_flag=True, help="Also share the record: what was said, word for word.")
@click.option("--from-now", is_flag=True, help="Only turns from now on.")
@click.pass_obj
def share(settings: Settings, project: str, record: bool, from_now: bool) -> None:
    """Share PROJECT (name or key) with the team.

    Its past and future turns are shared. Only members of the project on the server see it. Private
    and forgotten text, and memories marked as wrong, are never sent.
    """
    refuse_agents()
    from claude_mem.team.client import outbox
    from claude_mem.team.client.remote import ask_blocking

    joined = _joined(settings)
    with open_store_for_import(settings) as store:
        local_project = store.project(store.find_project(project))
        body: Mapping[str, Any] = {
            "key": local_project.key,
            "name": local_project.name,
            "record": record,
        }
        there = ask_blocking(joined, "projects", body)
        shared = outbox.SharedProject(
            local_project.key, int(there["id"]), record and bool(there["record"])
        )
        count = store.write(lambda c: outbox.share(c, shared, with_past=not from_now)).result()
    wake(os.fsencode(settings.layout.root))
    click.echo(
        f"{local_project.name} is shared; {pluralize(count, 'turn')} of its past will be sent."
    )
    if record and not there["record"]:
        click.echo("Its record is not: the project on the server does not share it.")
    if local_project.key.startswith("/"):
        click.echo("It has no git origin: other machines know it by another path.", err=True)


@team.command()
@json_option
@click.pass_obj
def status(settings: Settings, as_json: bool) -> None:
    """Show the team, shared projects and waiting turns."""
    from claude_mem.team.client import outbox
    from claude_mem.team.client.remote import ask_blocking

    joined = _joined(settings)
    try:
        me = ask_blocking(joined, "me", {}, 5.0)
        server = "responds"
    except ClaudeMemError as error:
        me, server = {"projects": []}, str(error)
    report: dict[str, Any] = {
        "url": joined.url, "person": joined.person, "machine": joined.machine, "server": server,
        "waiting": 0, "turns": {}, "refused": None, "shared": [], "projects": me["projects"],
    }  # fmt: skip
    with open_reader(settings) as store:
        if store is not None:
            report["waiting"] = store.read(outbox.waiting)
            report["turns"] = store.read(outbox.counts)
            report["refused"] = store.read(outbox.last_refusal)
            report["shared"] = [p.key for p in store.read(outbox.shared_projects)]
    if as_json:
        from claude_mem.cli.output import print_json

        print_json(report)
        return
    _print_status(report)


def _print_status(report: dict[str, Any]) -> None:
    turns = report["turns"]
    pairs: list[tuple[str, object]] = [
        ("team", f"{report['url']} ({report['server']})"),
        ("you", f"{report['person']} on {report['machine']}"),
        ("shared", ", ".join(report["shared"]) or "nothing: claude-mem team share PROJECT"),
        ("turns", f"{turns.get('stored', 0)} on the server, {report['waiting']} waiting"),
    ]
    if turns.get("refused"):
        pairs.append(("refused", f"{turns['refused']}, the last one: {report['refused']}"))
    click.echo("\n".join(format_pairs(pairs)))
    _print_projects(report["projects"])


def _print_projects(projects: list[dict[str, Any]]) -> None:
    for project in projects:
        limit = f" of {project['max_turns']}" if project["max_turns"] is not None else ""
        record = ", with its record" if project["record"] else ""
        click.echo(
            f"  {project['name']} ({project['key']}, number {project['id']}): {project['role']},"
            f" turns {project['turns']}{limit}{record}"
        )


@team.command()
@click.pass_obj
def leave(settings: Settings) -> None:
    """Leave the team. What was shared stays on the server; memories here are kept."""
    from claude_mem.team.client import outbox

    joined = _joined(settings)
    settings.layout.team.unlink()
    _tell_worker(settings)
    if settings.layout.database.exists():
        with open_store_for_import(settings) as store:
            store.write(outbox.leave).result()
    click.echo(f"Left {joined.url}.")


@team.command()
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="Send all turns of all shared projects, not only the waiting ones.",
)
@click.pass_obj
def push(settings: Settings, everything: bool) -> None:
    """Send waiting turns now.

    With --all, send all turns again and compare them with the server. Can be interrupted and
    repeated.
    """
    if not everything:
        pushed = _ask_worker(settings, "/team/sync", {})["pushed"]
        click.echo(f"Sent {pluralize(int(pushed), 'change')}.")
        return
    from claude_mem.redaction import Redactor
    from claude_mem.team.client.full_transfer import push_everything

    joined = _joined(settings)

    def progress(waiting: int) -> None:
        if sys.stderr.isatty():
            click.echo(f"\r{pluralize(waiting, 'turn')} left  ", nl=False, err=True)

    with open_store_for_import(settings) as store:
        redactor = Redactor(settings.capture.redact_allow)
        checks = push_everything(store, joined, redactor, progress)
    if not checks:
        raise NotFound("no project is shared: claude-mem team share PROJECT")
    for check in checks:
        state = "verified" if check.is_same else "NOT the same on the server: push again"
        there = f"{check.turns_there} of {pluralize(check.turns, 'turn')} on the server"
        refused = f", {check.refused} refused: claude-mem team status" if check.refused else ""
        click.echo(f"{check.key}: {there}, {state}{refused}")
    if any(check.refused or not check.is_same for check in checks):
        sys.exit(1)


@team.command()
@click.pass_obj
def sync(settings: Settings) -> None:
    """Send and fetch now, instead of within a minute."""
    pushed = _ask_worker(settings, "/team/sync", {})["pushed"]
    click.echo(f"Sent {pluralize(int(pushed), 'change')}, and fetched what is new.")


@team.command()
@click.option("--name", default="", help="Name of the machine.")
@click.option("--revoke", metavar="ID", help="Revoke a token instead.")
@click.option("--list", "listing", is_flag=True, help="List your tokens instead.")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    type=click.Choice(("read", "write", "admin")),
    help="What the token may do (default: the same as yours); can be repeated.",
)
@click.option("--days", type=click.IntRange(1, 3_650), help="Days until it expires.")
@click.pass_obj
def token(
    settings: Settings,
    name: str,
    revoke: str | None,
    listing: bool,
    scopes: tuple[str, ...],
    days: int | None,
) -> None:
    """Create a token for another of your machines."""
    if not listing:
        refuse_agents()
    from claude_mem.team.client.remote import ask_blocking

    joined = _joined(settings)
    if revoke:
        ask_blocking(joined, "tokens/revoke", {"id": revoke})
        click.echo("Revoked.")
    elif listing:
        for entry in ask_blocking(joined, "tokens", {})["tokens"]:
            until = f", until {entry['expires_at'][:10]}" if entry["expires_at"] else ""
            state = "revoked" if entry["revoked_at"] else ", ".join(entry["scopes"]) + until
            click.echo(f"{entry['id']}  {entry['name']}  {state}")
    else:
        body: dict[str, Any] = {"name": name, "scopes": list(scopes)}
        if days is not None:
            body["days"] = days
        created = ask_blocking(joined, "tokens/create", body)["token"]
        click.echo("On the other machine:")
        click.echo(f"  claude-mem team join {joined.url} --token {created}")


@team.command()
@click.argument("name")
@click.option("--project", "projects", multiple=True,
              help="Project to make them a member of; can be repeated.")  # fmt: skip
@click.option("--role", type=click.Choice(("reader", "writer", "admin")), default="writer",
              help="Their role in these projects (default writer).")  # fmt: skip
@click.option("--admin", is_flag=True, help="Also allow them to invite others.")
@click.option("--days", default=7, type=click.IntRange(1, 365),
              help="Days until the invitation expires (default 7).")  # fmt: skip
@click.option("--database-url", envvar="CLAUDE_MEM_TEAM_DATABASE_URL",
              help="PostgreSQL database of the server: invite as its operator.")  # fmt: skip
@click.pass_obj
def invite(
    settings: Settings,
    name: str,
    projects: tuple[str, ...],
    role: str,
    admin: bool,
    days: int,
    database_url: str | None,
) -> None:
    """Invite a person. Prints a code that works once."""
    refuse_agents(needs_terminal=database_url is None)
    scopes = ("read", "write", "admin") if admin else ("read", "write")
    url = "URL"
    if database_url:
        from claude_mem.team.server.administration import invite as create

        code = create(_database(database_url), name, is_admin=admin, days=days)
    else:
        from claude_mem.team.client.remote import ask_blocking

        joined = _joined(settings)
        url = joined.url
        body: dict[str, Any] = {
            "name": name, "role": role, "days": days, "scopes": list(scopes),
            "projects": _team_ids(ask_blocking(joined, "me", {})["projects"], projects),
        }  # fmt: skip
        code = str(ask_blocking(joined, "invitations", body)["code"])
    click.echo(f"On {name}'s machine, within {pluralize(days, 'day')}:")
    click.echo(f"  claude-mem team join {url} --invitation {code}")


@team.command()
@click.argument("project")
@click.option("--remove", metavar="NAME", help="Remove a member (name or id).")
@click.pass_obj
def members(settings: Settings, project: str, remove: str | None) -> None:
    """List the members of PROJECT (name, key or number)."""
    from claude_mem.team.client.remote import ask_blocking

    joined = _joined(settings)
    (team_id,) = _team_ids(ask_blocking(joined, "me", {})["projects"], (project,))
    listed = ask_blocking(joined, "members", {"project": team_id})["members"]
    if remove is None:
        for member in listed:
            click.echo(f"{member['name']}  {member['role']}  {member['id']}")
        return
    refuse_agents()
    matches = [member for member in listed if remove in (member["name"], member["id"])]
    if len(matches) != 1:
        raise NotFound(f"{len(matches)} members have the name {remove!r}: use an id of the list")
    body = {"project": team_id, "person": matches[0]["id"]}
    ask_blocking(joined, "members/remove", body)
    click.echo(f"Removed {matches[0]['name']}. What they shared stays.")


def _team_ids(available: list[dict[str, Any]], names: tuple[str, ...]) -> list[int]:
    ids: list[int] = []
    for name in names:
        matches = [p["id"] for p in available if name in (p["key"], p["name"], str(p["id"]))]
        if len(matches) != 1:
            raise NotFound(f"there is no project {name!r}: claude-mem team status lists them")
        ids += matches
    return ids


def _joined(settings: Settings) -> Any:
    from claude_mem.team.client.membership import read_membership

    joined = read_membership(settings.layout)
    if joined is None:
        raise NotFound("this machine joined no team: claude-mem team join URL")
    return joined


def _ask_worker(settings: Settings, path: str, body: dict[str, Any]) -> dict[str, Any]:
    _joined(settings)
    return worker.request(settings.layout, os.environ, path, body)


def _tell_worker(settings: Settings) -> None:
    """A worker that starts later reads the file itself."""
    try:
        worker.ask_worker(settings.layout, "/api/settings/reload", {})
    except NotRunning:
        return


# The server


_DATABASE = click.option(
    "--database-url",
    envvar="CLAUDE_MEM_TEAM_DATABASE_URL",
    help="The PostgreSQL database: postgresql://user@host/name.",
)


def _database(database_url: str | None) -> str:
    """Raises with what to install or set."""
    try:
        import psycopg_pool  # noqa: F401
    except ImportError:
        raise ClaudeMemError(f"the team server needs psycopg: {install_command('team')}") from None
    if not database_url:
        raise BadInput("set --database-url or CLAUDE_MEM_TEAM_DATABASE_URL")
    return database_url


@team.command()
@_DATABASE
@click.option("--listen", default="127.0.0.1:37788",
              help="HOST:PORT, or unix:PATH (default 127.0.0.1:37788).")  # fmt: skip
@click.option("--processes", default=1, type=click.IntRange(1, 64),
              help="Number of server processes (default 1).")  # fmt: skip
@click.option("--certificate", type=click.Path(exists=True), help="A TLS certificate (PEM).")
@click.option("--key", type=click.Path(exists=True), help="The key of the certificate.")
@click.option("--no-migrate", is_flag=True, help="Do not migrate the database.")
def serve(
    database_url: str | None,
    listen: str,
    processes: int,
    certificate: str | None,
    key: str | None,
    no_migrate: bool,
) -> None:
    """Run the team server. It keeps no state: run as many as you like on one database."""
    url = _database(database_url)
    from claude_mem.team.server.serve import serve as run

    run(url, listen, processes=processes, certificate=certificate, key=key,
        migrates=not no_migrate)  # fmt: skip


@team.command()
@_DATABASE
def migrate(database_url: str | None) -> None:
    """Create or update the tables of the team database."""
    url = _database(database_url)
    from claude_mem.team.server.serve import migrate_database

    applied = migrate_database(url)
    click.echo(f"Applied: {', '.join(applied)}" if applied else "The database is up to date.")


@team.command()
@click.argument("project", type=int)
@_DATABASE
@click.option("--turns", type=click.IntRange(0), help="Maximum turns.")
@click.option("--bytes", "size", type=click.IntRange(0), help="Maximum bytes.")
def quota(project: int, database_url: str | None, turns: int | None, size: int | None) -> None:
    """Limit the size of PROJECT (its number on the server).

    Without --turns and --bytes, remove the limits.
    """
    url = _database(database_url)
    from claude_mem.team.server.administration import set_quota

    set_quota(url, project, turns, size)
    click.echo("Changed." if turns is not None or size is not None else "No limits.")


@team.command()
@_DATABASE
@click.option(
    "--above",
    default=200_000,
    help="Index partitions with more than this many passages (default 200000).",
)
def maintain(database_url: str | None, above: int) -> None:
    """Build vector indexes on large partitions. Servers can keep running."""
    url = _database(database_url)
    from claude_mem.team.server.administration import build_vector_indexes

    built = build_vector_indexes(url, above)
    click.echo(f"Indexed: {', '.join(built)}" if built else "No partition needs an index.")


commands = [team]
