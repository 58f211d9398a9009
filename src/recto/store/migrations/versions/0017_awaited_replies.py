"""First questions of clients of the endpoint, until their reply has gone out whole."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    text = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
    op.create_table(
        "awaited_replies",
        sa.Column("message", sa.Integer, sa.ForeignKey("messages.n"), primary_key=True),
        sa.Column("process", text, nullable=False),
        sa.Column("asked", text, nullable=False),
    )
