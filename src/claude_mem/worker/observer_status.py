"""What is known of the observer: who it is and why, what it spent, what stands in its way."""

from collections.abc import Mapping

from claude_mem.config import Settings
from claude_mem.observer.models.keys import read_key
from claude_mem.observer.models.provider import Provider, choose
from claude_mem.store import StoreReader
from claude_mem.store.spending import Caps
from claude_mem.types import Json
from claude_mem.worker.refiner import Policy


def policy_of(settings: Settings) -> Policy:
    return Policy(
        caps=caps_of(settings),
        upgrades=settings.observer.upgrade_drafts,
        at_once=settings.observer.clients,
    )


def caps_of(settings: Settings) -> Caps:
    return Caps(settings.observer.daily_requests, settings.observer.daily_tokens)


def describe(
    settings: Settings,
    environ: Mapping[str, str],
    store: StoreReader | None,
    now: int,
    choice: Provider | None = None,
) -> dict[str, Json]:
    """For status, doctor, /api/stats and `claude-mem observer`; never the key."""
    chosen = choice or choose(settings, environ)
    caps = caps_of(settings)
    spent = store.spent_today(now) if store else {"requests": 0, "tokens": 0}
    drafts = store.refinement_state() if store else {}
    found: dict[str, Json] = {
        "wanted": chosen.wanted,
        "used": chosen.used,
        "why": chosen.why,
        "today": {
            "requests": spent["requests"],
            "requests_cap": caps.requests,
            "tokens": spent["tokens"],
            "tokens_cap": caps.tokens,
        },
        "drafts": {name: count for name, count in drafts.items() if name != "held"},
    }
    if chosen.wanted != "local":
        found["model"] = chosen.model
        found["address"] = chosen.address
        found["key"] = read_key(settings)[1] or "none"
        found["breaker"] = store.breaker_state(chosen.wanted, now) if store else {"state": "closed"}
    if store and (reason := store.last_kept_reason()):
        found["last_reason"] = reason
    return found


def has_spent(found: dict[str, Json]) -> bool:
    """Whether a model is wanted, or was asked today."""
    today = found["today"]
    assert isinstance(today, dict)
    return found["wanted"] != "local" or bool(today["requests"])


def format_spending(found: dict[str, Json]) -> str:
    today = found["today"]
    assert isinstance(today, dict)
    return (
        f"{today['requests']} of {today['requests_cap']} requests, "
        f"{today['tokens']} of {today['tokens_cap']} tokens today (UTC)"
    )
