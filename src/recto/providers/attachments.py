"""Images and files in messages: their wire form in both formats, and which of them a model accepts.

Estimates the tokens of images and PDFs from their bytes, since providers do not document their exact counts.
"""

import binascii
import math
import re
import struct

from msgspec.structs import replace

from recto.chat.blocks import Block, File, Image, Text, ToolResult
from recto.providers.catalog import claude_version
from recto.providers.model import Model
from recto.window.request import Entry

PDF = "application/pdf"
IMAGE_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")
_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+)?(?:;[\w-]+=[^;,]*)*;base64,", re.IGNORECASE)


def is_document(file: File) -> bool:
    """True if the provider reads the file itself; other files are sent as text."""
    return bool(file.base64 or file.url or file.sha256)


def fenced(file: File) -> str:
    """The file's name, and its text in a fence longer than any run of backticks in it."""
    longest = max((len(run) for run in re.findall("`+", file.text)), default=0)
    fence = "`" * max(3, longest + 1)
    end = "" if file.text.endswith("\n") else "\n"
    return f"File {_one_line(file.name)}:\n{fence}\n{file.text}{end}{fence}"


def as_text(file: File) -> str:
    """The file's text, or its URL if it has no text and the format accepts no URLs."""
    return f"File {_one_line(file.name)}: {file.url}" if file.url and not file.text else fenced(file)


def _one_line(name: str) -> str:
    return " ".join(name.split())


def data_url(media_type: str, base64: str) -> str:
    return f"data:{media_type};base64,{base64}"


def split_data_url(url: str) -> tuple[str, str] | None:
    """Media type and base64 of a data URL; None for any other URL."""
    found = _DATA_URL.match(url)
    return ((found[1] or "text/plain").lower(), url[found.end() :]) if found else None


def unsupported(entry: Entry, model: Model) -> tuple[Image | File, ...]:
    """The images and files of an entry, including its tool results, that the model does not accept."""
    found: list[Image | File] = []
    for block in entry.blocks:
        blocks = block.attachments if isinstance(block, ToolResult) else (block,)
        found += [part for part in blocks if isinstance(part, Image | File) and not _accepts(model, part)]
    return tuple(found)


def without_unsupported(entry: Entry, model: Model) -> Entry:
    """The entry as this model accepts it. A file with known text stays as text; other unsupported attachments become a
    line describing them."""
    if not unsupported(entry, model):
        return entry
    return replace(entry, blocks=tuple(_supported(block, model) for block in entry.blocks))


def _supported(block: Block, model: Model) -> Block:
    if isinstance(block, ToolResult):
        attached = [_supported(attachment, model) for attachment in block.attachments]
        lines = [part.text for part in attached if isinstance(part, Text)]
        files = tuple(part for part in attached if isinstance(part, Image | File))
        return replace(block, text="\n".join((block.text, *lines)), attachments=files)
    if not isinstance(block, Image | File) or _accepts(model, block):
        return block
    if isinstance(block, File) and block.text:
        return replace(block, base64="", url="", sha256="")
    kind = "image" if isinstance(block, Image) else "file"
    return Text(f"[{_one_line(block.name) or f'An {kind}'} is attached, but this model cannot read {kind}s.]")


def _accepts(model: Model, block: Image | File) -> bool:
    return model.images if isinstance(block, Image) else model.files or not is_document(block)


Size = tuple[int, int]
"""Width and height in pixels."""

HEADER = 512 * 1024  # characters of base64: a photo may have a large preview before its size

# OpenAI scales an image into 2048 x 2048, then its shorter side to 768, and counts tiles.
OPENAI_LONGEST, OPENAI_SHORTER, OPENAI_TILE = 2048, 768, 512
OPENAI_BASE, OPENAI_PER_TILE = 85, 170
OPENAI_IMAGE = 765  # 1024 x 1024, for an unknown size

# Anthropic scales an image down to a longest side and a token limit; both grew with 4.7.
ANTHROPIC_PIXELS = 750
ANTHROPIC_UNTIL_4_6, ANTHROPIC_SINCE_4_7 = (1568, 1600), (2576, 4784)

PDF_PAGE = 3000  # Anthropic: 1500 to 3000 tokens of text per page, or an image of a page with less text
PDF_PAGE_BYTES = 50_000  # for PDFs whose pages cannot be counted
_PAGE = re.compile(rb"/Type\s*/Page(?![a-zA-Z])")
_JPEG_SIZES = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})  # start of frame, in any coding


def openai_image_tokens(base64: str) -> int:
    """The tokens in high detail. OpenAI's smaller models count patches instead, with nearly the same result."""
    size = pixel_size(_decoded(base64[:HEADER]))
    if size is None:
        return OPENAI_IMAGE
    width, height = _within(size, OPENAI_LONGEST)
    scale = min(1.0, OPENAI_SHORTER / min(width, height))
    tiles = math.ceil(width * scale / OPENAI_TILE) * math.ceil(height * scale / OPENAI_TILE)
    return OPENAI_BASE + OPENAI_PER_TILE * tiles


def anthropic_image_tokens(base64: str, model: str) -> int:
    """The tokens of an image; the model's maximum if the size is unknown."""
    longest, max_tokens = ANTHROPIC_UNTIL_4_6 if claude_version(model) <= (4, 6) else ANTHROPIC_SINCE_4_7
    size = pixel_size(_decoded(base64[:HEADER]))
    if size is None:
        return max_tokens
    width, height = _within(size, longest)
    return min(max_tokens, math.ceil(width * height / ANTHROPIC_PIXELS))


def pdf_tokens(base64: str) -> int:
    """Counts pages, or estimates them by size if compressed; a PDF by URL counts as one page."""
    data = _decoded(base64)
    pages = len(_PAGE.findall(data)) or math.ceil(len(data) / PDF_PAGE_BYTES)
    return max(1, pages) * PDF_PAGE


def pixel_size(data: bytes) -> Size | None:
    """The size of a PNG, GIF or JPEG from its first bytes; else None."""
    try:
        if data.startswith(b"\x89PNG\r\n\x1a\n"):
            size = struct.unpack_from(">II", data, 16)
        elif data.startswith((b"GIF87a", b"GIF89a")):
            size = struct.unpack_from("<HH", data, 6)
        elif data.startswith(b"\xff\xd8"):
            size = _jpeg_size(data)
        else:
            return None
    except (struct.error, IndexError):
        return None
    return (size[0], size[1]) if min(size) > 0 else None


def _jpeg_size(data: bytes) -> tuple[int, ...]:
    place = 2
    while True:
        if data[place] != 0xFF:
            raise struct.error("a marker is missing")
        marker = data[place + 1]
        if marker == 0xFF:  # padding
            place += 1
        elif marker in _JPEG_SIZES:
            height, width = struct.unpack_from(">HH", data, place + 5)
            return width, height
        else:
            alone = marker == 0x01 or 0xD0 <= marker <= 0xD8
            place += 2 if alone else 2 + max(2, struct.unpack_from(">H", data, place + 2)[0])


def _within(size: Size, longest: int) -> tuple[float, float]:
    scale = min(1.0, longest / max(size))
    return size[0] * scale, size[1] * scale


def _decoded(base64: str) -> bytes:
    try:
        return binascii.a2b_base64(base64[: len(base64) // 4 * 4])
    except (binascii.Error, ValueError):
        return b""
