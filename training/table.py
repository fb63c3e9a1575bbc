"""A trained table as a file: int8 rows, one scale for each, their pieces and the figures."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Table:
    rows: NDArray[np.int8]
    scales: NDArray[np.float32]
    vocabulary: list[str]
    figures: dict[str, Any]

    @classmethod
    def of(
        cls, vectors: NDArray[np.float32], vocabulary: list[str], figures: dict[str, Any]
    ) -> "Table":
        largest = np.maximum(np.abs(vectors).max(axis=1), 1e-12)
        rows = np.rint(vectors * (127 / largest[:, None])).astype(np.int8)
        return cls(rows, (largest / 127).astype(np.float32), vocabulary, figures)

    def vectors(self) -> NDArray[np.float32]:
        return self.rows.astype(np.float32) * self.scales[:, None]

    def save(self, path: Path) -> None:
        np.savez_compressed(
            path,
            rows=self.rows,
            scales=self.scales,
            vocabulary=np.frombuffer("\n".join(self.vocabulary).encode(), np.uint8),
            figures=np.frombuffer(json.dumps(self.figures).encode(), np.uint8),
        )

    @classmethod
    def load(cls, path: Path) -> "Table":
        with np.load(path) as archive:
            return cls(
                archive["rows"],
                archive["scales"],
                archive["vocabulary"].tobytes().decode().split("\n"),
                json.loads(archive["figures"].tobytes()),
            )
