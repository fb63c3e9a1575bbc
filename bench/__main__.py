"""`python -m bench [NAME …]`: runs the named benchmarks; without names, all but `clients`."""

import sys

from bench import (
    client,
    clients,
    commands,
    footprint,
    hooks,
    ingest,
    mcp_server,
    paraphrase,
    recall,
    redaction,
    scale,
    search,
    vectors,
)
from bench.measure import run

BENCHMARKS = {
    "hooks": hooks.measure,
    "client": client.measure,
    "ingest": ingest.measure,
    "scale": scale.measure,
    "search": search.measure,
    "footprint": footprint.measure,
    "mcp": mcp_server.measure,
    "commands": commands.measure,
    "clients": clients.measure,
    "redaction": redaction.measure,
    "recall": recall.measure,
    "paraphrase": paraphrase.measure,
    "vectors": vectors.measure,
}
BY_NAME_ONLY = ("clients",)  # it waits a minute until idle clients are closed


def main(names: list[str]) -> int:
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        print(f"unknown benchmark {unknown[0]!r}, expected {', '.join(BENCHMARKS)}")
        return 2
    selected = names or [name for name in BENCHMARKS if name not in BY_NAME_ONLY]
    return run({name: BENCHMARKS[name] for name in selected})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
