"""Move: memory out of the database and into it, as files.

`tables` says what is canonical. `export` writes it as lines, `records` reads such lines as a
stranger's, `merge` puts them into a database that may hold memory already, `restore` drives both.
`predecessor` reads the database of the TypeScript claude-mem and `adopt` keeps what it finds.
"""
