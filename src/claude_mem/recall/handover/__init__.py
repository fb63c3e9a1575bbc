"""The hand-over to a new session, section by section; `recall/context.py` puts them together."""
