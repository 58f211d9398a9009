"""Gist: a note in one line, for lists: its first paragraph in plain text, or what its properties say it is."""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from recto.vault.document import Document
from recto.vault.prose import masked

LONGEST = 100
# What is looked through for a paragraph, and how much of that paragraph: more than any gist can come from.
_MOST_LOOKED, _MOST_TAKEN = 20_000, 2000

_HEADING = re.compile(r" {0,3}#{1,6}(?:\s|$)")
_UNDERLINE = re.compile(r" {0,3}(?:=+|-+)\s*$")
_RULE = re.compile(r" {0,3}(?:[-*_][ \t]*){3,}$")
_ITEM = re.compile(r"\s*(?:[-*+]|\d{1,9}[.)])\s+(?:\[.\]\s+)?")
_QUOTE = re.compile(r"\s*>[>\s]*")
_CALLOUT = re.compile(r"\[![\w-]+\][+-]?\s*")
_TABLE = re.compile(r"\s*\||[^|]*\|[^|]*\|")
_INDENTED = re.compile(r" {4}|\t")
_FIELD = re.compile(r"[^\s:][^:\n]{0,60}:: ?")

_COMMENT = re.compile(r"%%.*?(?:%%|$)|<!--.*?(?:-->|$)", re.DOTALL)
_EMBED = re.compile(r"!\[\[[^\]\n]*\]\]|!\[[^\]\n]*\]\([^)\n]*\)")
_WIKI = re.compile(r"\[\[([^\[\]\n]+)\]\]")
_LINK = re.compile(r"\[([^\[\]\n]*)\](?:\([^()\n]*(?:\([^()\n]*\)[^()\n]*)?\)|\[[^\]\n]*\])")
_NOTE_MARK = re.compile(r"\[\^[^\]\n]*\]")
_ADDRESS = re.compile(r"<?\b(?:https?|ftp|mailto|obsidian):[^\s<>]*>?")
_HTML = re.compile(r"</?[A-Za-z][^<>\n]*>")
_BLOCK_ID = re.compile(r"\s\^[A-Za-z0-9-]+\s*$")
_TAG = re.compile(r"(?<!\S)#[\w/-]*[^\W\d][\w/-]*")
# What links, tags, addresses and the like have in common: most paragraphs hold none.
_OTHER = re.compile(r"[\[#:<]")
_SOME_MARK = re.compile(r"[*~=`_]")
_NO_LETTERS = re.compile(r"[\W_]+")
_MARKS = re.compile(r"(?<!\\)(?:\*{1,3}|~~|==|`+)|(?<![\\\w])_{1,3}(?=\S)|(?<=\S)_{1,3}(?!\w)")
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")
_STOP = re.compile(r"[.!?…]+[\"'”’)\]]*(?=\s+[^\s\d\W_]|\s*$)|[。！？]+[」』”]?")
_ABBREVIATED = re.compile(
    r"(?:(?:(?<!\S)|(?<=[.(]))[A-Za-z]|\b(?:Mr|Mrs|Ms|Dr|Prof|St|vs|etc|e\.g|i\.e|z\.B|bzw|ca|No|Nr)|^\d+)\.$"
)


@dataclass(frozen=True, slots=True)
class Gist:
    text: str
    """One line of at most 100 characters; empty for a note that says nothing."""
    is_whole: bool = True
    """Whether it is all of what it was taken from, or only the beginning."""


def gist(document: Document) -> Gist:
    """A short description in its properties, else its first real paragraph, or the first sentence of it."""
    for name in ("description", "summary"):
        given = document.head[0].get(name)
        said = _line(given[:_MOST_TAKEN]) if isinstance(given, str) else ""
        if 0 < len(said) <= LONGEST:
            return Gist(said)
    paragraph = next(_paragraphs(document), "")
    if len(paragraph) < LONGEST:
        return Gist(paragraph)
    return Gist(shortened(_first_sentence(paragraph)), is_whole=False)


