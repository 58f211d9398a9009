"""Notes: a folder of documents and the links between them. Knows the disk, not the chat."""

import logging

# without a handler, Python prints logged tracebacks to the terminal
logging.getLogger(__name__).addHandler(logging.NullHandler())
