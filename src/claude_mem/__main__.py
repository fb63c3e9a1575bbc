"""`python -m claude_mem` is the command `claude-mem`."""

import sys


def main() -> None:
    if sys.argv[1:] == ["mcp"]:  # every session has one running, so it imports nothing else
        from claude_mem.mcp.shim import run

        sys.exit(run())
    from claude_mem import cli

    cli.main()


if __name__ == "__main__":
    main()
