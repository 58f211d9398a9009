"""MCP servers: start them, list and call their tools, stop them. Knows the values of `sources`, not the store."""

import logging

# Without a handler Python would print tracebacks on the user's terminal.
logging.getLogger(__name__).addHandler(logging.NullHandler())
