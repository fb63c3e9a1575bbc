"""Vector search: the table, the cache in memory, calibration and duplicates."""
