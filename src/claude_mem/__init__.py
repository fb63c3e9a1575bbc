"""A memory for coding agents that outlives the session."""

__version__ = "0.1.0"
