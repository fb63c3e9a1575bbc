"""Capture: stdin to spool to exit 0.

Everything here runs inside the user's session on a bare `python -I -S`, so it imports nothing
but builtins and its own siblings. tests/test_hook_modules.py holds the list of what may load.
"""
