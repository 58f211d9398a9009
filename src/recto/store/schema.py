"""The tables. Rows point at each other by number (small, fast); people and exports see the 26-character ids.

A change here goes with a migration in `migrations/versions`; a test holds the two against each other.
"""

from sqlalchemy import Column, Float, ForeignKey, Index, Integer, LargeBinary, MetaData, Table, Text, text

# Newest last. A store that names any other revision was written by a newer version.
REVISIONS = ("0001", "0002", "0003", "0004", "0005")

metadata = MetaData()

conversations = Table(
    "conversations",
    metadata,
    Column("n", Integer, primary_key=True),
    Column("id", Text, nullable=False, unique=True),
    Column("title", Text, nullable=False),
    Column("agent", Text, nullable=False),
    Column("created", Text, nullable=False),
    Column("updated", Text, nullable=False),
    Column("head", Integer),
    Column("details", Text, nullable=False),
)

messages = Table(
    "messages",
    metadata,
    Column("n", Integer, primary_key=True),
    Column("id", Text, nullable=False, unique=True),
    Column("conversation", Integer, ForeignKey("conversations.n"), nullable=False),
    Column("parent", Integer, ForeignKey("messages.n")),
    Column("depth", Integer, nullable=False),
    Column("said", Integer, nullable=False),
    # The newest message with a Compaction on the path up to and with this one.
    Column("compaction", Integer),
    Column("role", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("created", Text, nullable=False),
    Column("request", Integer, ForeignKey("requests.n")),
    Column("blocks", Text, nullable=False),
    Column("details", Text, nullable=False),
    Column("priority", Integer, nullable=False, server_default=text("5")),
    # The number of the message that began the branch: a first child is on its parent's, any other begins its own.
    Column("branch", Integer, nullable=False, server_default=text("0")),
    Index("messages_parent", "parent"),
    Index("messages_place", "conversation", "branch", "depth"),
    Index("messages_request", "request", sqlite_where=text("request IS NOT NULL")),
)

# What has streamed in of an unfinished message; folded into its blocks at the end.
deltas = Table(
    "deltas",
    metadata,
    Column("n", Integer, primary_key=True),
    Column("message", Integer, ForeignKey("messages.n"), nullable=False),
    Column("growth", Text, nullable=False),
    Index("deltas_message", "message"),
)

pieces = Table(
    "pieces",
    metadata,
    Column("n", Integer, primary_key=True),
    Column("sha256", LargeBinary, nullable=False, unique=True),
    Column("data", LargeBinary, nullable=False),
)

requests = Table(
    "requests",
    metadata,
    Column("n", Integer, primary_key=True),
    Column("id", Text, nullable=False, unique=True),
    Column("conversation", Integer, ForeignKey("conversations.n"), nullable=False),
    Column("message", Integer, ForeignKey("messages.n")),
    Column("purpose", Text, nullable=False),
    Column("created", Text, nullable=False),
    # The body is the first `kept` pieces of `base`, then `added` (piece numbers as a JSON list).
    Column("base", Integer, ForeignKey("requests.n")),
    Column("kept", Integer, nullable=False),
    Column("added", Text, nullable=False),
    Column("chain", Integer, nullable=False),
    Column("sha256", LargeBinary, nullable=False),
    Column("size", Integer, nullable=False),
    # The pieces that precede what changes with every message: how many, and the sha256 of their bytes.
    Column("stable", Integer, nullable=False),
    Column("stable_sha256", LargeBinary, nullable=False),
    Column("account", LargeBinary, nullable=False),
    Column("outcome", Text, nullable=False, server_default=text("'{}'")),
    # {"bytes": a mark, "at": [[piece, place in its data], …]}; pieces are stored without marks.
    Column("marks", Text),
    Index("requests_conversation", "conversation"),
)

# Which documents messages refer to, to be counted; the blocks of a message say the same, and more.
uses = Table(
    "uses",
    metadata,
    Column("n", Integer, primary_key=True),
    Column("message", Integer, ForeignKey("messages.n"), nullable=False),
    Column("vault", Text, nullable=False),
    # Null for a broken link.
    Column("path", Text),
    Column("wikilink", Text, nullable=False),
    Column("direct", Integer, nullable=False),
    Index("uses_message", "message"),
    Index("uses_path", "vault", "path"),
)

# Texts of sources and whole results of tools, by hash: what a record names and no piece holds by itself.
kept = Table(
    "kept",
    metadata,
    Column("n", Integer, primary_key=True),
    Column("sha256", LargeBinary, nullable=False, unique=True),
    Column("data", LargeBinary, nullable=False),
)

# Every source that ever was in a request; the few names repeat in all of them.
source_names = Table(
    "source_names",
    metadata,
    Column("n", Integer, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("name", Text, nullable=False),
    # Of a tool: who has it; empty for all others.
    Column("server", Text, nullable=False),
    Index("source_names_id", "kind", "name", "server", unique=True),
)

source_uses = Table(
    "source_uses",
    metadata,
    Column("request", Integer, ForeignKey("requests.n"), primary_key=True),
    Column("source", Integer, ForeignKey("source_names.n"), primary_key=True),
    Column("mode", Text, nullable=False),
    Column("score", Float),
    Column("tokens", Integer, nullable=False),
    # Null until the reply was looked at; empty when it shows no sign of use.
    Column("sign", Text),
    # What a choice learns from; few rows, and the newest are wanted.
    Index("source_uses_learnt", "request", sqlite_where=text("sign > '' AND mode <> 'always'")),
    sqlite_with_rowid=False,
)

meters = Table(
    "meters",
    metadata,
    Column("n", Integer, primary_key=True),
    Column("key", Text, nullable=False, unique=True),
)

# `tokens` is negative for an estimate (-1 - tokens): one small number a row.
counts = Table(
    "counts",
    metadata,
    Column("meter", Integer, ForeignKey("meters.n"), primary_key=True),
    Column("sha", LargeBinary, primary_key=True),
    Column("tokens", Integer, nullable=False),
    sqlite_with_rowid=False,
)
