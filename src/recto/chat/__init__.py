"""What was said: blocks, messages, conversations. Values only; no I/O, no tokens, no providers."""
