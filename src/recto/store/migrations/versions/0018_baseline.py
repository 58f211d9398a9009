"""The schema of the first release. Creates no tables: a new store gets those of `schema.py`, not these steps."""

revision = "0018"
down_revision = None


def upgrade() -> None:
    pass
