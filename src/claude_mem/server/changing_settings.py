"""Changing a setting over HTTP: it is written to settings.json and applied at once."""

import asyncio

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from claude_mem import params
from claude_mem.config import (
    EMBEDDER,
    EMBEDDER_URL,
    OBSERVER,
    Setting,
    change_setting,
    find_setting,
    has_consent,
    load_settings,
    record_consent,
)
from claude_mem.errors import BadInput, SettingsError
from claude_mem.index.embedders import embedder
from claude_mem.observer.models.active_observer import address_of, missing_requirement
from claude_mem.observer.models.consent_text import terms_of
from claude_mem.server.guard import BY_COOKIE
from claude_mem.server.requests import read_object, reject_parameters, required_text
from claude_mem.server.viewer_cookie import CONFIRMATION, CONFIRMATION_HEADER
from claude_mem.types import Json
from claude_mem.urls import url_problem
from claude_mem.worker.worker import Worker


async def change(request: Request) -> JSONResponse:
    """POST /api/settings"""
    reject_parameters(request)
    worker: Worker = request.app.state.worker
    body = await read_object(request)
    params.check_names(body, ("name", "value", "agree"))
    try:
        setting = find_setting(required_text(body, "name"))
        value = params.text(body, "value")
        _check(worker, setting)
        if (setting.protected or params.flag(body, "agree")) and not _is_confirmed(request):
            command = f"claude-mem settings {setting.name.removeprefix('CLAUDE_MEM_')} VALUE"
            minutes = CONFIRMATION.seconds // 60
            reason = (
                f"{setting.name} decides which program runs, what is read or where text is sent:"
                f" run `claude-mem open` and change it within {minutes} minutes, or run `{command}`"
            )
            return JSONResponse({"error": reason, "field": "value"}, 403)
        if setting is OBSERVER and value is not None:
            _check_observer(worker, value, agreed=params.flag(body, "agree"))
        if setting in (EMBEDDER, EMBEDDER_URL) and value is not None:
            _check_embedder(worker, setting, value, agreed=params.flag(body, "agree"))
        await asyncio.to_thread(change_setting, worker.settings.layout.settings, setting, value)
    except SettingsError as error:
        raise BadInput(str(error), "value") from None
    problems: list[Json] = [*await worker.reload_settings(restart_observer=setting is OBSERVER)]
    if setting is OBSERVER:
        await asyncio.wrap_future(worker.store.close_breaker(worker.observer.active))
    return JSONResponse({
        "name": setting.name,
        "value": worker.settings.text_of(setting),
        "source": worker.settings.source_of(setting),
        "needs_restart": setting.needs_restart,
        "problems": problems,
    })  # fmt: skip


def _is_confirmed(request: Request) -> bool:
    """The cookie is not enough: servers on other ports of this machine may have seen it."""
    if not request.scope.get(BY_COOKIE):
        return True
    worker: Worker = request.app.state.worker
    value = request.headers.get(CONFIRMATION_HEADER, "")
    key, host = worker.viewer_links.signing_key, request.headers.get("host", "")
    return CONFIRMATION.is_valid(value, key, host, worker.clock())


def _check(worker: Worker, setting: Setting) -> None:
    if setting.secret:
        command = f"claude-mem settings {setting.name.removeprefix('CLAUDE_MEM_')} VALUE"
        raise BadInput(f"{setting.name} is a secret: `{command}` stores it in the keyring", "name")
    if worker.settings.source_of(setting) == "environment":
        raise BadInput(
            f"the environment sets {setting.name}, which overrides settings.json: unset it first",
            "name",
        )


def _check_observer(worker: Worker, name: str, *, agreed: bool) -> None:
    """The user has to agree to what a model is sent, once for each observer and address."""
    settings = load_settings({**worker.environ, OBSERVER.name: name})
    if missing := missing_requirement(settings, worker.environ):
        raise BadInput(f"{name} cannot be used: {missing}", "value")
    layout, address = settings.layout, address_of(settings)
    if name == "local" or has_consent(layout, name, address):
        return
    if not agreed:
        raise BadInput(terms_of(settings, name, address), "agree")
    record_consent(layout, name, address)


def _check_embedder(worker: Worker, setting: Setting, value: str, *, agreed: bool) -> None:
    """The user has to agree to what an endpoint is sent, once for each address."""
    settings = load_settings({**worker.environ, setting.name: value})
    url = settings.embedder.url
    if settings.embedder.kind != "endpoint" or not url:
        return
    if problem := url_problem(url):
        raise BadInput(f"{url} {problem}", "value")
    if has_consent(settings.layout, embedder.CONSENT, url):
        return
    if not agreed:
        raise BadInput(embedder.terms_of(url), "agree")
    record_consent(settings.layout, embedder.CONSENT, url)


routes = [Route("/api/settings", change, methods=["POST"])]
