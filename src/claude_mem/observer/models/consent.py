"""The user's consent: to an observer together with the address that it sends to."""

import json

from claude_mem.config import Layout, Settings, write_private


def terms_of(settings: Settings, observer: str, address: str) -> str:
    """What the user agrees to."""
    limits = (
        f"at most {settings.observer.daily_requests} requests and "
        f"{settings.observer.daily_tokens} tokens a day"
    )
    return (
        f"{observer} sends the content of your sessions, without secrets and private text, to "
        f"{address} and uses your quota or credit there: {limits}."
    )


def has_consent(layout: Layout, observer: str, address: str) -> bool:
    return f"{observer} {address}" in _consents(layout)


def record_consent(layout: Layout, observer: str, address: str) -> None:
    consents = sorted({*_consents(layout), f"{observer} {address}"})
    layout.root.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_private(layout.agreed, (json.dumps({"agreed": consents}, indent=2) + "\n").encode())


def _consents(layout: Layout) -> list[str]:
    try:
        content = json.loads(layout.agreed.read_text("utf-8"))
        consents = content["agreed"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return []
    return (
        [text for text in consents if isinstance(text, str)] if isinstance(consents, list) else []
    )
