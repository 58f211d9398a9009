"""Search by keywords and embeddings, with both rankings fused. Knows passages, not messages or notes."""

import logging

# without a handler, Python prints logged tracebacks to the terminal
logging.getLogger(__name__).addHandler(logging.NullHandler())
