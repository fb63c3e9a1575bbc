"""Secrets are removed from text as `[redacted:kind]` before it reaches the database or a model.

Private text is another matter: hook/private_text.py removes it before anything is written.
"""

from claude_mem.redaction.redactor import Redactor, load_finders

__all__ = ["Redactor", "load_finders"]
