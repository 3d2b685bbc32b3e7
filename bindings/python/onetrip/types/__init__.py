"""Types of PostgreSQL that have no class of their own in Python."""
