"""How an older store becomes today's: Alembic revisions, run by `database.py` under a lock."""
