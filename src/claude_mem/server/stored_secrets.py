"""Removing secrets over HTTP from what is already stored."""

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from claude_mem import params
from claude_mem.server.requests import read_object, reject_parameters
from claude_mem.worker import stored_secrets
from claude_mem.worker.worker import Worker


async def redact(request: Request) -> JSONResponse:
    """POST /api/redact: removes secrets from rows, files and backups"""
    reject_parameters(request)
    params.check_names(await read_object(request), ())
    worker: Worker = request.app.state.worker
    findings = await stored_secrets.clean(worker)
    return JSONResponse({
        "redacted": [
            {"place": finding.place, "kind": finding.kind, "hint": finding.hint}
            for finding in findings
        ],
        "scrubbed": not worker.store.needs_scrub(),
    })  # fmt: skip


routes = [Route("/api/redact", redact, methods=["POST"])]
