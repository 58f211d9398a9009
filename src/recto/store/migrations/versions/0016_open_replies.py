"""Which process writes a reply, where several servers share a database."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    text = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
    op.create_table(
        "open_replies",
        sa.Column("message", sa.Integer, sa.ForeignKey("messages.n"), primary_key=True),
        sa.Column("process", text, nullable=False),
    )
