"""Raw numbers: what was measured, of which product, and every value of it."""

import json
import os
import platform
import subprocess
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.measure import median
from claude_mem import __version__

OURS, SHIPPED, PEER = "ours", "ours, as shipped", "npm"
BARE = "python -I -S -c pass"
CODE = ("src", "bench/*.py", "pyproject.toml")


@dataclass(frozen=True, slots=True)
class Sample:
    case: str
    product: str
    unit: str
    values: tuple[float, ...]

    @property
    def median(self) -> float:
        return median(self.values)


class Results:
    """A file of results: each measure replaces its own part of it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.measures = self._read()

    def _read(self) -> dict[str, dict[str, Any]]:
        return json.loads(self._path.read_bytes()) if self._path.exists() else {}

    def add(self, measure: str, samples: Iterable[Sample], versions: dict[str, str]) -> None:
        self.measures = self._read()  # another run may have added something
        self.measures[measure] = {
            "date": datetime.now(UTC).strftime("%Y-%m-%d"),
            "versions": {"claude-mem": __version__, "commit": _commit(), **versions},
            "machine": _machine(),
            "samples": [
                {**asdict(sample), "values": [_rounded(v) for v in sample.values]}
                for sample in samples
            ],
        }
        self._path.parent.mkdir(exist_ok=True)
        self._path.write_text(_dump(self.measures), "utf-8")

    def samples(self, measure: str) -> list[Sample]:
        stored = self.measures.get(measure, {}).get("samples", [])
        return [
            Sample(s["case"], s["product"], s["unit"], tuple(map(float, s["values"])))
            for s in stored
        ]


def _rounded(value: float) -> float:
    return float(f"{value:.5g}")


def _dump(measures: dict[str, dict[str, Any]]) -> str:
    """One sample a line, so that a change of one number is a change of one line."""
    parts = []
    for name, measure in measures.items():
        head = {key: value for key, value in measure.items() if key != "samples"}
        lines = ",\n".join(f"  {json.dumps(sample)}" for sample in measure["samples"])
        head_text = json.dumps(head)[:-1]
        parts.append(f'{json.dumps(name)}: {head_text}, "samples": [\n{lines}\n]}}')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _commit() -> str:
    """Marked as changed if the code is; each measure changes results and pages."""
    commit = _git("rev-parse", "--short", "HEAD") or "unknown"
    return f"{commit}-dirty" if _git("status", "--porcelain", "--", *CODE) else commit


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], capture_output=True, text=True, check=False)
    return done.stdout.strip()


def _machine() -> dict[str, str]:
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    return {
        "cores": str(os.cpu_count()),
        "load (1, 5, 15 minutes)": load,
        "system": platform.system(),
        "python": platform.python_version(),
    }
