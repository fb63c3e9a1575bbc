"""`claude-mem team serve`: migrates the database if needed, then serves until it is stopped."""

import asyncio
import json
import logging
import os
import time
from datetime import UTC, datetime
from typing import Any

import psycopg
import uvicorn
from starlette.applications import Starlette

from claude_mem.errors import ClaudeMemError
from claude_mem.server.port_limits import PortLimits, bounded_protocol, raise_descriptor_limit
from claude_mem.team.server.app import create_app
from claude_mem.team.server.database import Database
from claude_mem.team.server.migrations import migrate

DATABASE_URL = "CLAUDE_MEM_TEAM_DATABASE_URL"
CONNECTIONS = "CLAUDE_MEM_TEAM_CONNECTIONS"
START_SECONDS = 60.0

log = logging.getLogger("claude_mem.team")

HEAD_SECONDS = 10.0
_DESCRIPTORS_KEPT = 128  # for the database, files and the server itself


def _protocol() -> type[asyncio.Protocol]:
    """Ends connections that send no request: anyone can open them, without a token."""
    connections = max(64, raise_descriptor_limit() - _DESCRIPTORS_KEPT)
    return bounded_protocol(PortLimits(connections, HEAD_SECONDS, limits_body=False))


class JsonLines(logging.Formatter):
    """A line of JSON for each entry."""

    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            fields["error"] = self.formatException(record.exc_info)
        return json.dumps(fields, ensure_ascii=False)


def migrate_database(url: str, seconds: float = START_SECONDS) -> list[str]:
    """Waits for a database that is still starting."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            with psycopg.connect(url, autocommit=True) as connection:
                return migrate(connection)
        except psycopg.OperationalError as error:
            if time.monotonic() > deadline:
                raise ClaudeMemError(f"the database is not available: {error}") from None
            time.sleep(0.2)


def application() -> Starlette:
    """Makes the app for uvicorn and other ASGI servers: `claude_mem.team.server.serve:application`
    (a factory).

    Reads CLAUDE_MEM_TEAM_DATABASE_URL.
    """
    log_as_json()
    connections = int(os.environ.get(CONNECTIONS, "8"))
    return create_app(Database(os.environ[DATABASE_URL], connections))


def log_as_json() -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    logging.getLogger("uvicorn.access").disabled = True


def serve(
    url: str,
    listen: str,
    *,
    processes: int = 1,
    certificate: str | None = None,
    key: str | None = None,
    migrates: bool = True,
) -> None:
    log_as_json()
    if migrates:
        for name in migrate_database(url):
            log.info("migrated", extra={"fields": {"migration": name}})
    os.environ[DATABASE_URL] = url  # not an argument: those are visible to every user
    options: dict[str, Any] = {"uds": listen.removeprefix("unix:")}
    if not listen.startswith("unix:"):
        host, _, port = listen.rpartition(":")
        options = {"host": host.strip("[]") or "127.0.0.1", "port": int(port)}
    uvicorn.run(
        "claude_mem.team.server.serve:application",
        factory=True,
        workers=processes,
        ssl_certfile=certificate,
        ssl_keyfile=key,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=10,
        http="claude_mem.team.server.serve:Protocol",
        **options,
    )


Protocol = _protocol()  # for uvicorn, which imports it in each of its processes
