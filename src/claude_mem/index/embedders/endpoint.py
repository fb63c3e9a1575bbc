"""Vectors from a server that the person chose: OpenAI's way of asking, or Ollama's.

It is contacted only when the settings name it. What is sent is what memories and questions say,
and the key, where there is one; never to another host than the one named.
"""

import json
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any

import numpy as np

from claude_mem.errors import EmbedderError
from claude_mem.index.vectors.blocks import Floats, of_length_one

SECONDS = 20.0
AT_ONCE = 64
LONGEST_TEXT = 8_000
LARGEST_ANSWER = 64 * 1024 * 1024


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Another host would be sent the texts, and the key."""

    def redirect_request(self, *_: Any) -> None:
        return None


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
        if not url.startswith(("http://", "https://")) or not model:
            raise EmbedderError(
                "an endpoint needs CLAUDE_MEM_EMBEDDER_URL and CLAUDE_MEM_EMBEDDER_MODEL"
            )
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
        head = {"Content-Type": "application/json"}
        if self.key:
            head["Authorization"] = f"Bearer {self.key}"
        body = json.dumps({"model": self.model, "input": texts}).encode()
        asked = urllib.request.Request(self.url, body, head)
        opener = urllib.request.build_opener(_NoRedirects)
        try:
            with opener.open(asked, timeout=SECONDS) as answer:
                return _vectors(json.loads(answer.read(LARGEST_ANSWER)), len(texts))
        except urllib.error.HTTPError as error:
            raise EmbedderError(f"{self.url} answers {error.code} {error.reason}") from None
        except (OSError, HTTPException, ValueError, RecursionError) as error:
            raise EmbedderError(f"{self.url} gives no vectors: {error}") from None


def _vectors(answer: Any, count: int) -> list[list[float]]:
    """Raises ValueError where there are not as many as were asked for."""
    if not isinstance(answer, dict):
        raise ValueError("the answer is not an object")
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
