"""claude-mem mcp: said here for its help; `claude_mem.__main__` runs it without the rest."""

import click


@click.command()
def mcp() -> None:
    """The MCP server for an agent, on stdin and stdout. Starts the worker when needed."""
    from claude_mem.mcp.shim import run

    raise SystemExit(run())


commands = [mcp]
