"""Recall: what a session is given back. Never writes."""
