"""Which documents messages refer to gets a table of its own."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.create_table(
        "uses",
        sa.Column("n", sa.Integer, primary_key=True),
        sa.Column("message", sa.Integer, sa.ForeignKey("messages.n"), nullable=False),
        sa.Column("vault", sa.Text, nullable=False),
        sa.Column("path", sa.Text),
        sa.Column("wikilink", sa.Text, nullable=False),
        sa.Column("direct", sa.Integer, nullable=False),
    )
    op.create_index("uses_message", "uses", ["message"])
    op.create_index("uses_path", "uses", ["vault", "path"])
