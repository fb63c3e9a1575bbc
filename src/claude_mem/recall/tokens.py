"""How long a text is for a model, and for the client's hook limit."""


def estimate_tokens(text: str) -> int:
    """About four bytes a token: right within a fifth for English and code, and never free."""
    return tokens_of_bytes(len(text.encode("utf-8", "replace")))


def tokens_of_bytes(count: int) -> int:
    return (count + 3) // 4


def utf16_units(text: str) -> int:
    return len(text.encode("utf-16-le", "replace")) // 2
