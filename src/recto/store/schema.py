"""The tables. Rows reference each other by number (small, fast); exports use the 26-character ids.

A change here needs a migration in `migrations/versions`; a test compares the two.
"""

from typing import Any

from sqlalchemy import BigInteger, Column, Float, ForeignKey, Index, Integer, LargeBinary, MetaData, Table, text

from recto.store.dialect import TEXT

metadata = MetaData()


def _columns(type_: Any, names: str, **options: Any) -> list[Column[Any]]:
    """Columns that are never null, except with `nullable`."""
    return [Column(name, type_, **{"nullable": False} | options) for name in names.split()]


def _texts(names: str, **options: Any) -> list[Column[Any]]:
    return _columns(TEXT, names, **options)


def _numbers(names: str, **options: Any) -> list[Column[Any]]:
    return _columns(Integer, names, **options)


def _of(name: str, table: str, **options: Any) -> Column[Any]:
    return Column(name, Integer, ForeignKey(f"{table}.n"), **{"nullable": False} | options)


def _number() -> Column[Any]:
    return Column("n", Integer, primary_key=True)


def _table(name: str, *parts: Any, **options: Any) -> Table:
    flat = [each for part in parts for each in (part if isinstance(part, list) else [part])]
    return Table(name, metadata, *flat, **options)


conversations = _table(
    "conversations",
    _number(),
    _texts("id", unique=True),
    _texts("title agent created updated"),
    _numbers("head", nullable=True),
    _texts("details"),
    # When it was hidden, and when it was moved to the trash.
    _texts("archived deleted", nullable=True),
)

messages = _table(
    "messages",
    _number(),
    _texts("id", unique=True),
    _of("conversation", "conversations"),
    _of("parent", "messages", nullable=True),
    _numbers("depth said"),
    # The newest message with a Compaction on the path up to and including this one.
    _numbers("compaction", nullable=True),
    _texts("role status created"),
    _of("request", "requests", nullable=True),
    _texts("blocks details"),
    _numbers("priority", server_default=text("5")),
    # The number of the first message of the branch: a first child is on its parent's branch, any other begins its own.
    _numbers("branch", server_default=text("0")),
    Index("messages_parent", "parent"),
    Index("messages_place", "conversation", "branch", "depth"),
    Index("messages_request", "request", sqlite_where=text("request IS NOT NULL")),
)

# The deltas of an unfinished message; merged into its blocks at the end.
deltas = _table("deltas", _number(), _of("message", "messages"), _texts("growth"), Index("deltas_message", "message"))

pieces = _table("pieces", _number(), _columns(LargeBinary, "sha256", unique=True), _columns(LargeBinary, "data"))

requests = _table(
    "requests",
    _number(),
    _texts("id", unique=True),
    _of("conversation", "conversations"),
    _of("message", "messages", nullable=True),
    _texts("purpose created"),
    # The body is the first `kept` pieces of `base`, then `added` (piece numbers as a JSON list).
    _of("base", "requests", nullable=True),
    _numbers("kept"),
    _texts("added"),
    _numbers("chain"),
    _columns(LargeBinary, "sha256"),
    _numbers("size"),
    # The pieces before those that change with every message: their number, and the sha256 of their bytes.
    _numbers("stable"),
    _columns(LargeBinary, "stable_sha256 account"),
    _texts("outcome", server_default=text("'{}'")),
    # {"bytes": a mark, "at": [[piece, place in its data], …]}; pieces are stored without marks.
    _texts("marks model", nullable=True),
    # US dollars: the maximum, known in advance, and the actual cost. Both are null if the price is unknown; free
    # requests, such as those that never left, have 0.
    _columns(Float, "cost_bound cost", nullable=True),
    Index("requests_conversation", "conversation"),
    # Spending is summed from this index alone.
    Index("requests_cost", "conversation", "cost", "cost_bound"),
    Index("requests_created", "created", "cost", "cost_bound"),
    Index("requests_spent", "model", "purpose", "cost", "cost_bound"),
    # for the database itself: without them it reads all requests for each row that is deleted
    Index("requests_message", "message", sqlite_where=text("message IS NOT NULL")),
    Index("requests_base", "base", sqlite_where=text("base IS NOT NULL")),
)

# The documents that messages refer to, for counting; the blocks of a message have more details.
uses = _table(
    "uses",
    _number(),
    _of("message", "messages"),
    _texts("vault"),
    _texts("path", nullable=True),
    _texts("wikilink"),
    _numbers("direct"),
    Index("uses_message", "message"),
    Index("uses_path", "vault", "path"),
)

