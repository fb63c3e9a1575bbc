"""Vector search: storage, the cache in memory, calibration and duplicates."""
