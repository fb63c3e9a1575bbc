"""The database of the TypeScript claude-mem, read from a copy and merged session by session."""
