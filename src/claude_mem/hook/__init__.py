"""Capture: stdin to spool to exit 0.

This code runs inside the user's session on a bare `python -I -S`, so it imports only builtins and
its own siblings. tests/test_hook_modules.py lists every module that may be loaded.
"""
