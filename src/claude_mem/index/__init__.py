"""Index: what finds a memory again. Derived from the store, and may be deleted at any time.

`words` makes text searchable, `documents` reads memories as documents, `full_text` keeps the
tables, `matches` asks them. `static_model` gives texts vectors by meaning, out of the rows of their
`wordpieces`.
"""
