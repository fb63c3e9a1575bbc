# Runs the launcher in the data directory of claude-mem; does nothing if there is none.
launcher="${CLAUDE_MEM_DATA_DIR:-$HOME/.claude-mem}/hook"
[ -x "$launcher" ] && exec "$launcher" "$@"
exit 0
