"""The store: conversations, records, counts. Knows values and bytes, not providers or the engine."""
