"""Texts are kept by hash, and every source of a request is noted with what its reply shows of it."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.create_table(
        "kept",
        sa.Column("n", sa.Integer, primary_key=True),
        sa.Column("sha256", sa.LargeBinary, nullable=False, unique=True),
        sa.Column("data", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "source_names",
        sa.Column("n", sa.Integer, primary_key=True),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("server", sa.Text, nullable=False),
    )
    op.create_index("source_names_id", "source_names", ["kind", "name", "server"], unique=True)
    op.create_table(
        "source_uses",
        sa.Column("request", sa.Integer, sa.ForeignKey("requests.n"), primary_key=True),
        sa.Column("source", sa.Integer, sa.ForeignKey("source_names.n"), primary_key=True),
        sa.Column("mode", sa.Text, nullable=False),
        sa.Column("score", sa.Float),
        sa.Column("tokens", sa.Integer, nullable=False),
        sa.Column("sign", sa.Text),
        sqlite_with_rowid=False,
    )
    learnt = sa.text("sign > '' AND mode <> 'always'")
    op.create_index("source_uses_learnt", "source_uses", ["request"], sqlite_where=learnt)
