"""Models as data, and the providers that answer requests; one file per wire format. Knows the window, not the store."""

import logging

# without a handler, Python prints logged tracebacks to the terminal
logging.getLogger(__name__).addHandler(logging.NullHandler())
