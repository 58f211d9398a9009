"""Sums of costs hold tokens too. They are made anew by the next report."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    text = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
    op.execute("DELETE FROM summed_conversations")
    op.drop_table("spending_totals")
    op.create_table(
        "spending_totals",
        sa.Column("conversation", sa.Integer, sa.ForeignKey("conversations.n"), primary_key=True),
        *(sa.Column(name, text, primary_key=True) for name in ("day", "model", "purpose")),
        sa.Column("requests", sa.Integer, nullable=False),
        sa.Column("cost", sa.Float, nullable=False),
        sa.Column("unpriced", sa.Integer, nullable=False),
        sa.Column("open", sa.Float, nullable=False),
        *(sa.Column(name, sa.BigInteger, nullable=False) for name in ("input", "output", "cache_read")),
        *(sa.Column(name, text, nullable=False) for name in ("first", "last")),
        sqlite_with_rowid=False,
    )
