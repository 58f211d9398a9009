"""VocabularyMeter: counts wire pieces with a vocabulary that lies on this machine. Asks no server.

OpenAI's own rule for chat: every message 3 tokens and its role and content, and 3 for the reply that is primed; a name
costs its tokens and 1. Everything that is not plain text is rendered in ways no provider tells: an estimate.
"""

import math
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache

from recto.providers.model import Model
from recto.window.count import ZERO, Count, estimate_message, estimate_text
from recto.window.request import Piece
from recto.wire import Json, dumps, loads

FRAME = 3
OTHER_FRAME = 4  # ChatML, Llama 3 and Mistral put four control tokens around a message
PRIMING = 3
OPENAI_IMAGE = 765  # 1024 x 1024 in high detail
ANTHROPIC_IMAGE = 1600  # the most it scales an image to, about 1.15 megapixels / 750
ANTHROPIC_TOOL_PROMPT = 346  # what the API adds to the system prompt as soon as there are tools
TALKERS = ("system", "user", "assistant")


@cache
def vocabulary(name: str) -> Callable[[str], int]:
    """Counts the tokens of a text. Raises what splintr raises for a name it does not know."""
    from splintr import Tokenizer  # vocabularies of many megabytes

    # the other calls of splintr read texts such as <|think|> as control tokens
    encode = Tokenizer.from_pretrained(name).encode_ordinary
    if name.startswith("qwen"):  # Qwen's own tokenizer normalises first
        return lambda text: len(encode(unicodedata.normalize("NFC", text)))
    return lambda text: len(encode(text))


@dataclass(slots=True)
class _Reading:
    """What of a wire message costs tokens."""

    role: str = ""
    texts: list[str] = field(default_factory=list)
    flat: int = 0
    plain: bool = True

    def opaque(self, text: str = "", flat: int = 0) -> None:
        self.plain = False
        self.flat += flat
        if text:
            self.texts.append(text)


class VocabularyMeter:
    def __init__(self, model: Model) -> None:
        self.note: str | None = None
        self._model = model
        self._exact = model.exact and model.factor == 1.0
        self._frame = FRAME if self._exact else OTHER_FRAME
        self.priming = Count(PRIMING, self._exact)
        self.without_system = ZERO
        self.key = f"{model.tokenizer}/chat" if self._exact else f"{model.tokenizer}*{model.factor:g}/estimate"

    async def measure(self, pieces: Sequence[Piece]) -> list[Count]:
        return [self._count(piece) for piece in pieces]

    def text(self, text: str) -> Count:
        """A text by itself, as a reply is counted."""
        reading = _Reading(texts=[text])
        return Count(self._weighed(reading, 0, estimate_text), self._exact and reading.plain)

    def _count(self, piece: Piece) -> Count:
        if piece.kind in ("head", "join", "tail"):
            return ZERO
        reading = _Reading()
        if piece.kind == "tool":
            hidden = b'"input_schema":' in piece.data and not piece.data.startswith(b",")
            reading.opaque(piece.data.removeprefix(b",").decode(), ANTHROPIC_TOOL_PROMPT * hidden)
            return Count(self._weighed(reading, 0, estimate_text), False)
        _read_message(loads(piece.data), reading)
        tokens = self._weighed(reading, self._frame, estimate_message)
        return Count(tokens, self._exact and reading.plain)

    def _weighed(self, reading: _Reading, frame: int, fallback: Callable[[str], int]) -> int:
        """All that was read, as tokens; by the fallback where the tokenizer fails, and then it is no longer exact."""
        try:
            count = vocabulary(self._model.tokenizer)
        except BaseException as why:
            self._fails(why)
            self.key = "estimate"
        else:
            try:
                tokens = frame + count(reading.role) + sum(map(count, reading.texts))
                return math.ceil(tokens * self._model.factor) + reading.flat
            except BaseException as why:
                self._fails(why)
        reading.plain = False
        return fallback("".join(reading.texts)) + reading.flat

    def _fails(self, why: BaseException) -> None:
        if isinstance(why, KeyboardInterrupt | SystemExit):  # a panic in splintr is no Exception either
            raise why
        because = str(why).partition(". Supported:")[0] or type(why).__name__
        self.note = f"Tokens of {self._model.name} are estimated, because its tokenizer failed: {because}."


def _read_message(message: Json, reading: _Reading) -> None:
    """A message of either format, or a system text of Anthropic's."""
    for name, value in message.items():
        if name == "role":
            reading.role = value
            reading.plain = reading.plain and value in TALKERS
        elif name in ("content", "text") and isinstance(value, str):
            reading.texts.append(value)
        elif name == "content":
            for item in value or ():
                _read_item(item, reading)
        elif name == "name":
            reading.opaque(value, flat=1)
        elif name != "type":
            reading.opaque(value if isinstance(value, str) else dumps(value))


def _read_item(item: Json, reading: _Reading) -> None:
    kind = item.get("type")
    if kind in ("text", "thinking"):  # a signature proves the thinking and is not read by the model
        reading.opaque(item[kind])
    elif kind in ("image_url", "image"):
        reading.opaque(flat=OPENAI_IMAGE if kind == "image_url" else ANTHROPIC_IMAGE)
    elif kind == "redacted_thinking":
        reading.opaque(flat=estimate_text(item["data"]))
    elif kind == "tool_result":
        reading.opaque(f"{item['tool_use_id']} {item.get('content', '')}")
    else:
        reading.opaque(dumps(item))
