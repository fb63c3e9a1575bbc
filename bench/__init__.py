"""What it costs, measured. `python -m bench` runs all, `python -m bench hooks` one.

Machines are shared and noisy, so a figure is a ratio to a baseline taken in turns with it in the
same run. Nothing here asserts a time: a missed target is printed, and the exit code stays 0.
"""
