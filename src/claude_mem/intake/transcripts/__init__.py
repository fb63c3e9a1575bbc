"""Transcripts: the sessions that a client has on disk, read as the events its hooks send."""
