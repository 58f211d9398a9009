"""What was spent by model and by purpose is summed from an index alone."""

from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    op.create_index("requests_spent", "requests", ["model", "purpose", "cost", "cost_bound"])
