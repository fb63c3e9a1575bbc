"""Show, to agents: tools over the Model Context Protocol, and the stdio shim.

`shim` is the server process of each session and imports next to nothing. The rest runs in the
worker: `endpoint` is the HTTP route, `tool_definitions` describe the tools, and `tools` are what
they do, served with the official SDK, which is imported with the first call.
"""
