"""Images and PDFs as tokens: sizes are read from the first bytes, and nothing that is broken stops a count."""

import base64
import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.providers.attachments import (
    ANTHROPIC_SINCE_4_7,
    ANTHROPIC_UNTIL_4_6,
    OPENAI_IMAGE,
    PDF_PAGE,
    anthropic_image_tokens,
    openai_image_tokens,
    pdf_tokens,
    pixel_size,
)

OLD, NEW = "claude-sonnet-4-5", "claude-opus-4-7"
SIDES = st.integers(1, 16_000)


def png(width: int, height: int) -> bytes:
    return b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", width, height) + b"\x08\x02\0\0\0"


def gif(width: int, height: int) -> bytes:
    return b"GIF89a" + struct.pack("<HH", width, height) + b"\0\0\0"


def jpeg(width: int, height: int, before: bytes = b"") -> bytes:
    """`before` is what a camera writes first."""
    exif = b"\xff\xe1" + struct.pack(">H", len(before) + 2) + before
    return b"\xff\xd8" + exif + b"\xff\xff\xc2\x00\x11\x08" + struct.pack(">HH", height, width) + b"\x03"


def webp_lossy(width: int, height: int) -> bytes:
    return b"RIFF\0\0\0\0WEBPVP8 \0\0\0\0" + b"\0\0\0\x9d\x01\x2a" + struct.pack("<HH", width, height)


def webp_lossless(width: int, height: int) -> bytes:
    return b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f" + struct.pack("<I", (width - 1) | (height - 1) << 14)


def webp_extended(width: int, height: int) -> bytes:
    sides = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    return b"RIFF\0\0\0\0WEBPVP8X\0\0\0\0\0\0\0\0" + sides


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


@given(SIDES, SIDES)
def test_the_size_of_an_image_stands_in_its_first_bytes(width: int, height: int) -> None:
    for made in (png, gif, jpeg, webp_lossy, webp_lossless, webp_extended):
        assert pixel_size(made(width, height)) == (width, height)


def test_a_photo_may_carry_much_before_its_size() -> None:
    assert pixel_size(jpeg(4000, 3000, before=b"\xff\xc0" * 30_000)) == (4000, 3000)


@given(st.sampled_from([png, gif, jpeg, webp_lossy, webp_lossless, webp_extended]), st.integers(0, 60), st.binary())
def test_a_broken_image_has_no_size_or_any(made: object, kept: int, more: bytes) -> None:
    size = pixel_size(made(30, 20)[:kept] + more)  # type: ignore[operator]
    assert size is None or min(size) > 0


@pytest.mark.parametrize("data", [b"", b"x", b"%PDF-1.7", png(0, 5), b"\xff\xd8\xff"])
def test_what_is_no_image_has_no_size(data: bytes) -> None:
    assert pixel_size(data) is None


@pytest.mark.parametrize(
    ("size", "tokens"),
    [((512, 512), 255), ((1024, 1024), 765), ((2048, 4096), 1105), ((4096, 8192), 1105), ((64, 64), 255)],
)
def test_openai_counts_tiles(size: tuple[int, int], tokens: int) -> None:
    assert openai_image_tokens(encoded(png(*size))) == tokens


def test_an_image_that_cannot_be_read_costs_a_constant() -> None:
    assert openai_image_tokens("") == openai_image_tokens("A" * 100_000) == OPENAI_IMAGE
    assert anthropic_image_tokens("!", OLD) == ANTHROPIC_UNTIL_4_6[1]
    assert anthropic_image_tokens("", NEW) == ANTHROPIC_SINCE_4_7[1]


def test_anthropic_counts_pixels_of_what_its_model_sees() -> None:
    assert anthropic_image_tokens(encoded(png(750, 100)), OLD) == 100
    assert anthropic_image_tokens(encoded(png(1092, 1092)), OLD) == math.ceil(1092 * 1092 / 750)
    large = encoded(jpeg(4000, 3000))
    assert anthropic_image_tokens(large, OLD) == ANTHROPIC_UNTIL_4_6[1]
    assert anthropic_image_tokens(large, NEW) == ANTHROPIC_SINCE_4_7[1]
    assert anthropic_image_tokens(encoded(png(5152, 100)), NEW) == math.ceil(2576 * 50 / 750)


def test_a_pdf_costs_its_pages() -> None:
    pages = b"%PDF-1.7\n<< /Type /Pages /Kids [1 0 R] /Count 3 >>" + b"<< /Type /Page >>" * 3
    assert pdf_tokens(encoded(pages)) == 3 * PDF_PAGE
    assert pdf_tokens(encoded(b"<</Type/Pages/Count 12/Kids[]>>")) == 12 * PDF_PAGE


def test_a_pdf_whose_pages_are_packed_costs_its_size() -> None:
    assert pdf_tokens(encoded(b"\0" * 120_000)) == 3 * PDF_PAGE
    assert pdf_tokens("") == pdf_tokens("!") == PDF_PAGE
