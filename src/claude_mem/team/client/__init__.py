"""A worker that joined a team: pushes what its projects share, and asks for what others shared."""
