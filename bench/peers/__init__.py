"""claude-mem next to the TypeScript claude-mem of npm, in turns on one machine.

`make bench-peers` installs the npm package into a temporary directory, measures both, writes the
raw numbers to `bench/results/peers.json` and from them `docs/benchmarks.md` with its plots.
What has nothing to be compared with there is measured next to the least that it could cost
(`baselines`). Nothing of the npm package is part of this repository. No model can be reached: its
observer asks an API on loopback, its vector store is off, and so is its telemetry.
"""
