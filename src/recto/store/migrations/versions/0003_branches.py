"""Messages learn which branch they are on; their words are searched in a file outside the store."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

AT_ONCE = 50_000

messages = sa.table("messages", sa.column("n"), sa.column("parent"))


def upgrade() -> None:
    op.execute("DROP TABLE IF EXISTS words")
    op.drop_index("messages_conversation", "messages")
    op.add_column("messages", sa.Column("branch", sa.Integer, nullable=False, server_default=sa.text("0")))
    _fill(op.get_bind())
    # last, so that it is built once and not row by row
    op.create_index("messages_place", "messages", ["conversation", "branch", "depth"])


def _fill(connection: sa.Connection) -> None:
    """A parent has a smaller number than its children, so one pass is enough; only ends of branches are remembered."""
    ends: dict[int | None, int] = {}
    some = sa.select(messages).order_by(messages.c.n).limit(AT_ONCE)
    last = -1
    while rows := connection.execute(some.where(messages.c.n > last)).all():
        found = []
        for number, parent in rows:
            # the first child takes over the end; the next one finds it gone
            ends[number] = ends.pop(parent, number)
            found.append((ends[number], number))
        connection.exec_driver_sql("UPDATE messages SET branch = ? WHERE n = ?", found)
        last = rows[-1].n
