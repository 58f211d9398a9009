"""Marks get a column beside the pieces of a request; a message's priority moves from its details into one."""

import json

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

messages = sa.table("messages", sa.column("n"), sa.column("details"), sa.column("priority"))


def upgrade() -> None:
    op.add_column("requests", sa.Column("marks", sa.Text))
    op.add_column("messages", sa.Column("priority", sa.Integer, nullable=False, server_default=sa.text("5")))
    _move_priorities(op.get_bind())


def _move_priorities(connection: sa.Connection) -> None:
    mention = sa.select(messages.c.n, messages.c.details).where(messages.c.details.contains('"priority":'))
    for number, text in connection.execute(mention).all():
        details = json.loads(text)
        if (priority := details.pop("priority", None)) is None:
            continue  # mentioned deeper down only
        rest = json.dumps(details, ensure_ascii=False, separators=(",", ":"))
        moved = sa.update(messages).where(messages.c.n == number).values(priority=priority, details=rest)
        connection.execute(moved)
