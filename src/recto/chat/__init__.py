"""Blocks, messages and conversations. Values only: no I/O, no tokens, no providers."""
