"""The first schema: conversations, messages, deltas, pieces, requests, counts, words."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "conversations",
        sa.Column("n", sa.Integer, primary_key=True),
        sa.Column("id", sa.Text, nullable=False, unique=True),
        sa.Column("title", sa.Text, nullable=False),
        sa.Column("agent", sa.Text, nullable=False),
        sa.Column("created", sa.Text, nullable=False),
        sa.Column("updated", sa.Text, nullable=False),
        sa.Column("head", sa.Integer),
        sa.Column("details", sa.Text, nullable=False),
    )
    op.create_table(
        "messages",
        sa.Column("n", sa.Integer, primary_key=True),
        sa.Column("id", sa.Text, nullable=False, unique=True),
        sa.Column("conversation", sa.Integer, sa.ForeignKey("conversations.n"), nullable=False),
        sa.Column("parent", sa.Integer, sa.ForeignKey("messages.n")),
        sa.Column("depth", sa.Integer, nullable=False),
        sa.Column("said", sa.Integer, nullable=False),
        sa.Column("compaction", sa.Integer),
        sa.Column("role", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("created", sa.Text, nullable=False),
        sa.Column("request", sa.Integer, sa.ForeignKey("requests.n")),
        sa.Column("blocks", sa.Text, nullable=False),
        sa.Column("details", sa.Text, nullable=False),
    )
    op.create_index("messages_parent", "messages", ["parent"])
    op.create_index("messages_conversation", "messages", ["conversation"])
    op.create_index("messages_request", "messages", ["request"], sqlite_where=sa.text("request IS NOT NULL"))
    op.create_table(
        "deltas",
        sa.Column("n", sa.Integer, primary_key=True),
        sa.Column("message", sa.Integer, sa.ForeignKey("messages.n"), nullable=False),
        sa.Column("growth", sa.Text, nullable=False),
    )
    op.create_index("deltas_message", "deltas", ["message"])
    op.create_table(
        "pieces",
        sa.Column("n", sa.Integer, primary_key=True),
        sa.Column("sha256", sa.LargeBinary, nullable=False, unique=True),
        sa.Column("data", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "requests",
        sa.Column("n", sa.Integer, primary_key=True),
        sa.Column("id", sa.Text, nullable=False, unique=True),
        sa.Column("conversation", sa.Integer, sa.ForeignKey("conversations.n"), nullable=False),
        sa.Column("message", sa.Integer, sa.ForeignKey("messages.n")),
        sa.Column("purpose", sa.Text, nullable=False),
        sa.Column("created", sa.Text, nullable=False),
        sa.Column("base", sa.Integer, sa.ForeignKey("requests.n")),
        sa.Column("kept", sa.Integer, nullable=False),
        sa.Column("added", sa.Text, nullable=False),
        sa.Column("chain", sa.Integer, nullable=False),
        sa.Column("sha256", sa.LargeBinary, nullable=False),
        sa.Column("size", sa.Integer, nullable=False),
        sa.Column("stable", sa.Integer, nullable=False),
        sa.Column("stable_sha256", sa.LargeBinary, nullable=False),
        sa.Column("account", sa.LargeBinary, nullable=False),
        sa.Column("outcome", sa.Text, nullable=False, server_default=sa.text("'{}'")),
    )
    op.create_index("requests_conversation", "requests", ["conversation"])
    op.create_table(
        "meters",
        sa.Column("n", sa.Integer, primary_key=True),
        sa.Column("key", sa.Text, nullable=False, unique=True),
    )
    op.create_table(
        "counts",
        sa.Column("meter", sa.Integer, sa.ForeignKey("meters.n"), primary_key=True),
        sa.Column("sha", sa.LargeBinary, primary_key=True),
        sa.Column("tokens", sa.Integer, nullable=False),
        sqlite_with_rowid=False,
    )
    if op.get_bind().dialect.name == "sqlite":
        op.execute(
            "CREATE VIRTUAL TABLE words USING fts5(text, content='', tokenize='porter unicode61 remove_diacritics 2')"
        )
