"""Vectors from a server that the user chose, over the embedding API of OpenAI or of Ollama.

It is contacted only when the settings name it and the user agreed to its address. It receives the
texts of memories and queries and the key, if there is one. Nothing is sent to any other host.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from claude_mem.errors import EmbedderError, RequestFailed
from claude_mem.http_client import post_json_blocking
from claude_mem.index.embedders.embedder import seconds_left
from claude_mem.index.vectors.blocks import Floats, normalise
from claude_mem.types import Json

SECONDS = 20.0
BATCH = 64
MAX_TEXT = 8_000


@dataclass(frozen=True, slots=True)
class Endpoint:
    id: str
    dimension: int
    url: str
    model: str
    key: str

    @classmethod
    def open(cls, identity: str, url: str, model: str, key_file: Path | None) -> "Endpoint":
        """Sends one request, to learn the dimension."""
        try:
            key = key_file.read_text("utf-8").strip() if key_file else ""
        except (OSError, ValueError) as error:
            raise EmbedderError(f"CLAUDE_MEM_EMBEDDER_KEY_FILE cannot be read: {error}") from None
        probe = cls(identity, 0, url, model, key)
        return cls(identity, len(probe._request(["a lamp"])[0]), url, model, key)

    def encode(self, texts: Sequence[str]) -> Floats:
        vectors = np.zeros((len(texts), self.dimension), np.float32)
        nonempty = [number for number, text in enumerate(texts) if text.strip()]
        for start in range(0, len(nonempty), BATCH):
            numbers = nonempty[start : start + BATCH]
            rows = self._request([texts[number][:MAX_TEXT] for number in numbers])
            if {len(row) for row in rows} != {self.dimension}:
                raise EmbedderError(f"{self.url} returned vectors of another dimension than before")
            vectors[numbers] = rows
        return normalise(vectors)

    def _request(self, texts: list[str]) -> list[list[float]]:
        headers = {"authorization": f"Bearer {self.key}"} if self.key else {}
        body: dict[str, Json] = {"model": self.model, "input": list(texts)}
        try:
            seconds = seconds_left(SECONDS)
            response = post_json_blocking(self.url, headers, body, seconds, self.key)
            if response.status != 200:
                raise EmbedderError(f"{self.url} returned HTTP {response.status}")
            return _vectors(response.json_object(), len(texts))
        except (RequestFailed, ValueError) as error:
            raise EmbedderError(f"{self.url} returned no vectors: {error}") from None


def _vectors(response: dict[str, Any], count: int) -> list[list[float]]:
    """Reads Ollama's `embeddings` or OpenAI's `data`; ValueError unless it has `count` vectors."""
    vectors = response.get("embeddings")
    if vectors is None and isinstance(response.get("data"), list):
        rows = [row for row in response["data"] if isinstance(row, dict)]
        vectors = [row.get("embedding") for row in sorted(rows, key=lambda r: r.get("index") or 0)]
    if not isinstance(vectors, list) or len(vectors) != count or not all(map(_is_vector, vectors)):
        raise ValueError("the response does not contain one vector for each text")
    return vectors


def _is_vector(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(number, int | float) and number == number for number in value)
    )
