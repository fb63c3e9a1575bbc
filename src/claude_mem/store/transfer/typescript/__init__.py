"""The TypeScript claude-mem's database, imported session by session.

`snapshot` copies the file, `reader` turns its rows into the `sessions` of whatever schema they
have, `writer` stores a session as one of ours, and `importer` runs all of it.
"""
