"""Upgrades an older store: Alembic revisions, run by `database.py` under a lock."""

# Oldest first. A store with any other revision is not opened.
REVISIONS = ("0018", "0019", "0020")
