"""Five made-up sessions, and files with the context and the facts that come of each."""
