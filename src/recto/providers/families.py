"""Facts that the name of a model implies: its vocabulary, how exact counts are, which inputs and parameters it accepts.

Knows names only; loads no vocabulary.

VocabularyCounter: counts wire pieces with a local vocabulary. Asks no server.

OpenAI's own rule for chat: every message costs 3 tokens plus its role and content, the start of the reply costs 3, and
a name costs its tokens plus 1. How providers render anything but plain text is not public, so those are estimates.
"""

import logging
import math
import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

from msgspec import Struct

from recto.base.text import pieces_of
from recto.providers.model import Model
from recto.window.count import ZERO, Count, estimate_message, estimate_text
from recto.window.request import Contents, Format, Piece

log = logging.getLogger(__name__)


class CountingRule(Struct, frozen=True):
    """The fields of Model with the same names."""

    tokenizer: str
    factor: float = 1.0
    exact: bool = False


OPENAI_TALKER = re.compile(r"(chatgpt-4o|gpt-4o|gpt-4\.1|gpt-4\.5)")
OPENAI_EARLIER = re.compile(r"gpt-(4|3\.5)")
# OpenAI does not publish how these are rendered: reported usage of o4-mini and gpt-5 was one token below its rule for
# chats, so counts are close but not exact.
OPENAI_REASONER = re.compile(r"(gpt-[5-9]|gpt-oss|gpt-chat|codex|computer-use|o[1-9](-|$))")

# Of the gpt-5 family only gpt-5-chat always accepts a temperature; 5.1 and 5.2 accept one only while they do not
# reason.
OPENAI_FIXED = re.compile(r"(?!gpt-5-chat)(gpt-[5-9]|codex|o[1-9](-|$))")

# OpenAI's, Google's and xAI's models that think and show nothing of it.
THINKS_UNSEEN = re.compile(
    r"(?!gpt-5-chat)(gpt-[5-9]|gpt-chat|codex|o[1-9](-|$))|gemini-(2\.5|[3-9])|grok-(3-mini|[4-9])"
)

OPENAI_VISION = re.compile(
    r"(chatgpt-4o|gpt-4o(?!-.*audio)|gpt-4\.[1-9]|gpt-4-(turbo|vision)|gpt-[5-9]|gpt-chat|computer-use|o[134](-|$))"
)
OPENAI_TEXT_ONLY = re.compile(r"gpt-4-turbo-preview|o[13]-mini|o1-preview|gpt-5\.5-cyber")
# Names of models that accept images at every provider.
VISION_NAMES = re.compile(r"(^|[-_.\d])vl(\d|[-_:]|$)|vision|llava|pixtral|moondream|minicpm-v")
# Families that accept images where they are hosted; a local copy may lack its vision weights.
HOSTED_VISION = re.compile(
    r"gemini|gemma-[34]|grok-[4-9]|llama-4|mistral-medium|mistral-(large|small)-(latest|[34]|2512|26\d\d)|magistral"
    r"|ministral-.*(latest|2512)|deepseek-(v4-)?flash"
)
LOCAL = frozenset({"embedded", "llamacpp", "lmstudio", "ollama", "vllm"})
# Providers whose API accepts PDFs.
TAKES_FILES = frozenset({"anthropic", "openai", "openrouter"})
# OpenAI's models that accept no schema for their reply.
OPENAI_WITHOUT_SCHEMA = re.compile(r"gpt-(3\.5|4(-|$))|gpt-4o-2024-05-13|chatgpt-4o|o1-(mini|preview)")

# A distilled model has the vocabulary of its target, hence llama and qwen before deepseek.
OTHERS = (
    (re.compile(r"llama"), "llama3"),
    (re.compile(r"qwen|qwq"), "qwen3"),
    (re.compile(r"deepseek"), "deepseek_v3"),
    (re.compile(r"mistral|ministral|mixtral|codestral|devstral|magistral|pixtral"), "mistral_v3"),
    (re.compile(r"gemini|gemma"), "gemma4"),
)
# Claude's vocabulary is not public. Relative to o200k: 1.14 (English) to 1.27 (code) up to 4.6, about 1.6 from 4.7 on.
# These are upper bounds to start with, until reported usage corrects them.
CLAUDE_UNTIL_4_6 = CountingRule("o200k_base", 1.3)
CLAUDE_SINCE_4_7 = CountingRule("o200k_base", 1.8)
UNKNOWN = CountingRule("o200k_base", 1.1)


