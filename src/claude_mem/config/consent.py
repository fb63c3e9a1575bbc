"""The user's recorded consent to send text to an address: for each use of it, and exactly there.

Recorded in the data directory, by commands that the user runs. A setting is not consent: it may
come from the environment of a project.
"""

import json

from claude_mem.config.layout import Layout
from claude_mem.config.owner_only_file import write_private


def has_consent(layout: Layout, use: str, address: str) -> bool:
    """`use`: the name of an observer, or "embedder"."""
    return f"{use} {address}" in _consents(layout)


def record_consent(layout: Layout, use: str, address: str) -> None:
    consents = sorted({*_consents(layout), f"{use} {address}"})
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
