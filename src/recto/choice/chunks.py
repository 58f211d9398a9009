"""Chunks: a source as it is found: a tool by its name and what it is told to do, a text by what it is called and by its
sections. Knows no question."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from recto.search.passages import LONGEST, SHORTEST
from recto.search.sayings import sentences
from recto.search.terms import STOP, words
from recto.sources.source import Source, Tool, Written
from recto.vault.document import Document
from recto.vault.pieces import Piece, pieces
from recto.vault.wording import stem_of

# Of the parameters of a tool so many are read, and so deep: schemas may be endless.
MOST_PARAMETERS, DEEPEST = 40, 3
# A text this short is one chunk; one with headings is about several things sooner.
WHOLE, WHOLE_WITH_HEADINGS = LONGEST + SHORTEST, 400
# A section up to this length goes in whole, of a longer one what fits best.
MOST_PART = 4000
LEFT_OUT = "\n\n…\n\n"

_JOINTS = re.compile(r"[\W_]+|(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


@dataclass(frozen=True, slots=True)
class Chunk:
    said: tuple[str, ...]
    """What is embedded; it stands in the middle of them."""
    name: frozenset[str]
    """Stems of what its source is called."""
    stems: frozenset[str]
    """Of all its words, those of the name among them."""
    part: str | None = None
    """Verbatim with its heading, where the source has several."""


def chunks(source: Source) -> tuple[Chunk, ...]:
    """At least one."""
    return tuple(_of_tool(source) if isinstance(source, Tool) else _of_text(source))


def apart(name: str) -> str:
    """A name in words: `getUserInfo`, `get_user-info` and `get.user.info` are "get user info"."""
    return " ".join(part for part in _JOINTS.split(name) if part).lower()


def stems(text: str) -> frozenset[str]:
    return frozenset(stem_of(word) for word in words(text) if word not in STOP)


# -- tools


def _of_tool(tool: Tool) -> Iterator[Chunk]:
    own = apart(tool.own_name or tool.name)
    server = apart(tool.server)
    told = " ".join(tool.description.split())
    parameters = list(islice(_parameters(tool.schema), MOST_PARAMETERS))
    name = stems(own)
    every = stems(" ".join([server, own, told, *(f"{apart(each)} {said}" for each, said in parameters)]))
    # the name leads astray whoever does not think of it: what it does, by itself, counts as much
    said = (f"{server} {own}: {told}"[:LONGEST], *sentences(told)[:1])
    yield Chunk(said, name, every)


def _parameters(schema: Mapping[str, Any], depth: int = DEEPEST) -> Iterator[tuple[str, str]]:
    """Names and descriptions; a schema that is not as it should be has none."""
    given = schema.get("properties")
    for name, each in given.items() if isinstance(given, Mapping) else ():
        if not isinstance(each, Mapping):
            continue
        said = each.get("description")
        yield str(name), said if isinstance(said, str) else ""
        below = each.get("items") if isinstance(each.get("items"), Mapping) else each
        if depth and isinstance(below, Mapping):
            yield from _parameters(below, depth - 1)


# -- texts


def _of_text(source: Written) -> Iterator[Chunk]:
    called = apart(source.name)
    head = f"{called}: {source.description}" if source.description else called
    name = stems(f"{called} {source.description}")
    document = Document(f"{source.name}.md", source.text)
    cut = [piece for piece in pieces(document) if piece.text] if _is_long(source.text) else []
    if len(cut) < 2:
        yield Chunk((f"{head}\n{source.text.strip()}"[:WHOLE],), name, name | stems(source.text))
        return
    yield Chunk((head,), name, name)
    for piece in cut:
        said = f"{head}\n{piece.text}"
        yield Chunk((said,), name, name | stems(f"{' '.join(piece.headings)} {said}"), _part(document, piece))


def _is_long(text: str) -> bool:
    size = len(text.strip())
    return size > WHOLE or (size > WHOLE_WITH_HEADINGS and "\n#" in text)


def _part(document: Document, piece: Piece) -> str:
    """The section that a piece stands in; of a very long one its heading and the piece."""
    text, starts = document.text, [heading.start for heading in document.parsed.headings]
    start = max((each for each in starts if each <= piece.start), default=document.parsed.body_start)
    end = min((each for each in starts if each > piece.start), default=len(text))
    whole = text[start:end].strip()
    if len(whole) <= MOST_PART:
        return whole
    heading = text[start:].lstrip().partition("\n")[0].strip()
    return piece.text if not piece.headings or piece.text.startswith(heading) else f"{heading}{LEFT_OUT}{piece.text}"
