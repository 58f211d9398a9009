"""Costs of endpoint calls that belong to no conversation."""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"


def upgrade() -> None:
    text = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
    op.create_table(
        "charges",
        sa.Column("n", sa.Integer, primary_key=True),
        sa.Column("owner", text, nullable=False),
        sa.Column("model", text, nullable=False),
        sa.Column("purpose", text, nullable=False),
        sa.Column("created", text, nullable=False),
        sa.Column("cost_bound", sa.Float),
        sa.Column("cost", sa.Float),
        *(sa.Column(name, sa.BigInteger, nullable=False) for name in ("input", "output", "cache_read")),
    )
    op.create_index("charges_created", "charges", ["created", "cost", "cost_bound"])
    op.create_index("charges_owner", "charges", ["owner", "created", "cost", "cost_bound"])
