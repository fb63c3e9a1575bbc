"""What the user agrees to before a model is used."""

from claude_mem.config import Settings
from claude_mem.text import pluralize
from claude_mem.urls import is_url_of_this_machine


def terms_of(settings: Settings, observer: str, address: str) -> str:
    limits = (
        f"at most {pluralize(settings.observer.daily_requests, 'request')} and "
        f"{pluralize(settings.observer.daily_tokens, 'token')} a day"
    )
    cost = (
        ", on this machine"
        if is_url_of_this_machine(address)
        else (" and uses your quota or credit there")
    )
    return (
        f"{observer} sends the content of your sessions, without secrets and private text, to "
        f"{address}{cost}: {limits}."
    )