def shortened(line: str, most: int = LONGEST) -> str:
    """A line cut where a word ends, with an ellipsis."""
    if len(line) <= most:
        return line
    end = most - 1
    space = line.rfind(" ", most // 2, end + 1)
    return line[: space if space > 0 else _character_end(line, end)].rstrip(" ,;:–—-") + "…"


def _character_end(line: str, end: int) -> int:
    """Not between a letter and its accent, nor within an emoji of several parts."""
    at = end
    while at > end - 16 and (unicodedata.category(line[at])[0] == "M" or "\u200d" in line[at - 1 : at + 1]):
        at -= 1
    return at


def _paragraphs(document: Document) -> Iterator[str]:
    """What a note says, in plain lines: paragraphs that are about something, then what stands in lists and quotes."""
    start = document.head[1]
    text = document.text[start : start + _MOST_LOOKED]
    aside: list[str] = []
    for lines in _blocks(text):
        raw = "\n".join(lines)[:_MOST_TAKEN]
        if _ITEM.match(raw) or _QUOTE.match(raw):
            aside.append(_CALLOUT.sub("", _QUOTE.sub("", _ITEM.sub("", lines[0][:_MOST_TAKEN]), count=1), count=1))
        elif plain := _telling(raw):
            yield plain
    yield from filter(None, map(_telling, aside))


def _blocks(text: str) -> Iterator[list[str]]:
    """Lines that belong together, without headings, rules, code, comments and what else is no text."""
    block: list[str] = []
    for line, mask in zip(text.split("\n"), masked(text).split("\n"), strict=True):
        if _UNDERLINE.match(line) and block:  # it was a heading
            block = []
            continue
        is_text = bool(mask.strip()) and not _is_layout(line[:_MOST_TAKEN], is_first=not block)
        if block and (not is_text or _ITEM.match(line)):
            yield block
            block = []
        if is_text and not _FIELD.match(line):
            block.append(line)
    if block:
        yield block


def _is_layout(line: str, *, is_first: bool) -> bool:
    if is_first and _INDENTED.match(line) and not _ITEM.match(line):
        return True  # code
    return bool(_HEADING.match(line) or _RULE.match(line) or _TABLE.match(_WIKI.sub("", line)))


def _telling(raw: str) -> str:
    """As it is read, where a quarter of the letters at least is text: not links, tags and addresses. Else empty."""
    rest, plain = _COMMENT.sub(" ", raw), _plain(raw)
    for other in (_EMBED, _WIKI, _LINK, _ADDRESS, _TAG, _HTML) if _OTHER.search(rest) else ():
        rest = other.sub(" ", rest)
    own = _letters(rest)
    return plain if own > 0 and 4 * own >= _letters(plain) else ""


def _letters(text: str) -> int:
    count = len(_NO_LETTERS.sub("", text))
    return count if text.isascii() else count + sum(unicodedata.category(sign) == "So" for sign in text)


def _plain(raw: str) -> str:
    """Markdown as it is read."""
    text = _BLOCK_ID.sub("", _COMMENT.sub(" ", raw))
    text = _NOTE_MARK.sub("", _EMBED.sub("", text))
    text = _LINK.sub(r"\1", _WIKI.sub(lambda link: _shown(link[1]), text))
    text = _HTML.sub("", text)
    text = _ESCAPE.sub(r"\1", _MARKS.sub("", text) if _SOME_MARK.search(text) else text)
    return _line(text)


def _shown(inside: str) -> str:
    """What a reader sees of a wikilink: its caption, or the name of the note."""
    target, bar, caption = inside.partition("|")
    if bar and caption.strip():
        return caption.strip()
    name, _, heading = target.rstrip("\\").partition("#")
    return name.rpartition("/")[2].strip() or heading.strip("^ ")


def _line(text: str) -> str:
    return " ".join(text.split())


def _first_sentence(line: str) -> str:
    for stop in _STOP.finditer(line):
        if not _ABBREVIATED.search(line, 0, stop.end()):
            return line[: stop.end()]
    return line
