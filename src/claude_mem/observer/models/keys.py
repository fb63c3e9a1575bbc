"""The key of a model's API: in the system's keyring where there is one, else in settings.json.

`keyring` is no dependency of ours: it is used where the person has it. Whatever it raises means
that it does not work here.
"""

from importlib import import_module
from typing import Any

from claude_mem.config import API_KEY, Layout, Settings

_SERVICE = "claude-mem"


def read_key(settings: Settings) -> tuple[str, str]:
    """The key, and where it was found."""
    if said := settings.observer.api_key:
        return said, settings.source_of(API_KEY)
    ring = _keyring()
    if ring is not None:
        try:
            if found := ring.get_password(_SERVICE, str(settings.layout.root)):
                return str(found), "keyring"
        except Exception:
            return "", ""
    return "", ""


def store_in_keyring(layout: Layout, key: str | None) -> bool:
    """Whether the keyring took it; None takes it out."""
    ring = _keyring()
    if ring is None:
        return False
    try:
        if key is None:
            if ring.get_password(_SERVICE, str(layout.root)):
                ring.delete_password(_SERVICE, str(layout.root))
            return True
        ring.set_password(_SERVICE, str(layout.root), key)
        return bool(ring.get_password(_SERVICE, str(layout.root)) == key)
    except Exception:
        return False


def has_keyring() -> bool:
    return _keyring() is not None


def _keyring() -> Any:
    """One that keeps a secret: not the one that fails, nor one that writes plain files."""
    try:
        module = import_module("keyring")
        backend = module.get_keyring()
        works = backend.priority >= 1 and "plaintext" not in type(backend).__name__.lower()
    except Exception:
        return None
    return module if works else None
