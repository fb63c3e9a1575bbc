# Runs the launcher of claude-mem; does nothing if there is none. The directory does not come from
# CLAUDE_MEM_DATA_DIR, which a project can set: `claude-mem install` names another one.
launcher="$HOME/.claude-mem/hook"
[ -x "$launcher" ] && exec "$launcher" "$@"
exit 0
