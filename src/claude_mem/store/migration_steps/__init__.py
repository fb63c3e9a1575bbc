"""Statements and conversions of released migrations: they import nothing that may change."""
