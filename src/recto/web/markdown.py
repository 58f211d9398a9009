"""Markdown as HTML that cannot run or load anything or leave the page. HTML in a text is escaped.

StreamedMarkdown: a growing text of which only the last block is rendered again.
"""

from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from html import escape
from urllib.parse import quote, unquote, urlsplit

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict
from markupsafe import Markup
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.util import ClassNotFound

from recto.base.patient_lexer import PatientLexer

# Longer code is not coloured: it would take too long.
MOST_COLOURED = 20_000
OUTSIDE = ("http", "https", "mailto")
LONGEST_LINK = 200
PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".webp")
IN_NOTE = "in_note"
"""In the environment of a note: show pictures of the vault, and mark blocks with their line."""


def rendered(text: str) -> Markup:
    return Markup(_markdown().render(text))


def rendered_note(text: str, first_line: int = 1) -> Markup:
    """Render a note, each block with its first line's number."""
    return Markup(_markdown().render(text, {IN_NOTE: first_line}))


class StreamedMarkdown:
    """The blocks of a growing text. A block is settled once another follows it."""

    def __init__(self) -> None:
        self._open = ""
        """The text from the first unsettled block on."""
        self._settled = 0

    def add(self, text: str) -> None:
        self._open += text

    def changes(self) -> tuple[int, list[str]]:
        """The changes since the last call: the number of the first changed block, and the HTML from there on."""
        tokens = _markdown().parse(self._open)
        starts = [token.map[0] for token in tokens if token.level == 0 and token.map and token.nesting >= 0]
        begun = sorted(set(starts)) or [0]
        lines = self._open.split("\n")
        ends = [*begun[1:], len(lines)]
        parts = ["\n".join(lines[start:end]) for start, end in zip(begun, ends, strict=True)]
        first = self._settled
        self._settled += len(parts) - 1
        self._open = parts[-1]
        return first, [_markdown().render(part) for part in parts]


@cache
def _markdown() -> MarkdownIt:
    made = MarkdownIt("commonmark", {"html": False, "linkify": False}).enable(["table", "strikethrough"])
    made.inline.ruler.before("link", "note_link", _note_link)
    made.core.ruler.push("directions", _set_places)
    rules = {"link_open": _link_open, "image": _image, "fence": _fence, "code_block": _fence}
    for name, rule in rules.items():
        made.add_render_rule(name, rule)
    return made


def _set_places(state: StateCore) -> None:
    """Set each block's direction by its first letter (right to left in Arabic), and a note's line numbers."""
    first = state.env.get(IN_NOTE)
    for token in state.tokens:
        if token.level == 0 and token.nesting == 1:
            token.attrSet("dir", "auto")
        if first is not None and token.map and token.nesting >= 0 and token.block:
            token.attrSet("data-line", str(token.map[0] + first))
            token.attrSet("data-end", str(token.map[1] + first - 1))


def _note_link(state: StateInline, silent: bool) -> bool:
    """`[[note]]`, `[[note#heading|words]]`, and `![[picture.png]]`."""
    start = state.pos + (state.src[state.pos] == "!")
    if not state.src.startswith("[[", start):
        return False
    end = state.src.find("]]", start, start + LONGEST_LINK)
    inside = state.src[start + 2 : end]
    if end < 0 or not inside.strip() or "\n" in inside or "[" in inside:
        return False
    target, _, words = inside.partition("|")
    if not silent and start > state.pos and IN_NOTE in state.env and target.lower().endswith(PICTURES):
        token = state.push("image", "img", 0)
        token.attrs, token.content = {"src": target.strip()}, target.strip()
    elif not silent:
        token = state.push("link_open", "a", 1)
        token.meta = {"note": target.strip()}
        state.push("text", "", 0).content = words.strip() or target.strip()
        state.push("link_close", "a", -1)
    state.pos = end + 2
    return True


def note_anchor(link: str) -> str:
    """The start tag of a link that opens a note beside the chat."""
    return f'<a href="#" class="note-link" data-do="note" data-link="{escape(link)}">'


def _link_open(renderer: RendererHTML, tokens: Sequence[Token], place: int, options: OptionsDict, env: EnvType) -> str:
    token = tokens[place]
    if "note" in token.meta:
        return note_anchor(token.meta["note"])
    href = str(token.attrGet("href") or "")
    if _scheme(href) in OUTSIDE:
        return f'<a href="{escape(href)}" target="_blank" rel="noopener noreferrer nofollow">'
    return note_anchor(unquote(href)) if _is_inside(href) else '<a class="dead-link">'


def _image(renderer: RendererHTML, tokens: Sequence[Token], place: int, options: OptionsDict, env: EnvType) -> str:
    """A picture of the vault in a note. Others are named, not loaded, which would reveal the reader to their server."""
    token = tokens[place]
    source, words = str(token.attrGet("src") or ""), escape(token.content)
    if IN_NOTE in env and _is_inside(source):
        return f'<img src="/vault-image?path={escape(quote(unquote(source)))}" alt="{words}" loading="lazy">'
    named = f"picture: {words or 'without a name'}"
    if _scheme(source) in ("http", "https"):
        return f'<a href="{escape(source)}" target="_blank" rel="noopener noreferrer nofollow">[{named}]</a>'
    return f'<span class="dead-link">[{named}]</span>'


def _is_inside(href: str) -> bool:
    """True if it may be a path in the vault."""
    return not _scheme(href) and not href.startswith(("/", "\\"))


def _scheme(href: str) -> str:
    try:
        return urlsplit(href).scheme.lower()
    except ValueError:
        return "unreadable"


def _fence(renderer: RendererHTML, tokens: Sequence[Token], place: int, options: OptionsDict, env: EnvType) -> str:
    token = tokens[place]
    language = next(iter(token.info.split()), "")
    line = f' data-line="{token.attrGet("data-line")}"' if token.attrGet("data-line") else ""
    head = f'<span>{escape(language)}</span><button type="button" data-copy="code">Copy</button>'
    code = coloured(token.content, language)
    return f'<div class="code"{line}><div class="code-head">{head}</div><pre>{code}</pre></div>'


def coloured(code: str, language: str) -> str:
    """Code with highlighting classes; plain in an unknown language."""
    shown = escape(code)
    if language and len(code) <= MOST_COLOURED:
        with suppress(ClassNotFound):
            shown = highlight(code, PatientLexer(language), HtmlFormatter(nowrap=True))
    return f"<code>{shown}</code>"
