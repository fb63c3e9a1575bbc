# Runs the launcher that claude-mem keeps in its data directory; without it, does nothing.
launcher="${CLAUDE_MEM_DATA_DIR:-$HOME/.claude-mem}/hook"
[ -x "$launcher" ] && exec "$launcher" "$@"
exit 0
