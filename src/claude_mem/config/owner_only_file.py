"""Files that only their owner may read."""

import os
import tempfile
from pathlib import Path


def write_private(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Replace a file atomically; only its owner may read it."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix="." + path.name)
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        temporary.chmod(mode)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
