"""A model that takes longer than any measurement: connections are accepted, nothing is answered.

The npm package asks a model for every tool use. An answer would cost it time, an error makes it
try again: without an answer it does the least.
"""

import socket
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def silent_api() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0), backlog=4096) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
