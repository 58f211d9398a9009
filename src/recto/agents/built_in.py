"""The tools that are built in, by name: what may be said about them in an agent.toml, whether they are offered just now
or not. The rooms that have them are not asked: they know indexes and vaults, which is much for a few names."""

BUILT_IN = (
    "read_document",
    "find_excerpts",
    "find_documents",
    "list_documents",
    "find_backlinks",
    "find_forward_links",
    "resolve_wikilink",
    "write_document",
    "rename_document",
    "delete_document",
    "recall",
)
