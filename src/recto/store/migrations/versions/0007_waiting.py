"""Messages that were said while a reply came are kept until they enter the conversation."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.create_table(
        "waiting",
        sa.Column("n", sa.Integer, primary_key=True),
        sa.Column("id", sa.Text, nullable=False, unique=True),
        sa.Column("conversation", sa.Integer, sa.ForeignKey("conversations.n"), nullable=False),
        sa.Column("created", sa.Text, nullable=False),
        sa.Column("blocks", sa.Text, nullable=False),
    )
    op.create_index("waiting_conversation", "waiting", ["conversation"])
