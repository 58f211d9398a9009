"""How an older store becomes today's: Alembic revisions, run by `database.py` under a lock."""

# Newest last. A store with any other revision was written by a newer version.
REVISIONS = ("0001", "0002", "0003", "0004", "0005", "0006", "0007", "0008", "0009", "0010", "0011", "0012", "0013")
