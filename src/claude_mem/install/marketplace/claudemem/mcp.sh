# Runs the MCP server launcher in the data directory of claude-mem.
launcher="${CLAUDE_MEM_DATA_DIR:-$HOME/.claude-mem}/mcp"
[ -x "$launcher" ] && exec "$launcher"
echo "claude-mem: $launcher does not exist, run: claude-mem worker start" >&2
exit 1