# Messages sent while a reply came, until they enter the conversation.
waiting = _table(
    "waiting",
    _number(),
    _texts("id", unique=True),
    _of("conversation", "conversations"),
    _texts("created blocks"),
    Index("waiting_conversation", "conversation"),
)

# What is remembered between conversations. Names messages and conversations by id: it outlives them.
facts = _table(
    "facts",
    _number(),
    _texts("text kind created learned_by"),
    _texts("conversation message last_used", nullable=True),
    _numbers("uses"),
    _columns(Float, "confidence"),
    _numbers("replaced_by topic", nullable=True),
    _texts("history"),
    _texts("forgotten", nullable=True),
    # Grows with every change of a text: the search index follows it.
    _numbers("revision"),
    # Its note as JSON, and a hash of vault and path, which stays when the fact is forgotten.
    _texts("note note_key", nullable=True),
    Index("facts_revision", "revision", unique=True),
    Index("facts_message", "message"),
    Index("facts_topic", "topic"),
    Index("facts_note", "note_key", unique=True),
)

# Blobs by hash: texts of sources and full tool results, which records refer to.
kept = _table("kept", _number(), _columns(LargeBinary, "sha256", unique=True), _columns(LargeBinary, "data"))

# Every source that was ever in a request; the few names repeat in all requests. `server` is that of a tool, else empty.
source_names = _table(
    "source_names",
    _number(),
    _texts("kind name server"),
    Index("source_names_id", "kind", "name", "server", unique=True),
)

source_uses = _table(
    "source_uses",
    _of("request", "requests", primary_key=True),
    _of("source", "source_names", primary_key=True),
    _texts("mode"),
    _columns(Float, "score", nullable=True),
    _numbers("tokens"),
    # Null until the reply was examined; empty if it shows no sign of use.
    _texts("sign", nullable=True),
    # For learning which sources to choose: few rows, read from the newest.
    Index("source_uses_learnt", "request", sqlite_where=text("sign > '' AND mode <> 'always'")),
    sqlite_with_rowid=False,
)

meters = _table("meters", _number(), _texts("key", unique=True))

# `tokens` is negative for an estimate (-1 - tokens).
counts = _table(
    "counts",
    _of("meter", "meters", primary_key=True),
    _columns(LargeBinary, "sha", primary_key=True),
    _numbers("tokens"),
    sqlite_with_rowid=False,
)

# The latest reports of each model: our count of a request, and the input that the provider reported.
usage_reports = _table(
    "usage_reports",
    _number(),
    _texts("model meter conversation"),
    _numbers("exact estimated counted reported"),
    Index("usage_reports_model", "model", "n"),
)

# Keys of the endpoint's clients, by hash; the key itself is shown once and never stored.
access_keys = _table(
    "access_keys",
    _number(),
    _texts("name", unique=True),
    _columns(LargeBinary, "sha256", unique=True),
    _texts("created details"),
)

# The owner of a conversation: the name of a key, empty without keys. `name` comes from the client.
client_conversations = _table(
    "client_conversations",
    _of("conversation", "conversations", primary_key=True),
    _texts("owner"),
    _texts("name", nullable=True),
    Index("client_conversations_owner", "owner", "name"),
)

# How a client's messages are recognised: a hash of each, and of everything up to it.
client_messages = _table(
    "client_messages",
    _of("message", "messages", primary_key=True),
    _texts("owner"),
    _columns(LargeBinary, "print chain"),
    Index("client_messages_chain", "owner", "chain"),
    Index("client_messages_print", "owner", "print"),
)

# Replies being written on a database server, with their process. A file has no rows here.
open_replies = _table("open_replies", _of("message", "messages", primary_key=True), _texts("process"))

# First questions of endpoint clients whose reply was not fully delivered. The process is the server whose client waits;
# empty if the client has gone or its reply failed.
awaited_replies = _table("awaited_replies", _of("message", "messages", primary_key=True), _texts("process asked"))

# Endpoint calls that belong to no conversation: passed through, and embeddings. All others are in `requests`; a call is
# in one of the two. Contains no words. `owner` is the name of the key, empty without keys; costs and tokens are as in
# `requests` and `spending_totals`.
charges = _table(
    "charges",
    _number(),
    _texts("owner model purpose created"),
    _columns(Float, "cost_bound cost", nullable=True),
    _columns(BigInteger, "input output cache_read"),
    Index("charges_created", "created", "cost", "cost_bound"),
    Index("charges_owner", "owner", "created", "cost", "cost_bound"),
)
