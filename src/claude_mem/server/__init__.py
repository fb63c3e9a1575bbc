"""Show: the HTTP API and its event stream. It keeps no state: everything is the worker's."""
