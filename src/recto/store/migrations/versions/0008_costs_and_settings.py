"""Requests learn their model and what they cost; a conversation's strategy becomes one of the settings it keeps."""

import json

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"

conversations = sa.table("conversations", sa.column("n"), sa.column("details"))
requests = sa.table("requests", sa.column("model"), sa.column("outcome"), sa.column("cost"))


def upgrade() -> None:
    op.add_column("requests", sa.Column("model", sa.Text))
    op.add_column("requests", sa.Column("cost_bound", sa.Float))
    op.add_column("requests", sa.Column("cost", sa.Float))
    is_sqlite = op.get_bind().dialect.name == "sqlite"
    model = "json_extract(details, '$.model')" if is_sqlite else "details::json ->> 'model'"
    op.execute(
        f"UPDATE requests SET model = (SELECT {model} FROM messages WHERE messages.request = requests.n LIMIT 1)"
    )
    # what others cost then is not known; these cost nothing
    free = sa.or_(requests.c.model.startswith("embedded:"), requests.c.outcome.contains('"not_sent":true'))
    op.execute(sa.update(requests).where(free).values(cost=0.0))
    op.create_index("requests_cost", "requests", ["conversation", "cost", "cost_bound"])
    op.create_index("requests_created", "requests", ["created", "cost", "cost_bound"])
    _move_strategies(op.get_bind())


def _move_strategies(connection: sa.Connection) -> None:
    mention = sa.select(conversations).where(conversations.c.details.contains('"strategy":'))
    for number, text in connection.execute(mention).all():
        details = json.loads(text)
        if (strategy := details.pop("strategy", None)) is not None:
            details["settings"] = {"context.strategy": strategy}
            rest = json.dumps(details, ensure_ascii=False, separators=(",", ":"))
            connection.execute(sa.update(conversations).where(conversations.c.n == number).values(details=rest))
