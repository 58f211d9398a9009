"""A fact may be about a note that is used often."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    text = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
    for name in ("note", "note_key"):
        op.add_column("facts", sa.Column(name, text))
    op.create_index("facts_note", "facts", ["note_key"], unique=True)
