"""Markdown and HTML: everything that was said can be read, with its context, and nothing of it is obeyed."""

from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from tests.transfer.samples import DOT

from recto.api.blocking import Desk
from recto.base.ids import new_id
from recto.chat.blocks import (
    Block,
    DocumentReference,
    File,
    Image,
    Quote,
    References,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from recto.chat.message import Message
from recto.store.store import Store
from recto.transfer.exporter import export_chunks
from recto.transfer.report import ExportFormat

HOSTILE = (
    '<script>alert(1)</script><img src=x onerror="alert(2)"><iframe src="https://evil.example"></iframe>'
    "</style></title></article><style>*{display:none}</style> ![](https://evil.example/pixel.png) "
    '[click](javascript:alert(3)) <a href="javascript:alert(4)">x</a> "quoted\' & \x1b[31m'
)
ALLOWED = {
    *("html", "head", "meta", "title", "style", "body", "h1", "h2", "h3", "h4", "h5", "h6", "header", "article", "div"),
    *("p", "ul", "ol", "li", "pre", "code", "em", "strong", "blockquote", "small", "br", "hr", "a", "img", "details"),
    *("summary", "table", "thead", "tbody", "tr", "th", "td"),
}
ATTRIBUTES = {
    *("class", "id", "href", "title", "src", "alt", "start", "content", "name", "charset", "http-equiv", "lang", "dir"),
}


class Checker(HTMLParser):
    """Reads a page and holds every element against what we write."""

    def __init__(self) -> None:
        super().__init__()
        self.text: list[str] = []
        self.images: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ALLOWED, tag
        for name, value in attrs:
            assert name in ATTRIBUTES | {"style"}, name
            assert name != "style" or (tag in ("td", "th") and str(value).startswith("text-align:")), value
            if name == "href":
                assert str(value).partition(":")[0].lower() not in ("javascript", "vbscript", "data", "file"), value
            if name == "src":
                assert str(value).startswith("data:image/"), value
                self.images.append(str(value))

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def checked(page: bytes) -> Checker:
    found = Checker()
    found.feed(page.decode())
    found.close()
    return found


def exported(store: Store, format: ExportFormat) -> bytes:
    return b"".join(export_chunks(store, store.copies.ids(), format))


def blocks_with(text: str) -> tuple[Block, ...]:
    reference = DocumentReference(text, text, "search", text, text)
    return (
        Text(text),
        Thinking(text),
        ToolCall(text, text, text),
        ToolResult(text, text, text, is_error=True, attachments=(File(text, text), Image(text, base64=text))),
        File(text, text),
        File(text, "", text),
        Image(text, base64=text, name=text),
        Image("image/png", base64=text, name=text, url=text),
        References((reference,), text, text, quotes=(Quote(text, text, text, 1, text, text),)),
    )


def say(store: Store, *messages: tuple[Block, ...], title: str = "") -> str:
    home = store.tree.create(title=title, details={"model": title}).id
    parent = None
    for blocks in messages:
        message = Message(new_id(), "user", blocks, parent, error=title or None, model=title or None)
        parent = store.tree.append(home, message).message.id
    return home


def test_a_hostile_text_is_shown_and_not_obeyed_wherever_it_stands(store: Store) -> None:
    say(store, blocks_with(HOSTILE), title=HOSTILE)
    page = checked(exported(store, "html"))
    assert "<script>alert(1)</script>" in "".join(page.text)
    assert "evil.example/pixel.png" not in "".join(page.images)


@given(text=st.text(st.sampled_from("<>&\"'`[](){}!#*_|~\\/=: \nab1-+.javscript"), max_size=60))
def test_no_text_leaves_the_page_it_is_in(text: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    with Store(tmp_path_factory.mktemp("page") / "recto.db") as store:
        say(store, blocks_with(text), title=text)
        page = exported(store, "html")
        checked(page)
        assert page.count(b"<article") == page.count(b"</article>") == 1
        assert exported(store, "markdown")


def test_each_paragraph_list_and_table_runs_in_the_direction_of_its_language(store: Store) -> None:
    say(store, (Text("مرحبا\n\n- أولاً\n- ثانياً\n\n| أ | ب |\n|---|---|\n| ج | د |\n"),), title="سفينة")
    page = exported(store, "html").decode()
    for beginning in ('<h1 dir="auto">سفينة', '<p dir="auto">مرحبا', '<ul dir="auto">', '<table dir="auto">'):
        assert beginning in page
    assert "<li>أولاً" in page, "an item with a direction of its own would not count for its list"


def test_images_are_part_of_the_page(store: Store) -> None:
    sha256 = store.blobs.put(DOT)
    drawing = store.blobs.put(b"<svg/>")
    say(store, (Image("image/png", sha256=sha256), Image("image/svg+xml", sha256=drawing, name="drawing.svg")))
    page = checked(exported(store, "html"))
    assert len(page.images) == 1
    assert page.images[0].startswith("data:image/png;base64,")
    assert "drawing.svg" in "".join(page.text)


def test_an_open_fence_does_not_swallow_what_follows(store: Store) -> None:
    say(store, (Text("Look:\n```python\nprint(1)"),), (Text("Next message."),))
    tokens = MarkdownIt("commonmark").parse(exported(store, "markdown").decode())
    headings = [
        tokens[place + 1].content for place, token in enumerate(tokens) if token.tag == "h2" and token.nesting == 1
    ]
    assert [heading[:6] for heading in headings] == ["#1 You", "#2 You"]


@pytest.mark.parametrize("format", ["markdown", "html"])
def test_the_whole_conversation_can_be_read_with_the_context_of_each_reply(
    talked: Desk, tmp_path: Path, format: ExportFormat
) -> None:
    file = talked.export(tmp_path / "out", format=format)
    told = "".join(checked(file.read_bytes()).text) if format == "html" else file.read_text()
    for expected in (
        "How old is",
        "read_document",
        "Sorrel.md",
        "📚 Referenced documents",
        "Question 2?",
        "Compaction 1: ",
        "They spoke of a boat.",
        "Rather this.",
        "Another branch, after #",
        "And after that?",
        "linked as",
    ):
        assert expected in told, expected
    assert told.count("Context:") >= 6
    assert " of 4,000 tokens" in told


def test_all_conversations_are_one_page(talked: Desk, tmp_path: Path) -> None:
    talked.conversation().ask("Something else.")
    page = checked(talked.export(tmp_path / "all.html", format="html", everything=True).read_bytes())
    assert "Something else." in "".join(page.text)


def test_a_damaged_record_leaves_the_rest_readable(talked: Desk, tmp_path: Path) -> None:
    with talked.store.database.write() as connection:
        connection.exec_driver_sql("UPDATE requests SET account = x'00'")
    told = talked.export(tmp_path / "out.md", format="markdown").read_text()
    assert "Its context can no longer be read" in told
    assert "Rather this." in told
