"""`python -m claude_mem` is the command `claude-mem`."""

import sys


def main() -> None:
    if sys.argv[1:] == ["mcp"]:  # one lives beside every session: it pays for no other command
        from claude_mem.mcp.shim import run

        sys.exit(run())
    from claude_mem import cli

    cli.main()


if __name__ == "__main__":
    main()
