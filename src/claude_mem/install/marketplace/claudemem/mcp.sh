# Runs the MCP server that claude-mem keeps in its data directory; without it, there is none.
launcher="${CLAUDE_MEM_DATA_DIR:-$HOME/.claude-mem}/mcp"
[ -x "$launcher" ] && exec "$launcher"
echo "claude-mem: $launcher is not there: claude-mem worker start" >&2
exit 1
