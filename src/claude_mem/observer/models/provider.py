"""Which observer is used, and why: what the settings want, what it needs, what was agreed to."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from claude_mem.config import OBSERVER, Layout, Settings, write_private
from claude_mem.http_client import url_problem
from claude_mem.observer.local.observer import LocalObserver
from claude_mem.observer.models.apis import ANTHROPIC_URL, OPENAI_URL, AnthropicModel, OpenAIModel
from claude_mem.observer.models.claude import ClaudeModel, ClaudeOptions, find_command, is_installed
from claude_mem.observer.models.keys import read_key
from claude_mem.observer.models.model import Model, ModelObserver

DEFAULT_MODEL = "claude-haiku-4-5"
_URLS = {"anthropic": ANTHROPIC_URL, "openai": OPENAI_URL}


@dataclass(frozen=True, slots=True)
class Provider:
    wanted: str
    why: str
    model: str = ""
    address: str = ""  # where what is observed is sent
    observer: ModelObserver | None = None  # None: the local one alone

    @property
    def used(self) -> str:
        return self.observer.name if self.observer is not None else LocalObserver.name


def choose(settings: Settings, environ: Mapping[str, str]) -> Provider:
    wanted = settings.observer.kind
    source = settings.source_of(OBSERVER)
    if wanted == LocalObserver.name:
        return Provider(wanted, "by default" if source == "default" else f"set in {source}")
    name, address = model_name(settings), address_of(settings)
    missing = missing_for(settings, environ)
    if not missing and not has_agreed(settings.layout, wanted, address):
        missing = f"nobody agreed to it yet: claude-mem observer {wanted}"
    if missing:
        return Provider(wanted, f"{wanted} is wanted, but {missing}", name, address)
    observer = ModelObserver(_model(settings, environ), settings.observer.verbosity)
    return Provider(wanted, f"set in {source}", name, address, observer)


def model_name(settings: Settings) -> str:
    named = settings.observer.model
    return named or ("" if settings.observer.kind == "openai" else DEFAULT_MODEL)


def address_of(settings: Settings) -> str:
    wanted = settings.observer.kind
    if wanted not in _URLS:
        return "Claude Code, with your login" if wanted == "claude" else ""
    return settings.observer.api_url or _URLS[wanted]


def missing_for(settings: Settings, environ: Mapping[str, str]) -> str:
    """What the wanted observer lacks, in words that say what to type."""
    wanted = settings.observer.kind
    if wanted == "claude":
        if not is_installed():
            return "its SDK is not installed: pip install 'claudemem[claude]'"
        if find_command(settings, environ) is None:
            return "Claude Code was not found: claude-mem settings CLAUDE_CODE_PATH /path/to/claude"
        return ""
    if wanted not in _URLS:
        return ""
    address = address_of(settings)
    if problem := url_problem(address):
        return f"CLAUDE_MEM_API_URL={address} {problem}"
    if not model_name(settings):
        return "no model is named: claude-mem settings MODEL NAME"
    if address in _URLS.values() and not read_key(settings)[0]:
        return "there is no key: claude-mem settings API_KEY"
    return ""


def _model(settings: Settings, environ: Mapping[str, str]) -> Model:
    wanted, name = settings.observer.kind, model_name(settings)
    seconds = float(settings.observer.request_seconds)
    if wanted == "claude":
        return ClaudeModel(
            ClaudeOptions(
                command=str(find_command(settings, environ)),
                directory=settings.layout.observer,
                model=name,
                config_dir=client_config_dir(environ),
                clients=settings.observer.clients,
                seconds=seconds,
            )
        )
    kind = AnthropicModel if wanted == "anthropic" else OpenAIModel
    return kind(settings.observer.api_url, name, read_key(settings)[0], seconds)


def client_config_dir(environ: Mapping[str, str]) -> Path:
    chosen = environ.get("CLAUDE_CONFIG_DIR")
    return Path(chosen) if chosen else Path(environ.get("HOME", "/")) / ".claude"


# What the person agreed to: an observer together with the place it sends things to.


def has_agreed(layout: Layout, wanted: str, address: str) -> bool:
    return f"{wanted} {address}" in _agreed(layout)


def agree(layout: Layout, wanted: str, address: str) -> None:
    agreed = sorted({*_agreed(layout), f"{wanted} {address}"})
    layout.root.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_private(layout.agreed, (json.dumps({"agreed": agreed}, indent=2) + "\n").encode())


def _agreed(layout: Layout) -> list[str]:
    try:
        content = json.loads(layout.agreed.read_text("utf-8"))
        found = content["agreed"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return []
    return [one for one in found if isinstance(one, str)] if isinstance(found, list) else []
