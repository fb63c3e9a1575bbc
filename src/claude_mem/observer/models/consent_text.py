"""What the user agrees to before a model is used."""

from claude_mem.config import Settings
from claude_mem.text import pluralize


def terms_of(settings: Settings, observer: str, address: str) -> str:
    limits = (
        f"at most {pluralize(settings.observer.daily_requests, 'request')} and "
        f"{pluralize(settings.observer.daily_tokens, 'token')} a day"
    )
    return (
        f"{observer} sends the content of your sessions, without secrets and private text, to "
        f"{address} and uses your quota or credit there: {limits}."
    )
