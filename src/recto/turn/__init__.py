"""The walk of one message: session, context, preamble, view, assembly, exchange, tools. Not compaction or recall."""
