"""Images and files: how both formats write them, what a model accepts of them, and their tokens."""

import base64
import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from recto.chat.blocks import Block, File, Image, Text, ToolResult
from recto.providers.anthropic import AnthropicFormat
from recto.providers.attachments import (
    ANTHROPIC_SINCE_4_7,
    ANTHROPIC_UNTIL_4_6,
    OPENAI_IMAGE,
    PDF_PAGE,
    anthropic_image_tokens,
    openai_image_tokens,
    pdf_tokens,
    pixel_size,
    unsupported,
    without_unsupported,
)
from recto.providers.model import Model
from recto.providers.openai import OpenAIFormat
from recto.window.request import Entry, Format
from recto.wire import Json, loads

IMAGE = Image("image/png", "AAAA")
LINKED = Image("", "", url="https://x.org/a.png")
PDF = File("a.pdf", "", "application/pdf", base64="JVBERg==")
READ_PDF = replace(PDF, text="as text")
LINKED_PDF = File("b.pdf", "", "application/pdf", url="https://x.org/b.pdf")
NOTES = File("a.md", "notes")
BLIND = Model("acme:m", "acme", "m", None, "unknown")


def content(format: Format, *blocks: Block, role: str = "user") -> list[Json]:
    return [loads(data)["content"] for data in format.entry(Entry(role, blocks), "acme")]  # type: ignore[arg-type]


def test_openai_sends_images_and_pdfs_as_parts() -> None:
    assert content(OpenAIFormat(), Text("See"), IMAGE, LINKED, PDF, NOTES) == [
        [
            {"type": "text", "text": "See"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
            {"type": "image_url", "image_url": {"url": "https://x.org/a.png"}},
            {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERg=="}},
            {"type": "text", "text": "File a.md:\n```\nnotes\n```"},
        ]
    ]


def test_anthropic_sends_images_and_pdfs_as_blocks() -> None:
    data = {"type": "base64", "media_type": "application/pdf", "data": "JVBERg=="}
    assert content(AnthropicFormat(), IMAGE, LINKED, PDF, LINKED_PDF, NOTES) == [
        [
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
            {"type": "image", "source": {"type": "url", "url": "https://x.org/a.png"}},
            {"type": "document", "source": data, "title": "a.pdf"},
            {"type": "document", "source": {"type": "url", "url": "https://x.org/b.pdf"}, "title": "b.pdf"},
            {"type": "text", "text": "File a.md:\n```\nnotes\n```"},
        ]
    ]


def test_an_image_of_a_tool_stays_with_its_result_where_that_is_allowed() -> None:
    result = ToolResult("c", "look", "seen", attachments=(IMAGE, NOTES))
    [[sent]] = content(AnthropicFormat(), result, role="tool")
    assert [item["type"] for item in sent["content"]] == ["text", "image", "text"]
    answer, behind = content(OpenAIFormat(), result, ToolResult("d", "wait", "done"), role="tool")[::2]
    assert answer == "seen"
    assert [part["type"] for part in behind] == ["text", "image_url", "text"]


def test_what_a_model_cannot_take_is_named_and_a_line_takes_its_place() -> None:
    result = ToolResult("c", "look", "seen", attachments=(IMAGE, NOTES))
    entry = Entry("user", (Text("See"), LINKED, PDF, READ_PDF, NOTES, result))
    assert unsupported(entry, BLIND) == (LINKED, PDF, READ_PDF, IMAGE)
    assert unsupported(entry, replace(BLIND, images=True)) == (PDF, READ_PDF)
    as_text = replace(READ_PDF, base64="")
    image = "[An image is attached, but this model cannot read images.]"
    assert without_unsupported(entry, BLIND).blocks == (
        Text("See"),
        Text(image),
        Text(f"[{PDF.name} is attached, but this model cannot read files.]"),
        as_text,
        NOTES,
        replace(result, text=f"seen\n{image}", attachments=(NOTES,)),
    )
    assert unsupported(without_unsupported(entry, BLIND), BLIND) == ()


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


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


@given(SIDES, SIDES)
def test_the_size_of_an_image_stands_in_its_first_bytes(width: int, height: int) -> None:
    for made in (png, gif, jpeg):
        assert pixel_size(made(width, height)) == (width, height)


def test_a_photo_may_carry_much_before_its_size() -> None:
    assert pixel_size(jpeg(4000, 3000, before=b"\xff\xc0" * 30_000)) == (4000, 3000)


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
