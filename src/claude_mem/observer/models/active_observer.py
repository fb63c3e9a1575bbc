"""Which observer is active, and why: the settings, what it requires, and the user's consent.

The models are imported when one is created: most commands only ask which observer is active.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from claude_mem.config import OBSERVER, Layout, Settings, has_consent
from claude_mem.distribution import install_command
from claude_mem.observer import LOCAL
from claude_mem.observer.models.claude_command import find_command, is_sdk_installed
from claude_mem.observer.models.claude_files import ClaudeFiles
from claude_mem.observer.models.keys import read_key
from claude_mem.urls import url_problem

if TYPE_CHECKING:
    from claude_mem.observer.models.model import Model

DEFAULT_MODEL = "claude-haiku-4-5"
ANTHROPIC_URL = "https://api.anthropic.com"
OPENAI_URL = "https://api.openai.com/v1"
_URLS = {"anthropic": ANTHROPIC_URL, "openai": OPENAI_URL}


@dataclass(frozen=True, slots=True)
class ActiveObserver:
    requested: str
    reason: str  # why it is active, or why it is not
    model_name: str = ""
    address: str = ""  # where the content of sessions is sent
    is_ready: bool = True

    @property
    def active(self) -> str:
        return self.requested if self.is_ready else LOCAL

    @property
    def has_model(self) -> bool:
        return self.active != LOCAL


def select_observer(settings: Settings, environ: Mapping[str, str]) -> ActiveObserver:
    requested = settings.observer.kind
    source = settings.source_of(OBSERVER)
    if requested == LOCAL:
        return ActiveObserver(
            requested, "by default" if source == "default" else f"set in {source}"
        )
    name, address = model_name(settings), address_of(settings)
    problem = missing_requirement(settings, environ)
    if not problem and not has_consent(settings.layout, requested, address):
        problem = f"you have not agreed to it yet: claude-mem observer {requested}"
    if problem:
        reason = f"{requested} is configured, but {problem}"
        return ActiveObserver(requested, reason, name, address, is_ready=False)
    return ActiveObserver(requested, f"set in {source}", name, address)


def model_name(settings: Settings) -> str:
    name = settings.observer.model
    return name or ("" if settings.observer.kind == "openai" else DEFAULT_MODEL)


def address_of(settings: Settings) -> str:
    requested = settings.observer.kind
    if requested not in _URLS:
        return "Claude Code, with your login" if requested == "claude" else ""
    return settings.observer.api_url or _URLS[requested]


def missing_requirement(settings: Settings, environ: Mapping[str, str]) -> str:
    """What the requested observer lacks and how to provide it; empty if nothing."""
    requested = settings.observer.kind
    if requested == "claude":
        if not is_sdk_installed():
            return f"its SDK is not installed: {install_command('claude')}"
        if find_command(settings, environ) is None:
            return "Claude Code was not found: claude-mem settings CLAUDE_CODE_PATH /path/to/claude"
        return ""
    if requested not in _URLS:
        return ""
    address = address_of(settings)
    if problem := url_problem(address):
        return f"CLAUDE_MEM_API_URL={address} {problem}"
    if not model_name(settings):
        return "no model is set: claude-mem settings MODEL NAME"
    if address in _URLS.values() and not read_key(settings)[0]:
        return "there is no key: claude-mem settings API_KEY"
    return ""


def create_model(
    observer: ActiveObserver, settings: Settings, environ: Mapping[str, str]
) -> "Model | None":
    """None if the local observer works alone."""
    if not observer.has_model:
        return None
    from claude_mem.observer.models.apis import AnthropicModel, OpenAIModel
    from claude_mem.observer.models.claude import ClaudeModel, ClaudeOptions

    seconds = float(settings.observer.request_seconds)
    if observer.active == ClaudeModel.name:
        return ClaudeModel(
            ClaudeOptions(
                command=str(find_command(settings, environ)),
                files=claude_files(settings.layout, environ),
                model=observer.model_name,
                max_clients=settings.observer.clients,
                seconds=seconds,
            )
        )
    model_class = AnthropicModel if observer.active == AnthropicModel.name else OpenAIModel
    url, key = settings.observer.api_url, read_key(settings)[0]
    return model_class(url, observer.model_name, key, seconds)


def claude_files(layout: Layout, environ: Mapping[str, str]) -> ClaudeFiles:
    config_dir = environ.get("CLAUDE_CONFIG_DIR")
    return ClaudeFiles(
        directory=layout.observer,
        config_dir=Path(config_dir) if config_dir else Path(environ.get("HOME", "/")) / ".claude",
    )
