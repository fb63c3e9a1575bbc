"""Statements of released migrations of the team database: they are never edited."""
