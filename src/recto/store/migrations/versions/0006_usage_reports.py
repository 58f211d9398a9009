"""What providers reported is kept beside what was counted, so that estimates can be calibrated."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.create_table(
        "usage_reports",
        sa.Column("n", sa.Integer, primary_key=True),
        sa.Column("model", sa.Text, nullable=False),
        sa.Column("meter", sa.Text, nullable=False),
        sa.Column("conversation", sa.Text, nullable=False),
        sa.Column("exact", sa.Integer, nullable=False),
        sa.Column("estimated", sa.Integer, nullable=False),
        sa.Column("counted", sa.Integer, nullable=False),
        sa.Column("reported", sa.Integer, nullable=False),
    )
    op.create_index("usage_reports_model", "usage_reports", ["model", "n"])
