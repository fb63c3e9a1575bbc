"""claude-mem team: the server, and what operators do with its database."""

import click

from claude_mem.errors import BadInput, ClaudeMemError


@click.group()
def team() -> None:
    """Share the memory of projects through a team server."""


_DATABASE = click.option(
    "--database-url",
    envvar="CLAUDE_MEM_TEAM_DATABASE_URL",
    help="The PostgreSQL database: postgresql://user@host/name.",
)


def _required(database_url: str | None) -> str:
    """Raises with what to install or set."""
    try:
        import psycopg_pool  # noqa: F401
    except ImportError:
        raise ClaudeMemError(
            "the team server needs psycopg: pip install 'claudemem[team]'"
        ) from None
    if not database_url:
        raise BadInput("set --database-url or CLAUDE_MEM_TEAM_DATABASE_URL")
    return database_url


@team.command()
@_DATABASE
@click.option("--listen", default="127.0.0.1:37788", show_default=True,
              help="HOST:PORT, or unix:PATH.")  # fmt: skip
@click.option("--processes", default=1, show_default=True, type=click.IntRange(1, 64))
@click.option("--certificate", type=click.Path(exists=True), help="A TLS certificate (PEM).")
@click.option("--key", type=click.Path(exists=True), help="The key of the certificate.")
@click.option("--no-migrate", is_flag=True, help="Leave the schema as it is.")
def serve(
    database_url: str | None,
    listen: str,
    processes: int,
    certificate: str | None,
    key: str | None,
    no_migrate: bool,
) -> None:
    """Run the team server. It keeps no state: run as many as you like on one database."""
    url = _required(database_url)
    from claude_mem.team.server.serve import serve as run

    run(url, listen, processes=processes, certificate=certificate, key=key,
        migrates=not no_migrate)  # fmt: skip


@team.command()
@_DATABASE
def migrate(database_url: str | None) -> None:
    """Create or update the tables of the team database."""
    url = _required(database_url)
    from claude_mem.team.server.serve import migrate_database

    applied = migrate_database(url)
    click.echo(f"Applied: {', '.join(applied)}" if applied else "The database is up to date.")


@team.command()
@click.argument("name")
@_DATABASE
@click.option("--admin", is_flag=True, help="May invite others.")
@click.option("--days", default=7, show_default=True, type=click.IntRange(1, 365))
def invite(name: str, database_url: str | None, admin: bool, days: int) -> None:
    """Invite a person to the server, as its operator. Prints a code that works once."""
    url = _required(database_url)
    from claude_mem.team.server.operating import invite as create

    code = create(url, name, is_admin=admin, days=days)
    click.echo(f"On {name}'s machine, within {days} days:")
    click.echo(f"  claude-mem team join URL --invitation {code}")


@team.command()
@click.argument("project", type=int)
@_DATABASE
@click.option("--turns", type=click.IntRange(0), help="How many turns it may hold.")
@click.option("--bytes", "size", type=click.IntRange(0), help="How many bytes it may hold.")
def quota(project: int, database_url: str | None, turns: int | None, size: int | None) -> None:
    """Limit what PROJECT (its number on the server) may hold; without options: no limit."""
    url = _required(database_url)
    from claude_mem.team.server.operating import set_quota

    set_quota(url, project, turns, size)
    click.echo("Changed." if turns is not None or size is not None else "No limits.")


commands = [team]
