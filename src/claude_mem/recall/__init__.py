"""Recall: search, timeline, full memories, and the context of a new session. Never writes."""
