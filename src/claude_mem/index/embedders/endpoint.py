"""Vectors from a server that the person chose: OpenAI's way of asking, or Ollama's.

It is contacted only when the settings name it. What is sent is what memories and questions say,
and the key, where there is one; never to another host than the one named.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from claude_mem.errors import EmbedderError, RequestFailed
from claude_mem.http_client import post_json_blocking, url_problem
from claude_mem.index.vectors.blocks import Floats, of_length_one
from claude_mem.types import Json

SECONDS = 20.0
AT_ONCE = 64
LONGEST_TEXT = 8_000


@dataclass(frozen=True, slots=True)
class Endpoint:
    id: str
    dimension: int
    url: str
    model: str
    key: str

    @classmethod
    def open(cls, identity: str, url: str, model: str, key_file: Path | None) -> "Endpoint":
        """Asks once, to learn the dimension."""
        if not url or not model:
            raise EmbedderError(
                "an endpoint needs CLAUDE_MEM_EMBEDDER_URL and CLAUDE_MEM_EMBEDDER_MODEL"
            )
        if problem := url_problem(url):
            raise EmbedderError(f"CLAUDE_MEM_EMBEDDER_URL={url} {problem}")
        try:
            key = key_file.read_text("utf-8").strip() if key_file else ""
        except (OSError, ValueError) as error:
            raise EmbedderError(f"CLAUDE_MEM_EMBEDDER_KEY_FILE cannot be read: {error}") from None
        probe = cls(identity, 0, url, model, key)
        return cls(identity, len(probe._ask(["a lamp"])[0]), url, model, key)

    def encode(self, texts: Sequence[str]) -> Floats:
        made = np.zeros((len(texts), self.dimension), np.float32)
        said = [number for number, text in enumerate(texts) if text.strip()]
        for start in range(0, len(said), AT_ONCE):
            numbers = said[start : start + AT_ONCE]
            answer = self._ask([texts[number][:LONGEST_TEXT] for number in numbers])
            if {len(row) for row in answer} != {self.dimension}:
                raise EmbedderError(
                    f"{self.url} answers with vectors of another length than before"
                )
            made[numbers] = answer
        return of_length_one(made)

    def _ask(self, texts: list[str]) -> list[list[float]]:
        headers = {"authorization": f"Bearer {self.key}"} if self.key else {}
        body: dict[str, Json] = {"model": self.model, "input": list(texts)}
        try:
            response = post_json_blocking(self.url, headers, body, SECONDS, self.key)
            if response.status != 200:
                raise EmbedderError(f"{self.url} answers HTTP {response.status}")
            return _vectors(response.json_object(), len(texts))
        except (RequestFailed, ValueError) as error:
            raise EmbedderError(f"{self.url} gives no vectors: {error}") from None


def _vectors(answer: dict[str, Any], count: int) -> list[list[float]]:
    """Raises ValueError where there are not as many as were asked for."""
    found = answer.get("embeddings")
    if found is None and isinstance(answer.get("data"), list):
        rows = [row for row in answer["data"] if isinstance(row, dict)]
        found = [row.get("embedding") for row in sorted(rows, key=lambda r: r.get("index") or 0)]
    if not isinstance(found, list) or len(found) != count or not all(map(_is_vector, found)):
        raise ValueError("the answer holds no vector for each text")
    return found


def _is_vector(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(number, int | float) and number == number for number in value)
    )
