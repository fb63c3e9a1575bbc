"""A Chroma server of a test's own, on this machine.

The program is in the wheel `chromadb`, which needs none of its dependencies for that:
`python -m tests.chroma` installs it for `make test-all`.
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.conftest import wait_until
from tests.test_guard import free_port

PACKAGES = Path(sys.prefix) / "chroma"
_SERVE = "import chromadb_rust_bindings, sys; chromadb_rust_bindings.cli(['chroma', *sys.argv[1:]])"


@contextmanager
def running_chroma(directory: Path) -> Iterator[str]:
    """Runs Chroma and returns its URL."""
    if not (PACKAGES / "chromadb_rust_bindings").exists():
        pytest.skip("needs a Chroma server: python -m tests.chroma")
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = ["run", "--path", str(directory), "--host", "127.0.0.1", "--port", str(port)]
    process = subprocess.Popen(
        [sys.executable, "-c", _SERVE, *command],
        env={"PYTHONPATH": str(PACKAGES), "HOME": str(directory)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )

    def responds() -> bool:
        try:
            return httpx.get(f"{url}/api/v2/heartbeat", timeout=5).status_code == 200
        except httpx.HTTPError:
            return False

    try:
        wait_until(responds, "the start of Chroma")
        yield url
    finally:
        process.kill()
        process.wait()


def main() -> None:
    """A machine that cannot install it skips the tests."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*command, "--no-deps", "--target", str(PACKAGES), "chromadb>=1.0"])


if __name__ == "__main__":
    main()
