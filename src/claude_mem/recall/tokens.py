"""The size of a text for a model, and for the client's limit on hook output."""


def estimate_tokens(text: str) -> int:
    """Estimates the tokens, four bytes each, rounded up: within a fifth for English and code."""
    return tokens_of_bytes(len(text.encode("utf-8", "replace")))


def tokens_of_bytes(count: int) -> int:
    return (count + 3) // 4


def utf16_units(text: str) -> int:
    """The length as JavaScript counts it."""
    return len(text.encode("utf-16-le", "replace")) // 2
