"""Which of two versions is the newer."""


def version_key(version: str) -> tuple[int, ...]:
    """0.10.1 is newer than 0.9; what is not a number counts as nothing."""
    return tuple(int(part) if part.isdigit() else 0 for part in version.split("+")[0].split("."))
