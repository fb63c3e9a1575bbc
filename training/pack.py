"""Pack a trained table as the model that ships. The same table always makes the same bytes.

python training/pack.py variant.npz [--into DIR] [--name NAME] [--card]
"""

import argparse
import json
from pathlib import Path

import numpy as np
from table import Table

from claude_mem.index.embedders.static_model import MAX_PIECES, SHIPPED, content_hash

NAME = "claude-mem-static-1"
MAX_SCALE = 2**12 - 1
MAX_BYTES = 10_000_000


def pack(table: Table, into: Path, name: str) -> str:
    into.mkdir(parents=True, exist_ok=True)
    scales = np.rint(table.scales * (MAX_SCALE / table.scales.max()))
    scales = np.maximum(scales, 1).astype(np.uint16)
    longest = (np.linalg.norm(table.rows.astype(np.float64), axis=1) * scales).max()
    if (longest * MAX_PIECES) ** 2 >= 2**63:
        raise SystemExit("the square of the longest sum does not fit in 63 bits")
    np.save(into / "rows.npy", np.ascontiguousarray(table.rows))
    np.save(into / "scales.npy", scales)
    (into / "vocabulary.txt").write_text("\n".join(table.vocabulary) + "\n", "utf-8", newline="\n")
    metadata = {"name": name, "dimension": table.rows.shape[1], "sha256": content_hash(into)}
    (into / "model.json").write_text(json.dumps(metadata, indent=1) + "\n", "utf-8", newline="\n")
    size = sum(file.stat().st_size for file in into.iterdir())
    if size > MAX_BYTES:
        raise SystemExit(f"{size:,} bytes are more than {MAX_BYTES:,}")
    print(json.dumps(metadata | {"pieces": len(scales), "bytes": size}))
    return str(metadata["sha256"])


def mean_of(weighted_paths: list[str]) -> Table:
    """The weighted mean of tables that are first scaled to the same mean length of their rows."""
    tables: list[tuple[Table, float]] = []
    for weighted_path in weighted_paths:
        path, _, weight = weighted_path.partition(":")
        tables.append((Table.load(Path(path)), float(weight or 1)))
    first = tables[0][0]
    if any(table.vocabulary != first.vocabulary for table, _ in tables):
        raise SystemExit("the tables are not of the same pieces")
    vectors = np.zeros(first.rows.shape, np.float32)
    for table, weight in tables:
        table_vectors = table.vectors()
        vectors += table_vectors * np.float32(weight / np.linalg.norm(table_vectors, axis=1).mean())
    return Table.of(vectors, first.vocabulary, {"of": weighted_paths})


def main() -> None:
    parser = argparse.ArgumentParser(description="Pack a trained table as the model that ships")
    parser.add_argument("tables", nargs="+", help="file, or file:weight")
    parser.add_argument("--into", type=Path, default=SHIPPED)
    parser.add_argument("--name", default=NAME)
    options = parser.parse_args()
    pack(mean_of(options.tables), options.into, options.name)


if __name__ == "__main__":
    main()
