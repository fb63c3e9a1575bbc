"""The key of a model's API: in the system keyring if there is one, else in settings.json.

`keyring` is not a dependency; it is used where the user installed it. Any exception that it raises
means that it does not work here.
"""

from importlib import import_module
from typing import Any

from claude_mem.config import API_KEY, Layout, Settings

_SERVICE = "claude-mem"


def read_key(settings: Settings) -> tuple[str, str]:
    """The key and its source; both empty if there is none."""
    if key := settings.observer.api_key:
        return key, settings.source_of(API_KEY)
    keyring = _usable_keyring()
    if keyring is None:
        return "", ""
    try:
        stored = keyring.get_password(_SERVICE, str(settings.layout.root))
    except Exception:
        return "", ""
    return (str(stored), "keyring") if stored else ("", "")


def store_in_keyring(layout: Layout, key: str | None) -> bool:
    """Whether the keyring stored the key; None deletes it."""
    keyring = _usable_keyring()
    if keyring is None:
        return False
    try:
        if key is None:
            if keyring.get_password(_SERVICE, str(layout.root)):
                keyring.delete_password(_SERVICE, str(layout.root))
            return True
        keyring.set_password(_SERVICE, str(layout.root), key)
        return bool(keyring.get_password(_SERVICE, str(layout.root)) == key)
    except Exception:
        return False


def _usable_keyring() -> Any:
    """None for the backend that always fails and for those that write plain text."""
    try:
        module = import_module("keyring")
        backend = module.get_keyring()
        is_usable = backend.priority >= 1 and "plaintext" not in type(backend).__name__.lower()
    except Exception:
        return None
    return module if is_usable else None
