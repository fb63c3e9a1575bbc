"""`python -m claude_mem` is the command `claude-mem`."""

from claude_mem.cli import main

main()
