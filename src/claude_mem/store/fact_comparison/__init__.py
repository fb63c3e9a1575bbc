"""Whether two facts say the same, or one replaces the other: compared as texts, without a
database."""
