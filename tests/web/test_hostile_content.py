"""Nothing that is shown can run, load from outside or leave the page: no note, reply, title or name."""

from html.parser import HTMLParser
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from tests.web.conftest import OpenPage, Serve, say

from recto.web.markdown import StreamedMarkdown, rendered, rendered_note
from recto.web.templates import pretty

HOSTILE = [
    "[a link](https://example.org)",
    "<script>window.hacked = 1</script>",
    "<img src=x onerror=window.hacked=2>",
    "<svg onload=window.hacked=3><script>window.hacked=4</script></svg>",
    "<math><mtext><table><mglyph><style><img src=x onerror=window.hacked=5></style></mglyph></table></mtext></math>",
    "[click](javascript:window.hacked=6)",
    "[click](JaVaScRiPt:window.hacked=7)",
    "[click](data:text/html,<script>window.hacked=8</script>)",
    "[click](vbscript:window.hacked=9)",
    "[click](file:///etc/passwd)",
    "[click]( javascript:window.hacked=10)",
    "[click](&#106;avascript:window.hacked=11)",
    "![pixel](https://evil.example/pixel.png)",
    "![pixel](//evil.example/pixel.png)",
    "![x](javascript:window.hacked=12)",
    '![x"onerror="window.hacked=13](x)',
    "<style>body { background: url(https://evil.example/css) }</style>",
    '<div style="background: url(https://evil.example/style)">x</div>',
    "<link rel=stylesheet href=https://evil.example/x.css>",
    "<meta http-equiv=refresh content='0;url=https://evil.example'>",
    "<base href=https://evil.example>",
    "<iframe src=https://evil.example></iframe>",
    "<iframe srcdoc='<script>parent.hacked=14</script>'></iframe>",
    "<object data=https://evil.example></object><embed src=https://evil.example>",
    "<form action=https://evil.example><button>go</button></form>",
    "<a href=https://evil.example ping=https://evil.example/ping>x</a>",
    "<video poster=https://evil.example/p.png><source src=https://evil.example/v></video>",
    "<input autofocus onfocus=window.hacked=15>",
    "<details open ontoggle=window.hacked=16>",
    "{{ constructor.constructor('window.hacked=17')() }}",
    "${window.hacked=18}",
    "`${window.hacked=19}`",
    '[[x" onmouseover="window.hacked=20]]',
    "[[<img src=x onerror=window.hacked=21>]]",
    "[[note|<img src=x onerror=window.hacked=22>]]",
    "```<script>window.hacked=23</script>\n<script>window.hacked=24</script>\n```",
    '```"><img src=x onerror=window.hacked=25>\nx\n```',
    "| <img src=x onerror=window.hacked=26> | b |\n|---|---|\n| 1 | 2 |",
    '<a href="javascript:window.hacked=27" data-do="delete" data-id="1">x</a>',
    '<button data-do="delete" data-id="1">x</button>',
    "\u202e<b>turned</b>\x00\x08",
    "</template></script></style></textarea><script>window.hacked=28</script>",
    "<!--><script>window.hacked=29</script>-->",
    "<x-component :is=\"'script'\">window.hacked=30</x-component>",
]
SHOWN = "a blockquote br button code div em h1 h2 h3 hr img li ol p pre s span strong table tbody td th thead tr ul"
KNOWN = "alt class data-copy data-do data-end data-line data-link dir href loading rel src start target type"

NOTE = "\n\n".join(HOSTILE).replace("\0", "")  # a file with a NUL is no text


