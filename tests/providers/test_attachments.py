"""Images and files: how both formats write them, and what of them a model can take."""

import asyncio

import pytest
from msgspec.structs import replace

from recto.chat.blocks import Block, File, Image, Text, ToolResult
from recto.providers.anthropic import AnthropicFormat
from recto.providers.attachments import split_data_url, unsupported, without_unsupported
from recto.providers.model import Model, VocabularyCounter
from recto.providers.openai import OpenAIFormat
from recto.window.request import Entry, Format, Piece
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


@pytest.mark.parametrize("format", [OpenAIFormat(), AnthropicFormat()], ids=lambda each: each.name)
def test_images_and_files_are_counted_and_the_count_is_not_exact(format: Format) -> None:
    counter = VocabularyCounter(replace(BLIND, exact=True), format)
    for block in (IMAGE, LINKED, PDF):
        [data] = format.entry(Entry("user", (Text("See"), block)), "acme")
        [count] = asyncio.run(counter.count([Piece("message", data)]))
        assert count.tokens > 700
        assert not count.exact


def test_a_model_that_takes_everything_gets_everything() -> None:
    entry = Entry("user", (Text("See"), IMAGE, PDF, NOTES))
    model = replace(BLIND, images=True, files=True)
    assert unsupported(entry, model) == ()
    assert without_unsupported(entry, model) is entry


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


@pytest.mark.parametrize(
    ("url", "parts"),
    [
        ("data:image/png;base64,AAAA", ("image/png", "AAAA")),
        ("data:text/plain;charset=utf-8;base64,AAAA", ("text/plain", "AAAA")),
        ("data:;base64,AAAA", ("text/plain", "AAAA")),
        ("data:image/svg+xml,<svg/>", None),
        ("https://x.org/data:image/png;base64,AAAA", None),
    ],
)
def test_a_data_url_is_taken_apart(url: str, parts: tuple[str, str] | None) -> None:
    assert split_data_url(url) == parts
