"""Reports on sources by day, and on documents that were used together, read sums too. The next report makes them."""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    text = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
    counts = ("replies", "included", "chosen", "looked", "used", "scored")
    op.execute("DELETE FROM summed_conversations")
    op.create_table(
        "source_days",
        sa.Column("conversation", sa.Integer, sa.ForeignKey("conversations.n"), primary_key=True),
        sa.Column("day", text, primary_key=True),
        *(sa.Column(name, sa.Integer, nullable=False) for name in counts),
        sa.Column("score", sa.Float, nullable=False),
        sa.Column("tokens", sa.BigInteger, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "document_pairs",
        sa.Column("conversation", sa.Integer, sa.ForeignKey("conversations.n"), primary_key=True),
        *(sa.Column(name, text, primary_key=True) for name in ("vault", "path", "other")),
        sa.Column("turns", sa.Integer, nullable=False),
        sqlite_with_rowid=False,
    )
