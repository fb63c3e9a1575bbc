"""The embedder interface: texts into vectors that are near each other where meanings are.

Importing this loads no library; `load` does. `identify` returns the id of the embedder that the
settings select, without loading it.
"""

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from claude_mem.config import EmbedderSettings, Layout, has_consent
from claude_mem.errors import EmbedderError
from claude_mem.urls import url_problem

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float32]

SEARCH_SECONDS = 2.0  # after that, a search goes on by words
CONSENT = "embedder"  # the use that consent is recorded for
SHIPPED = Path(__file__).parent / "model"


_deadline: ContextVar[float | None] = ContextVar("_deadline", default=None)


@contextmanager
def time_limit() -> Iterator[None]:
    """Limits the time of requests to a server in this context, since somebody waits for them."""
    token = _deadline.set(time.monotonic() + SEARCH_SECONDS)
    try:
        yield
    finally:
        _deadline.reset(token)


def seconds_left(most: float) -> float:
    """Returns the seconds left of the time limit, at most `most`."""
    deadline = _deadline.get()
    return most if deadline is None else max(0.0, min(most, deadline - time.monotonic()))


class Embedder(Protocol):
    """Embedders with the same id make the same vectors of the same texts."""

    @property
    def id(self) -> str: ...

    @property
    def dimension(self) -> int: ...

    def encode(self, texts: Sequence[str]) -> "Matrix":
        """A row of length 1 for each text; zeros where it knows no word of the text."""
        ...


def identify(settings: EmbedderSettings) -> str | None:
    """The id of the embedder that the settings select; None where they turn it off."""
    kind, model = settings.kind, settings.model
    if kind == "none":
        return None
    if kind == "static":
        metadata = json.loads((SHIPPED / "model.json").read_text("utf-8"))
        return f"{metadata['name']}-{metadata['sha256'][:12]}"
    if kind == "endpoint":
        return f"endpoint:{settings.url}:{model}"
    if kind == "onnx":
        weights = Path(model) / "model.onnx"
        return f"onnx:{model}:{weights.stat().st_size if weights.exists() else 0}"
    return f"fastembed:{model}"


def terms_of(url: str) -> str:
    """What the user agrees to before an endpoint is used."""
    return (
        f"the embedder sends the text of your memories and searches, without secrets and private "
        f"text, to {url}."
    )


def endpoint_problem(settings: EmbedderSettings) -> str:
    """What an endpoint lacks, apart from consent; empty if nothing."""
    if not settings.url or not settings.model:
        return "an endpoint needs CLAUDE_MEM_EMBEDDER_URL and CLAUDE_MEM_EMBEDDER_MODEL"
    if problem := url_problem(settings.url):
        return f"CLAUDE_MEM_EMBEDDER_URL={settings.url} {problem}"
    return ""


def check_endpoint(settings: EmbedderSettings, layout: Layout) -> None:
    """Raises EmbedderError unless texts may be sent to the address in the settings."""
    if problem := endpoint_problem(settings):
        raise EmbedderError(problem)
    if not has_consent(layout, CONSENT, settings.url):
        raise EmbedderError(
            f"you have not agreed to send texts to {settings.url}: claude-mem embedder endpoint"
        )


def load(settings: EmbedderSettings, layout: Layout) -> Embedder:
    """Raises EmbedderError with what to do about it."""
    kind, model = settings.kind, settings.model
    identity = identify(settings)
    assert identity is not None
    if kind == "static":
        from claude_mem.index.embedders.static_model import StaticModel

        return StaticModel.load(SHIPPED)
    if kind == "endpoint":
        from claude_mem.index.embedders.endpoint import Endpoint

        check_endpoint(settings, layout)
        key = settings.key_file
        return Endpoint.open(identity, settings.url, model, Path(key) if key else None)
    from claude_mem.index.embedders import transformer

    if kind == "onnx":
        return transformer.OnnxModel.open(identity, Path(model))
    return transformer.FastembedModel.open(identity, model)
