"""Memory exported to a file and imported from one.

`tables` lists the canonical tables. `export` writes their rows as lines, `export_reader` checks
and cleans such lines, `merge` adds the rows to a database, and `restore` runs both. `typescript`
imports the database of the TypeScript claude-mem.
"""
