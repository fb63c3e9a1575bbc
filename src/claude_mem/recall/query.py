"""What is searched for: a text, the filters that a memory must pass, and which page of the results.

`parsed_text` reads the text; `params` makes queries of the parameters of HTTP, MCP and the CLI.
"""

from dataclasses import dataclass
from typing import Literal

from claude_mem.index.text.queries import NO_FILTERS, Filters

Order = Literal["relevance", "date_desc", "date_asc"]
ORDERS: tuple[Order, ...] = ("relevance", "date_desc", "date_asc")
DEFAULT_LIMIT = 8


@dataclass(frozen=True, slots=True)
class Query:
    text: str = ""  # empty: everything that passes the filters, newest first
    filters: Filters = NO_FILTERS
    limit: int = DEFAULT_LIMIT
    offset: int = 0
    order: Order = "relevance"
