"""Keep: canonical state in SQLite. Everything else can be made again from it.

`Store` is the seam, `StoreReader` its reading half; `projects`, `sessions`, `turns`, `memories`,
`queue` and others hold the SQL by noun.
"""

from claude_mem.store.reader import StoreReader
from claude_mem.store.store import Store

__all__ = ["Store", "StoreReader"]