def counting(provider: str, id: str) -> CountingRule:
    """How to count the tokens of a model, by its name alone."""
    name = _bare(id)
    if "claude" in name:
        return CLAUDE_UNTIL_4_6 if claude_version(name) <= (4, 6) else CLAUDE_SINCE_4_7
    if OPENAI_TALKER.match(name):
        return CountingRule("o200k_base", exact=provider == "openai")
    if OPENAI_REASONER.match(name):
        return CountingRule("o200k_base")
    if OPENAI_EARLIER.match(name):
        return CountingRule("cl100k_base", exact=provider == "openai")
    found = (CountingRule(vocabulary) for pattern, vocabulary in OTHERS if pattern.search(name))
    return next(found, UNKNOWN)


def abilities(provider: str, id: str) -> dict[str, Any]:
    """What a model accepts, as fields of Model, judged by its name and its provider."""
    name = _bare(id)
    images = _takes_images(provider, name)
    known = {"images": images, "fixed_temperature": has_fixed_temperature(id)}
    if "claude" in name:
        version = claude_version(name)
        return known | {
            "files": provider in TAKES_FILES and version >= (3, 5),
            "adaptive_thinking": version >= (4, 6),
            "effort": version >= (4, 6) or (version >= (4, 5) and "opus" in name),
            "json_schema": version >= (4, 5),
        }
    reasons = OPENAI_FIXED.match(name) is not None
    return known | {
        "files": images and provider in TAKES_FILES,
        "effort": reasons or "gpt-oss" in name,
        "stop": not reasons,
        "json_schema": not OPENAI_WITHOUT_SCHEMA.match(name),
    }


def _takes_images(provider: str, name: str) -> bool:
    if "claude" in name:
        return claude_version(name) >= (3, 0)
    if OPENAI_VISION.match(name):
        return OPENAI_TEXT_ONLY.match(name) is None
    hosted = provider not in LOCAL and HOSTED_VISION.search(name)
    return bool(hosted or VISION_NAMES.search(name))


def has_fixed_temperature(id: str) -> bool:
    """Whether a model refuses any temperature but 1: OpenAI's reasoning models, and Claude from 4.7 on."""
    name = _bare(id)
    return claude_version(name) > (4, 6) if "claude" in name else OPENAI_FIXED.match(name) is not None


def thinks_unseen(id: str) -> bool:
    """Whether a model may think without showing all of it. What it thinks is paid for, and only its provider counts
    it."""
    return THINKS_UNSEEN.match(_bare(id)) is not None


def _bare(id: str) -> str:
    """The id without prefixes, as in openai/gpt-4o, accounts/fireworks/models/llama-v3p1 and ft:gpt-4o-mini:me::x."""
    return id.lower().rsplit("/", 1)[-1].removeprefix("ft:")


def claude_version(name: str) -> tuple[int, int]:
    """(4, 5) for claude-sonnet-4-5-20250929 and claude-4.5-sonnet; a name without a number counts as the newest."""
    found = re.search(r"(?<!\d)(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)", name)
    return (int(found[1]), int(found[2] or 0)) if found else (99, 0)


FRAME = 3
OTHER_FRAME = 4  # ChatML, Llama 3 and Mistral put four control tokens around a message
PRIMING = 3
PIECE_LENGTH = 1 << 18


@cache
def vocabulary(name: str) -> Callable[[str], int]:
    """A function that counts the tokens of a text. Raises splintr's own error for an unknown name."""
    from splintr import Tokenizer  # loads vocabularies of many megabytes

    # splintr's other calls read texts such as <|think|> as control tokens
    encode = Tokenizer.from_pretrained(name).encode_ordinary
    if name.startswith("qwen"):  # Qwen's own tokenizer normalises first
        return lambda text: _length(encode, unicodedata.normalize("NFC", text))
    return partial(_length, encode)


def _length(encode: Callable[[str], list[int]], text: str) -> int:
    """Long texts go piece by piece: a list of all their tokens would take ten times the text."""
    return sum(len(encode(piece)) for piece in pieces_of(text, PIECE_LENGTH))


class VocabularyCounter:
    is_quick = True

    def __init__(self, model: Model, format: Format) -> None:
        self.note: str | None = None
        self._model, self._format = model, format
        self._exact = model.exact and model.factor == 1.0
        self._frame = FRAME if self._exact else OTHER_FRAME
        self.priming = Count(PRIMING, self._exact)
        self.without_system = ZERO
        self.key = f"{model.tokenizer}/chat" if self._exact else f"{model.tokenizer}*{model.factor:g}/estimate"

    async def count(self, pieces: Sequence[Piece]) -> list[Count]:
        return [self.count_piece(piece) for piece in pieces]

    def text(self, text: str) -> Count:
        """The tokens of a text alone, as for a reply."""
        return self._counted(Contents((text,)), 0, estimate_text)

    def count_piece(self, piece: Piece) -> Count:
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
