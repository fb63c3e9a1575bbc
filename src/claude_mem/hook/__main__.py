"""`python -I -S <this file> <dialect> <Event>`: what the launcher runs.

A script is compiled at every start, a module is not: so this file only finds the package.
"""

import sys

if __name__ == "__main__":
    status = 1  # the launcher makes 0 of it, and a line in the log
    try:
        sys.path.insert(0, __file__[: __file__.rindex("/claude_mem/hook/")])
        from claude_mem.hook.capture import run

        status = run(sys.argv[1:])
    finally:
        # Skips the interpreter's teardown: nothing is left to flush.
        sys.modules["posix"]._exit(status)
