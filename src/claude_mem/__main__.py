"""`python -m claude_mem` is the command `claude-mem`."""

import sys


def main() -> None:
    if sys.argv[1:] == ["mcp"]:  # every session has one running, so it imports nothing else
        from claude_mem.mcp.shim import run

        sys.exit(run())
    if sys.argv[1:2] in (["search"], ["context"], ["status"]):
        from claude_mem import quick_commands

        if quick_commands.run(sys.argv[1:]):
            return
    from claude_mem import cli

    cli.main()


if __name__ == "__main__":
    main()
