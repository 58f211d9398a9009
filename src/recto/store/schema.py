"""The tables. Rows reference each other by number (small, fast); exports use the 26-character ids.

A change here needs a migration in `migrations/versions`; a test compares the two.
"""

from sqlalchemy import BigInteger, Column, Float, ForeignKey, Index, Integer, LargeBinary, MetaData, Table, text

from recto.store.dialect import TEXT

metadata = MetaData()

conversations = Table(
    "conversations",
    metadata,
    Column("n", Integer, primary_key=True),
    Column("id", TEXT, nullable=False, unique=True),
    Column("title", TEXT, nullable=False),
    Column("agent", TEXT, nullable=False),
    Column("created", TEXT, nullable=False),
    Column("updated", TEXT, nullable=False),
    Column("head", Integer),
    Column("details", TEXT, nullable=False),
    # When it was archived, and when it was moved to the trash.
    Column("archived", TEXT),
    Column("deleted", TEXT),
)

messages = Table(
    "messages",
    metadata,
    Column("n", Integer, primary_key=True),
    Column("id", TEXT, nullable=False, unique=True),
    Column("conversation", Integer, ForeignKey("conversations.n"), nullable=False),
    Column("parent", Integer, ForeignKey("messages.n")),
    Column("depth", Integer, nullable=False),
    Column("said", Integer, nullable=False),
    # The newest message with a Compaction on the path up to and with this one.
    Column("compaction", Integer),
    Column("role", TEXT, nullable=False),
    Column("status", TEXT, nullable=False),
    Column("created", TEXT, nullable=False),
    Column("request", Integer, ForeignKey("requests.n")),
    Column("blocks", TEXT, nullable=False),
    Column("details", TEXT, nullable=False),
    Column("priority", Integer, nullable=False, server_default=text("5")),
    # The number of the first message of the branch: a first child is on its parent's branch, any other begins its own.
    Column("branch", Integer, nullable=False, server_default=text("0")),
    Index("messages_parent", "parent"),
    Index("messages_place", "conversation", "branch", "depth"),
    Index("messages_request", "request", sqlite_where=text("request IS NOT NULL")),
)

# The deltas of an unfinished message; merged into its blocks at the end.
deltas = Table(
    "deltas",
    metadata,
    Column("n", Integer, primary_key=True),
    Column("message", Integer, ForeignKey("messages.n"), nullable=False),
    Column("growth", TEXT, nullable=False),
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
    Column("id", TEXT, nullable=False, unique=True),
    Column("conversation", Integer, ForeignKey("conversations.n"), nullable=False),
    Column("message", Integer, ForeignKey("messages.n")),
    Column("purpose", TEXT, nullable=False),
    Column("created", TEXT, nullable=False),
    # The body is the first `kept` pieces of `base`, then `added` (piece numbers as a JSON list).
    Column("base", Integer, ForeignKey("requests.n")),
    Column("kept", Integer, nullable=False),
    Column("added", TEXT, nullable=False),
    Column("chain", Integer, nullable=False),
    Column("sha256", LargeBinary, nullable=False),
    Column("size", Integer, nullable=False),
    # The pieces before those that change with every message: their number, and the sha256 of their bytes.
    Column("stable", Integer, nullable=False),
    Column("stable_sha256", LargeBinary, nullable=False),
    Column("account", LargeBinary, nullable=False),
    Column("outcome", TEXT, nullable=False, server_default=text("'{}'")),
    # {"bytes": a mark, "at": [[piece, place in its data], …]}; pieces are stored without marks.
    Column("marks", TEXT),
    Column("model", TEXT),
    # US dollars: the most that it could cost, known before it left, and what it cost in the end. Both are null where
    # the price is not known; requests that cost nothing, as those that never left, have 0.
    Column("cost_bound", Float),
    Column("cost", Float),
    Index("requests_conversation", "conversation"),
    # What was spent is summed from these alone.
    Index("requests_cost", "conversation", "cost", "cost_bound"),
    Index("requests_created", "created", "cost", "cost_bound"),
    Index("requests_spent", "model", "purpose", "cost", "cost_bound"),
    # for the database itself: without them it reads all requests for each row that is deleted
    Index("requests_message", "message", sqlite_where=text("message IS NOT NULL")),
    Index("requests_base", "base", sqlite_where=text("base IS NOT NULL")),
)

# Which documents messages refer to, for counting; the blocks of a message hold the same and more.
uses = Table(
    "uses",
    metadata,
    Column("n", Integer, primary_key=True),
    Column("message", Integer, ForeignKey("messages.n"), nullable=False),
    Column("vault", TEXT, nullable=False),
    # Null for a broken link.
    Column("path", TEXT),
    Column("wikilink", TEXT, nullable=False),
    Column("direct", Integer, nullable=False),
    Index("uses_message", "message"),
    Index("uses_path", "vault", "path"),
)

