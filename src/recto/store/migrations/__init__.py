"""How an older store becomes today's: Alembic revisions, run by `database.py` under a lock."""

LATEST = 19
# Newest last. A store with any other revision was written by a newer version.
REVISIONS = tuple(f"{number:04}" for number in range(1, LATEST + 1))
