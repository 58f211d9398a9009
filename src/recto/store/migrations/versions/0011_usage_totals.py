"""Reports on sources, documents and costs read sums that are kept by conversation. The first report makes them."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    text = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
    op.create_table(
        "summed_conversations",
        sa.Column("conversation", sa.Integer, sa.ForeignKey("conversations.n"), primary_key=True),
        sa.Column("replies", sa.Integer, nullable=False),
    )
    op.create_table(
        "source_totals",
        sa.Column("conversation", sa.Integer, sa.ForeignKey("conversations.n"), primary_key=True),
        sa.Column("source", sa.Integer, sa.ForeignKey("source_names.n"), primary_key=True),
        *(sa.Column(name, sa.Integer, nullable=False) for name in ("replies", "always", "manual", "by_agent")),
        sa.Column("tokens", sa.BigInteger, nullable=False),
        *(sa.Column(name, sa.Integer, nullable=False) for name in ("looked", "called", "quoted", "paraphrased")),
        sa.Column("last", sa.Integer, nullable=False),
        sa.Column("used", sa.Integer),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "document_totals",
        sa.Column("conversation", sa.Integer, sa.ForeignKey("conversations.n"), primary_key=True),
        *(sa.Column(name, text, primary_key=True) for name in ("vault", "path", "month")),
        *(sa.Column(name, sa.Integer, nullable=False) for name in ("uses", "direct")),
        *(sa.Column(name, text, nullable=False) for name in ("first", "last")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "spending_totals",
        sa.Column("conversation", sa.Integer, sa.ForeignKey("conversations.n"), primary_key=True),
        *(sa.Column(name, text, primary_key=True) for name in ("day", "model", "purpose")),
        sa.Column("requests", sa.Integer, nullable=False),
        sa.Column("cost", sa.Float, nullable=False),
        sa.Column("unpriced", sa.Integer, nullable=False),
        sa.Column("open", sa.Float, nullable=False),
        *(sa.Column(name, text, nullable=False) for name in ("first", "last")),
        sqlite_with_rowid=False,
    )
