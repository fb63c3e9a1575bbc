"""claude-mem mcp: its help text; `claude_mem.__main__` runs it without importing the rest."""

import click


@click.command()
def mcp() -> None:
    """Run the MCP server for an agent on stdin and stdout. Starts the worker if needed."""
    from claude_mem.mcp.shim import run

    raise SystemExit(run())


commands = [mcp]