# What was said while a reply came, until it enters the conversation.
waiting = Table(
    "waiting",
    metadata,
    Column("n", Integer, primary_key=True),
    Column("id", TEXT, nullable=False, unique=True),
    Column("conversation", Integer, ForeignKey("conversations.n"), nullable=False),
    Column("created", TEXT, nullable=False),
    Column("blocks", TEXT, nullable=False),
    Index("waiting_conversation", "conversation"),
)

# What is remembered between conversations. Names messages and conversations by id: it outlives them.
facts = Table(
    "facts",
    metadata,
    Column("n", Integer, primary_key=True),
    Column("text", TEXT, nullable=False),
    Column("kind", TEXT, nullable=False),
    Column("created", TEXT, nullable=False),
    Column("learned_by", TEXT, nullable=False),
    Column("conversation", TEXT),
    Column("message", TEXT),
    Column("last_used", TEXT),
    Column("uses", Integer, nullable=False),
    Column("confidence", Float, nullable=False),
    Column("replaced_by", Integer),
    Column("topic", Integer),
    # Earlier texts, as JSON.
    Column("history", TEXT, nullable=False),
    Column("forgotten", TEXT),
    # Grows with every change of a text: the search index follows it.
    Column("revision", Integer, nullable=False),
    # The note that it is about, as JSON, and a hash of its vault and path, which stays when the fact is forgotten.
    Column("note", TEXT),
    Column("note_key", TEXT),
    Index("facts_revision", "revision", unique=True),
    Index("facts_message", "message"),
    Index("facts_topic", "topic"),
    Index("facts_note", "note_key", unique=True),
)

# Blobs by hash: texts of sources and full tool results, which records refer to.
kept = Table(
    "kept",
    metadata,
    Column("n", Integer, primary_key=True),
    Column("sha256", LargeBinary, nullable=False, unique=True),
    Column("data", LargeBinary, nullable=False),
)

# Every source that was ever in a request; the few names repeat in all requests.
source_names = Table(
    "source_names",
    metadata,
    Column("n", Integer, primary_key=True),
    Column("kind", TEXT, nullable=False),
    Column("name", TEXT, nullable=False),
    # The server of a tool; empty for all other sources.
    Column("server", TEXT, nullable=False),
    Index("source_names_id", "kind", "name", "server", unique=True),
)

source_uses = Table(
    "source_uses",
    metadata,
    Column("request", Integer, ForeignKey("requests.n"), primary_key=True),
    Column("source", Integer, ForeignKey("source_names.n"), primary_key=True),
    Column("mode", TEXT, nullable=False),
    Column("score", Float),
    Column("tokens", Integer, nullable=False),
    # Null until the reply was examined; empty when it shows no sign of use.
    Column("sign", TEXT),
    # For learning which sources to choose: few rows, read from the newest.
    Index("source_uses_learnt", "request", sqlite_where=text("sign > '' AND mode <> 'always'")),
    sqlite_with_rowid=False,
)

# Sums for reports, by conversation. They hold as long as the conversation has a row here.
summed_conversations = Table(
    "summed_conversations",
    metadata,
    Column("conversation", Integer, ForeignKey("conversations.n"), primary_key=True),
    # Replies with any source.
    Column("replies", Integer, nullable=False),
)

source_totals = Table(
    "source_totals",
    metadata,
    Column("conversation", Integer, ForeignKey("conversations.n"), primary_key=True),
    Column("source", Integer, ForeignKey("source_names.n"), primary_key=True),
    *(Column(name, Integer, nullable=False) for name in ("replies", "always", "manual", "by_agent")),
    Column("tokens", BigInteger, nullable=False),
    *(Column(name, Integer, nullable=False) for name in ("looked", "called", "quoted", "paraphrased")),
    # The last request with it, and the last one whose reply used it.
    Column("last", Integer, nullable=False),
    Column("used", Integer),
    sqlite_with_rowid=False,
)

