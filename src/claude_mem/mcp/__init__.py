"""Show, to agents: tools over the Model Context Protocol, and the stdio shim.

`shim` is the server process of each session and imports next to nothing. The rest runs in the
worker: `endpoint` is the HTTP route, `tool_server` serves our tools with the official SDK, which is
imported with the first message, `tools` are the tools.
"""