class Tags(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


@pytest.mark.parametrize("text", HOSTILE)
def test_markdown_becomes_html_without_anything_that_acts(text: str) -> None:
    streamed = StreamedMarkdown()
    streamed.add(text)
    for html in (rendered(text), rendered_note(text), "".join(streamed.changes()[1])):
        for tag, attributes in Tags(html).found:
            assert tag in SHOWN.split()
            assert set(attributes) <= set(KNOWN.split())
            assert attributes.get("data-do", "note") == "note"
            assert tag != "img" or (attributes["src"] or "").startswith("/vault-image?path=")
            href = attributes.get("href") or "#"
            assert href.startswith(("#", "http://", "https://", "mailto:"))
            assert href.startswith("#") or attributes["rel"] == "noopener noreferrer nofollow"


def test_a_growing_text_ends_as_the_whole_one() -> None:
    text = "# One\n\ntwo *three*\n\n- a\n- b\n\n```py\nx = 1\n\ny = 2\n```\n\nlast [[Note]]\n"
    streamed, blocks = StreamedMarkdown(), list[str]()
    for sign in text:
        streamed.add(sign)
        first, changed = streamed.changes()
        blocks[first:] = changed
    assert "".join(blocks).split() == rendered(text).split()


def test_arguments_that_a_user_judges_hide_nothing() -> None:
    assert pretty('{"path": "a\\u202eb", "n": 1}') == '{\n  "path": "a\\u202eb",\n  "n": 1\n}'
    assert pretty("no json \x1b") == "no json \\u001b"


def nothing_happened(page: Page) -> None:
    assert page.evaluate("window.hacked") is None
    assert page.url.startswith("http://127.0.0.1:")
    assert page.locator(".items script, .items svg, .items iframe, .items style, .turn script").count() == 0


@pytest.mark.slow
def test_hostile_replies_titles_and_names_do_nothing(serve: Serve, open_page: OpenPage, tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    vault.mkdir()
    (vault / "<img src=x onerror=window.hacked=40>.md").write_text(NOTE)
    (vault / "bad.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg' onload='top.hacked=41'/>")
    (vault / "Note.md").write_text(f"![[bad.svg]] ![x](bad.svg)\n\n{NOTE}")
    page = open_page(serve({"text": "\n\n".join(HOSTILE), "delay_s": 0.0}, vault=vault), allows="404")
    say(page, "[[Note]]\n" + "\n".join(HOSTILE))
    expect(page.locator("article.assistant")).to_have_count(1)
    nothing_happened(page)
    page.locator(".conversations li summary").first.click()
    page.get_by_role("button", name="Rename").click()
    page.get_by_label("Title").fill("<img src=x onerror=window.hacked=42>")
    page.keyboard.press("Enter")
    expect(page.locator(".conversations .title")).to_have_text("<img src=x onerror=window.hacked=42>")
    page.locator("article.assistant").get_by_role("button", name="Context").click()
    expect(page.get_by_role("tabpanel")).to_contain_text("What was sent")
    page.get_by_role("button", name="Raw").click()
    expect(page.get_by_role("tabpanel").locator("pre").first).to_be_visible()
    page.locator("article.user .prose").get_by_role("link", name="Note", exact=True).click()
    expect(page.get_by_role("tabpanel")).to_contain_text("Linked from")
    page.get_by_label("Message", exact=True).press_sequentially("see [[im")
    expect(page.locator(".offers li").first).to_contain_text("<img")
    page.get_by_label("Search conversations").fill("hacked")
    expect(page.locator(".hit").first).to_be_visible()
    nothing_happened(page)
    page.reload()
    expect(page.locator("article.assistant")).to_have_count(1)
    nothing_happened(page)
    for link in page.locator("article.assistant .prose a:text('click')").all():
        link.click()
    nothing_happened(page)


@pytest.mark.slow
def test_files_come_from_the_vault_alone_and_only_pictures(serve: Serve, open_page: OpenPage, tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    vault.mkdir()
    (tmp_path / "secret.png").write_bytes(b"\x89PNG\r\n\x1a\nsecret")
    (vault / "bad.svg").write_text("<svg/>")
    (vault / "Note.md").write_text("text")
    page = open_page(serve(vault=vault), allows="404")
    statuses = page.evaluate(
        """() => Promise.all(["../secret.png", "/etc/passwd", "bad.svg", "Note.md", "%2e%2e/secret.png", "none.png"]
            .map((path) => fetch(`/vault-image?path=${path}`).then((answer) => answer.status)))"""
    )
    assert statuses == [404] * 6
    for path in ("/docs", "/openapi.json", "/redoc"):
        assert page.evaluate("path => fetch(path).then((answer) => answer.status)", path) == 404