# As `SourcePeriod` tells them; of scores the sum, and how many there are.
source_days = Table(
    "source_days",
    metadata,
    Column("conversation", Integer, ForeignKey("conversations.n"), primary_key=True),
    # On the user's clock.
    Column("day", TEXT, primary_key=True),
    *(Column(name, Integer, nullable=False) for name in ("replies", "included", "chosen", "looked", "used", "scored")),
    Column("score", Float, nullable=False),
    Column("tokens", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

document_totals = Table(
    "document_totals",
    metadata,
    Column("conversation", Integer, ForeignKey("conversations.n"), primary_key=True),
    Column("vault", TEXT, primary_key=True),
    Column("path", TEXT, primary_key=True),
    # On the user's clock.
    Column("month", TEXT, primary_key=True),
    Column("uses", Integer, nullable=False),
    Column("direct", Integer, nullable=False),
    Column("first", TEXT, nullable=False),
    Column("last", TEXT, nullable=False),
    sqlite_with_rowid=False,
)

# In how many turns two documents were used together.
document_pairs = Table(
    "document_pairs",
    metadata,
    Column("conversation", Integer, ForeignKey("conversations.n"), primary_key=True),
    *(Column(name, TEXT, primary_key=True) for name in ("vault", "path", "other")),
    Column("turns", Integer, nullable=False),
    sqlite_with_rowid=False,
)

spending_totals = Table(
    "spending_totals",
    metadata,
    Column("conversation", Integer, ForeignKey("conversations.n"), primary_key=True),
    # On the user's clock.
    Column("day", TEXT, primary_key=True),
    # Empty where it is not known.
    Column("model", TEXT, primary_key=True),
    Column("purpose", TEXT, primary_key=True),
    Column("requests", Integer, nullable=False),
    Column("cost", Float, nullable=False),
    Column("unpriced", Integer, nullable=False),
    Column("open", Float, nullable=False),
    # As providers reported them.
    Column("input", BigInteger, nullable=False),
    Column("output", BigInteger, nullable=False),
    Column("cache_read", BigInteger, nullable=False),
    Column("first", TEXT, nullable=False),
    Column("last", TEXT, nullable=False),
    sqlite_with_rowid=False,
)

meters = Table(
    "meters",
    metadata,
    Column("n", Integer, primary_key=True),
    Column("key", TEXT, nullable=False, unique=True),
)

# `tokens` is negative for an estimate (-1 - tokens), and holds a checksum for an exact count: one number is enough.
counts = Table(
    "counts",
    metadata,
    Column("meter", Integer, ForeignKey("meters.n"), primary_key=True),
    Column("sha", LargeBinary, primary_key=True),
    Column("tokens", Integer, nullable=False),
    sqlite_with_rowid=False,
)

# The latest reports of each model: what a request was counted as, and the input that the provider reported for it.
usage_reports = Table(
    "usage_reports",
    metadata,
    Column("n", Integer, primary_key=True),
    Column("model", TEXT, nullable=False),
    Column("meter", TEXT, nullable=False),
    Column("conversation", TEXT, nullable=False),
    Column("exact", Integer, nullable=False),
    Column("estimated", Integer, nullable=False),
    Column("counted", Integer, nullable=False),
    Column("reported", Integer, nullable=False),
    Index("usage_reports_model", "model", "n"),
)

# Keys of the endpoint's clients, by their hash; the key itself is shown once and never stored.
access_keys = Table(
    "access_keys",
    metadata,
    Column("n", Integer, primary_key=True),
    Column("name", TEXT, nullable=False, unique=True),
    Column("sha256", LargeBinary, nullable=False, unique=True),
    Column("created", TEXT, nullable=False),
    Column("details", TEXT, nullable=False),
)

# Whose a conversation is: the name of a key, empty without keys. `name` is what the client calls it.
client_conversations = Table(
    "client_conversations",
    metadata,
    Column("conversation", Integer, ForeignKey("conversations.n"), primary_key=True),
    Column("owner", TEXT, nullable=False),
    Column("name", TEXT),
    Index("client_conversations_owner", "owner", "name"),
)

# By what a client's messages are known again: a hash of each, and of everything up to it.
client_messages = Table(
    "client_messages",
    metadata,
    Column("message", Integer, ForeignKey("messages.n"), primary_key=True),
    Column("owner", TEXT, nullable=False),
    Column("print", LargeBinary, nullable=False),
    Column("chain", LargeBinary, nullable=False),
    Index("client_messages_chain", "owner", "chain"),
    Index("client_messages_print", "owner", "print"),
)

# Replies that are being written on a database server, and by which process. A file has no rows here.
open_replies = Table(
    "open_replies",
    metadata,
    Column("message", Integer, ForeignKey("messages.n"), primary_key=True),
    Column("process", TEXT, nullable=False),
)

# First questions of clients of the endpoint whose reply has not gone out whole. The process is that of the server whose
# client waits; empty when the client has gone, or its reply has failed.
awaited_replies = Table(
    "awaited_replies",
    metadata,
    Column("message", Integer, ForeignKey("messages.n"), primary_key=True),
    Column("process", TEXT, nullable=False),
    Column("asked", TEXT, nullable=False),
)

# Calls of the endpoint that belong to no conversation: passed through, and embeddings. All others are in `requests`; a
# call is in one of the two. Holds no words.
charges = Table(
    "charges",
    metadata,
    Column("n", Integer, primary_key=True),
    # The name of the key; empty without keys.
    Column("owner", TEXT, nullable=False),
    Column("model", TEXT, nullable=False),
    Column("purpose", TEXT, nullable=False),
    Column("created", TEXT, nullable=False),
    # As in `requests`.
    Column("cost_bound", Float),
    Column("cost", Float),
    # As providers reported them.
    *(Column(name, BigInteger, nullable=False) for name in ("input", "output", "cache_read")),
    Index("charges_created", "created", "cost", "cost_bound"),
    Index("charges_owner", "owner", "created", "cost", "cost_bound"),
)
