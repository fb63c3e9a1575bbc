"""The state of the observer: which one is active and why, what it spent, what blocks it."""

from collections.abc import Mapping

from claude_mem.config import Settings
from claude_mem.observer.models.active_observer import ActiveObserver, select_observer
from claude_mem.observer.models.keys import read_key
from claude_mem.store import StoreReader
from claude_mem.text import pluralize
from claude_mem.types import Json


def describe(
    settings: Settings,
    environ: Mapping[str, str],
    store: StoreReader | None,
    now: int,
    observer: ActiveObserver | None = None,
) -> dict[str, Json]:
    """Describes the observer for status, doctor, /api/stats and `observer`; never the key."""
    observer = observer or select_observer(settings, environ)
    spent = store.spent_today(now) if store else {"requests": 0, "tokens": 0}
    drafts = store.refinement_state() if store else {}
    status: dict[str, Json] = {
        "wanted": observer.requested,
        "used": observer.active,
        "why": observer.reason,
        "today": {
            "requests": spent["requests"],
            "requests_cap": settings.observer.daily_requests,
            "tokens": spent["tokens"],
            "tokens_cap": settings.observer.daily_tokens,
        },
        "drafts": {name: count for name, count in drafts.items() if name != "held"},
    }
    if observer.requested != "local":
        closed: dict[str, Json] = {"state": "closed"}
        status["model"] = observer.model_name
        status["address"] = observer.address
        status["key"] = read_key(settings)[1] or "none"
        status["breaker"] = store.breaker_state(observer.requested, now) if store else closed
    if store and (reason := store.last_kept_reason()):
        status["last_reason"] = reason
    return status


def has_spent(status: dict[str, Json]) -> bool:
    """Whether a model is configured, or was used today."""
    today = status["today"]
    assert isinstance(today, dict)
    return status["wanted"] != "local" or bool(today["requests"])


def format_spending(status: dict[str, Json]) -> str:
    today = status["today"]
    assert isinstance(today, dict)
    return (
        f"{today['requests']} of {pluralize(today['requests_cap'], 'request')}, "
        f"{today['tokens']} of {pluralize(today['tokens_cap'], 'token')} today (UTC)"
    )
