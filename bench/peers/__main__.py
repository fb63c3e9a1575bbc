"""`python -m bench.peers [MEASURE …]`: all measures or the named ones, then the page."""

import argparse
import sys
import tempfile
import traceback
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from bench.peers import footprint, hooks, ingest, recall, report, scale, sessions, summary
from bench.peers.install import Installation, install
from bench.peers.samples import Results, Sample

ROOT = Path(__file__).resolve().parent.parent.parent
RESULTS = ROOT / "bench" / "results" / "peers.json"
SIZES = "1000,10000,100000,1000000"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser("python -m bench.peers", description=__doc__)
    parser.add_argument("measures", nargs="*", metavar="MEASURE")
    parser.add_argument("--sizes", default=SIZES, help=f"observations (default {SIZES})")
    parser.add_argument("--shipped-sizes", default=SIZES, help="with record and vectors, the same")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--runs", type=int, default=20, help="of the real client")
    parser.add_argument("--events", type=int, default=480, help="of a round of ingest")
    parser.add_argument("--install", type=Path, help="where the npm package is or will be")
    parser.add_argument("--stores", type=Path, help="where filled databases are kept")
    parser.add_argument("--questions", type=Path, metavar="DIR", help="adds the measure recall")
    parser.add_argument("--report-only", action="store_true", help="only write the page")
    options = parser.parse_args(arguments)
    results = Results(RESULTS)
    failed = [] if options.report_only else _measure(options, results)
    report.write(results, ROOT / "docs")
    summary.write(results, ROOT / "README.md")
    if failed:
        print(f"failed: {', '.join(failed)}")
    return 1 if failed else 0


def _measure(options: argparse.Namespace, results: Results) -> list[str]:
    failed = []
    with ExitStack() as stack:
        temporary = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="claude-mem-")))
        installation = install(options.install or temporary / "npm")
        measures = _measures(options, installation, temporary)
        for name in options.measures or measures:
            print(f"== {name}", flush=True)
            try:
                samples = measures[name]()
            except Exception:
                traceback.print_exc()
                failed.append(name)
                continue
            results.add(name, samples, installation.versions)
            for sample in samples:
                print(f"  {sample.product}: {sample.case}: {sample.median:.4g} {sample.unit}")
    return failed


def _measures(
    options: argparse.Namespace, installation: Installation, temporary: Path
) -> dict[str, Callable[[], list[Sample]]]:
    sizes, shipped_sizes = (
        [int(size) for size in text.split(",")] for text in (options.sizes, options.shipped_sizes)
    )
    rounds, stores = options.rounds, options.stores or temporary / "stores"
    measures: dict[str, Callable[[], list[Sample]]] = {
        "hooks": lambda: hooks.measure(installation, rounds),
        "search": lambda: scale.measure(installation, stores, sizes, shipped_sizes, rounds),
        "ingest": lambda: ingest.measure(installation, options.events, max(3, rounds // 4)),
        "kill": lambda: ingest.measure_kill(installation),
        "footprint": lambda: footprint.measure(installation, max(3, rounds // 4), temporary),
        "sessions": lambda: sessions.measure(installation, options.runs),
    }
    if options.questions:
        measures["recall"] = lambda: recall.measure(installation, options.questions)
    return measures


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
