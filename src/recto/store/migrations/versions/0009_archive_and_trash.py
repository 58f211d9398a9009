"""A conversation can be archived or in the trash. Rows that requests refer to can be deleted without reading all of
them."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    text = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
    for name in ("archived", "deleted"):
        op.add_column("conversations", sa.Column(name, text))
    for name in ("message", "base"):
        is_given = sa.text(f"{name} IS NOT NULL")
        op.create_index(f"requests_{name}", "requests", [name], sqlite_where=is_given, postgresql_where=is_given)
