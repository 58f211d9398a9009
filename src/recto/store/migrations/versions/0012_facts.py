"""What is remembered between conversations."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    text = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
    op.create_table(
        "facts",
        sa.Column("n", sa.Integer, primary_key=True),
        sa.Column("text", text, nullable=False),
        sa.Column("kind", text, nullable=False),
        sa.Column("created", text, nullable=False),
        sa.Column("learned_by", text, nullable=False),
        sa.Column("conversation", text),
        sa.Column("message", text),
        sa.Column("last_used", text),
        sa.Column("uses", sa.Integer, nullable=False),
        sa.Column("confidence", sa.Float, nullable=False),
        sa.Column("replaced_by", sa.Integer),
        sa.Column("topic", sa.Integer),
        sa.Column("history", text, nullable=False),
        sa.Column("forgotten", text),
        sa.Column("revision", sa.Integer, nullable=False),
    )
    op.create_index("facts_revision", "facts", ["revision"], unique=True)
    op.create_index("facts_message", "facts", ["message"])
    op.create_index("facts_topic", "facts", ["topic"])
