"""Reports read requests and messages themselves: no sums are stored. Token counts are stored without a checksum."""

from alembic import op

revision = "0020"
down_revision = "0019"


def upgrade() -> None:
    for name in (
        "source_totals",
        "source_days",
        "document_totals",
        "document_pairs",
        "spending_totals",
        "summed_conversations",
    ):
        op.execute(f"DROP TABLE IF EXISTS {name}")
    # counts are made again when they are needed
    op.execute("DELETE FROM counts")
