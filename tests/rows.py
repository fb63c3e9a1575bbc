"""What another connection sees of a test's database: only what was committed."""

import sqlite3
from contextlib import closing
from typing import Any

from claude_mem.config import Layout


class CommittedRows:
    """Reads committed rows, for whatever has a data directory."""

    @property
    def layout(self) -> Layout:
        raise NotImplementedError

    def rows(self, query: str, *values: object) -> list[dict[str, Any]]:
        if not self.layout.database.exists():
            return []
        with closing(sqlite3.connect(self.layout.database, timeout=10)) as connection:
            connection.row_factory = sqlite3.Row
            return [dict(row) for row in connection.execute(query, values)]

    def column(self, query: str, *values: object) -> list[Any]:
        return [next(iter(row.values())) for row in self.rows(query, *values)]

    def count(self, table: str) -> int:
        return int(self.column(f"SELECT count(*) FROM {table}")[0])
