"""Team memory: what projects share through a server on PostgreSQL.

`server/` is the server, `client/` the part of the worker that talks to it, `wire.py` what both
agree on. Nobody who joined no team imports any of it.
"""
