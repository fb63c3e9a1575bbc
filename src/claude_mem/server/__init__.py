"""Show: the HTTP API and its event stream, over the worker. No state of its own."""
