"""The team server: a stateless HTTP application on PostgreSQL, in any number of processes."""
