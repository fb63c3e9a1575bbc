"""Full-text search: which words a memory is found by, its tables, and their matches."""
