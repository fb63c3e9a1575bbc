"""Index: full text and vectors of the memories. Derived from the store; may be deleted any time.

`text` holds the full-text tables and their queries, `vectors` the semantic index, `embedders` what
turns texts into vectors.
"""
