"""The title of a turn: what may become one, and whether it is understood alone."""
