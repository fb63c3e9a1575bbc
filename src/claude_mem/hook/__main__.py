"""`python -I -S <this file> <dialect> <Event>`: what the launcher runs.

Python compiles a script at every start but caches modules, so this file only imports the package.
"""

import sys

if __name__ == "__main__":
    status = 1  # the launcher logs it and exits with 0
    try:
        sys.path.insert(0, __file__[: __file__.rindex("/claude_mem/hook/")])
        from claude_mem.hook.capture import run

        status = run(sys.argv[1:])
    finally:
        # Skip the interpreter's teardown: there is nothing to flush.
        sys.modules["posix"]._exit(status)
