"""Clients of the endpoint: their keys, their conversations, and the prints by which messages are known again."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    text = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
    op.create_table(
        "access_keys",
        sa.Column("n", sa.Integer, primary_key=True),
        sa.Column("name", text, nullable=False, unique=True),
        sa.Column("sha256", sa.LargeBinary, nullable=False, unique=True),
        sa.Column("created", text, nullable=False),
        sa.Column("details", text, nullable=False),
    )
    op.create_table(
        "client_conversations",
        sa.Column("conversation", sa.Integer, sa.ForeignKey("conversations.n"), primary_key=True),
        sa.Column("owner", text, nullable=False),
        sa.Column("name", text),
    )
    op.create_index("client_conversations_owner", "client_conversations", ["owner", "name"])
    op.create_table(
        "client_messages",
        sa.Column("message", sa.Integer, sa.ForeignKey("messages.n"), primary_key=True),
        sa.Column("owner", text, nullable=False),
        sa.Column("print", sa.LargeBinary, nullable=False),
        sa.Column("chain", sa.LargeBinary, nullable=False),
    )
    op.create_index("client_messages_chain", "client_messages", ["owner", "chain"])
    op.create_index("client_messages_print", "client_messages", ["owner", "print"])
