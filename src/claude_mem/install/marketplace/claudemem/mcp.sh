# Runs the MCP server launcher of claude-mem, of the same directory as hooks/run.sh.
launcher="$HOME/.claude-mem/mcp"
[ -x "$launcher" ] && exec "$launcher"
echo "claude-mem: $launcher does not exist, run: claude-mem worker start" >&2
exit 1
