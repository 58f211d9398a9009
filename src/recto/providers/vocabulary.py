"""VocabularyCounter: counts wire pieces with a local vocabulary. Asks no server.

OpenAI's own rule for chat: every message costs 3 tokens plus its role and content, the start of the reply costs 3, and
a name costs its tokens plus 1. How providers render anything but plain text is not public, so those are estimates.
"""

import logging
import math
import unicodedata
from collections.abc import Callable, Sequence
from functools import cache

from recto.providers.model import Model
from recto.window.count import ZERO, Count, estimate_message, estimate_text
from recto.window.request import Contents, Format, Piece

log = logging.getLogger(__name__)

FRAME = 3
OTHER_FRAME = 4  # ChatML, Llama 3 and Mistral put four control tokens around a message
PRIMING = 3


@cache
def vocabulary(name: str) -> Callable[[str], int]:
    """A function that counts the tokens of a text. Raises splintr's own error for an unknown name."""
    from splintr import Tokenizer  # loads vocabularies of many megabytes

    # splintr's other calls read texts such as <|think|> as control tokens
    encode = Tokenizer.from_pretrained(name).encode_ordinary
    if name.startswith("qwen"):  # Qwen's own tokenizer normalises first
        return lambda text: len(encode(unicodedata.normalize("NFC", text)))
    return lambda text: len(encode(text))


class VocabularyCounter:
    def __init__(self, model: Model, format: Format) -> None:
        self.note: str | None = None
        self._model, self._format = model, format
        self._exact = model.exact and model.factor == 1.0
        self._frame = FRAME if self._exact else OTHER_FRAME
        self.priming = Count(PRIMING, self._exact)
        self.without_system = ZERO
        self.key = f"{model.tokenizer}/chat" if self._exact else f"{model.tokenizer}*{model.factor:g}/estimate"

    async def count(self, pieces: Sequence[Piece]) -> list[Count]:
        return [self._count(piece) for piece in pieces]

    def text(self, text: str) -> Count:
        """The tokens of a text alone, as for a reply."""
        return self._counted(Contents((text,)), 0, estimate_text)

    def _count(self, piece: Piece) -> Count:
        if piece.kind in ("head", "join", "tail"):
            return ZERO
        contents = self._format.contents(piece, self._model.id)
        if piece.kind == "tool":
            return self._counted(contents, 0, estimate_text)
        return self._counted(contents, self._frame, estimate_message)

    def _counted(self, contents: Contents, frame: int, fallback: Callable[[str], int]) -> Count:
        """The tokens of all contents; where the tokenizer fails, an estimate by `fallback`."""
        try:
            count = vocabulary(self._model.tokenizer)
        except BaseException as why:
            self._fails(why)
            self.key = "estimate"
        else:
            try:
                tokens = frame + count(contents.role) + sum(map(count, contents.texts))
                total = math.ceil(tokens * self._model.factor) + contents.flat
                return Count(total, self._exact and contents.is_plain)
            except BaseException as why:
                self._fails(why)
        return Count(fallback("".join(contents.texts)) + contents.flat, False)

    def _fails(self, why: BaseException) -> None:
        """Notes a failed tokenizer. Called for BaseException, because a panic in splintr is no Exception."""
        if isinstance(why, KeyboardInterrupt | SystemExit):
            raise why
        if self.note is None:  # once is enough: every piece of a window would fail
            log.error("the tokenizer of %s failed", self._model.name, exc_info=why)
        because = str(why).partition(". Supported:")[0] or type(why).__name__
        self.note = f"Tokens of {self._model.name} are estimated, because its tokenizer failed: {because}."
