"""Show, to agents: tools over recall by the Model Context Protocol, and the stdio shim.

`shim` lives beside every session and loads next to nothing. Everything else runs in the worker:
`endpoint` is the route, `protocol` the official SDK, loaded at its first use, `tools` what they do.
"""
