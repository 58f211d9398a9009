"""PatientLexer: syntax colours for code, within a time limit.

Some lexers of Pygments take quadratic time: 17 seconds for 16,000 empty lines of Markdown.
"""

from collections.abc import Iterator
from time import thread_time
from typing import Any

from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.token import Text

# Seconds of processor time per piece of code. A thousand lines of Python take a tenth of it.
MOST_S = 0.2


class PatientLexer(Lexer):  # type: ignore[misc]  # untyped
    """A lexer that leaves the rest uncoloured when the time is up."""

    def __init__(self, name: str, tabsize: int = 0) -> None:
        """Raises ClassNotFound for an unknown language."""
        super().__init__(stripnl=False, tabsize=tabsize)
        self._lexer = get_lexer_by_name(name, stripnl=False)

    def get_tokens(self, text: str, unfiltered: bool = False) -> Iterator[tuple[Any, str]]:
        code = self._preprocess_lexer_input(text)
        end, at = thread_time() + MOST_S, 0
        for kind, value in self._lexer.get_tokens(code, unfiltered):
            yield kind, value
            at += len(value)
            if thread_time() > end:
                yield Text, code[at:]
                return
