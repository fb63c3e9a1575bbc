"""Intake: what agents send, over the spool, HTTP or their transcripts, read into events."""
