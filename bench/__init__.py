"""Benchmarks. `python -m bench` runs all of them, `python -m bench hooks` one.

Machines are shared and noisy, so a figure is a ratio to a baseline measured in turns with it in the
same run. No benchmark fails on a time: a missed target is printed, and the exit code stays 0.
"""
