"""`python -I -S <this file>`: run by the launcher of the MCP server.

A script is compiled at every start, a module is not, so this file only locates the package.
"""

import sys

if __name__ == "__main__":
    sys.path.insert(0, __file__[: __file__.rindex("/claude_mem/mcp/")])
    from claude_mem.mcp.shim import run

    sys.exit(run())
