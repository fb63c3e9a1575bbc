"""The embedder interface: texts into vectors that are near each other where meanings are.

Importing this loads no library; `load` does. `identify` returns the id of the embedder that the
settings select, without loading it.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from claude_mem.config import EmbedderSettings

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float32]

SHIPPED = Path(__file__).parent / "model"


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


def load(settings: EmbedderSettings) -> Embedder:
    """Raises EmbedderError with what to do about it."""
    kind, model = settings.kind, settings.model
    identity = identify(settings)
    assert identity is not None
    if kind == "static":
        from claude_mem.index.embedders.static_model import StaticModel

        return StaticModel.load(SHIPPED)
    if kind == "endpoint":
        from claude_mem.index.embedders.endpoint import Endpoint

        key = settings.key_file
        return Endpoint.open(identity, settings.url, model, Path(key) if key else None)
    from claude_mem.index.embedders import transformer

    if kind == "onnx":
        return transformer.OnnxModel.open(identity, Path(model))
    return transformer.FastembedModel.open(identity, model)
