"""The names of the team database and the sizes that its tables were made with.

The application acts as the role `claude_mem_server`, which owns nothing and bypasses nothing. What
it can read depends on `claude_mem.person`, which each transaction sets for itself; without it, it
reads no row.
"""

SCHEMA = "claude_mem"
ROLE = "claude_mem_server"
PARTITIONS = 8
DIMENSION = 256  # of a vector
