"""SourceChunk: a part of a source as search sees it. A tool is one chunk, from its name, description and parameters; a
text has one chunk for its name and one for each section. Knows no question."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from recto.search.passages import MAX_PASSAGE_CHARS, MIN_PASSAGE_CHARS, split_sentences
from recto.search.terms import STOP_WORDS, words
from recto.sources.source import Source, TextSource, Tool
from recto.vault.document import Document
from recto.vault.note_chunks import NoteChunk, note_chunks
from recto.vault.relevant_parts import stem_word

# How many parameters of a tool are read, and how deep: schemas may be endless.
MAX_PARAMETERS, MAX_SCHEMA_DEPTH = 40, 3
# A text up to this length is one chunk; one with headings covers several topics sooner.
MAX_SINGLE_CHUNK, MAX_SINGLE_CHUNK_WITH_HEADINGS = MAX_PASSAGE_CHARS + MIN_PASSAGE_CHARS, 400
# A section up to this length is sent whole; of a longer one, what fits best.
MAX_PART_CHARS = 4000
OMISSION = "\n\n…\n\n"

_WORD_BOUNDARIES = re.compile(r"[\W_]+|(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


@dataclass(frozen=True, slots=True)
class SourceChunk:
    texts: tuple[str, ...]
    """The texts to embed; the chunk's vector is their mean."""
    name: frozenset[str]
    """The stems of its source's name."""
    stems: frozenset[str]
    """The stems of all its words, including the name."""
    part: str | None = None
    """The section, verbatim with its heading, of a source with several."""


def source_chunks(source: Source) -> tuple[SourceChunk, ...]:
    """Splits a source into at least one chunk."""
    return tuple(_tool_chunks(source) if isinstance(source, Tool) else _text_chunks(source))


def split_identifier(name: str) -> str:
    """Splits a name into words: `getUserInfo`, `get_user-info` and `get.user.info` are "get user info"."""
    return " ".join(part for part in _WORD_BOUNDARIES.split(name) if part).lower()


def text_stems(text: str) -> frozenset[str]:
    return frozenset(stem_word(word) for word in words(text) if word not in STOP_WORDS)


# -- tools


def _tool_chunks(tool: Tool) -> Iterator[SourceChunk]:
    own_name = split_identifier(tool.own_name or tool.name)
    server = split_identifier(tool.server)
    description = " ".join(tool.description.split())
    parameters = islice(_parameters(tool.schema), MAX_PARAMETERS)
    parameter_words = [f"{split_identifier(name)} {about}" for name, about in parameters]
    # people who do not know the name describe what the tool does: its first sentence alone counts as much
    texts = (f"{server} {own_name}: {description}"[:MAX_PASSAGE_CHARS], *split_sentences(description)[:1])
    all_words = " ".join([server, own_name, description, *parameter_words])
    yield SourceChunk(texts, text_stems(own_name), text_stems(all_words))


def _parameters(schema: Mapping[str, Any], depth: int = MAX_SCHEMA_DEPTH) -> Iterator[tuple[str, str]]:
    """Yields names and descriptions; none for an invalid schema."""
    properties = schema.get("properties")
    for name, parameter in properties.items() if isinstance(properties, Mapping) else ():
        if not isinstance(parameter, Mapping):
            continue
        description = parameter.get("description")
        yield str(name), description if isinstance(description, str) else ""
        items = parameter.get("items")
        nested = items if isinstance(items, Mapping) else parameter
        if depth:
            yield from _parameters(nested, depth - 1)


# -- texts


def _text_chunks(source: TextSource) -> Iterator[SourceChunk]:
    title = split_identifier(source.name)
    head = f"{title}: {source.description}" if source.description else title
    name = text_stems(f"{title} {source.description}")
    document = Document(f"{source.name}.md", source.text)
    sections = [chunk for chunk in note_chunks(document) if chunk.text] if _is_long(source.text) else []
    if len(sections) < 2:
        whole = f"{head}\n{source.text.strip()}"[:MAX_SINGLE_CHUNK]
        yield SourceChunk((whole,), name, name | text_stems(source.text))
        return
    yield SourceChunk((head,), name, name)
    for section in sections:
        text = f"{head}\n{section.text}"
        stems = name | text_stems(f"{' '.join(section.headings)} {text}")
        yield SourceChunk((text,), name, stems, _section_text(document, section))


def _is_long(text: str) -> bool:
    size = len(text.strip())
    return size > MAX_SINGLE_CHUNK or (size > MAX_SINGLE_CHUNK_WITH_HEADINGS and "\n#" in text)


def _section_text(document: Document, chunk: NoteChunk) -> str:
    """The section that contains a chunk; of a very long one, its heading and the chunk."""
    text, starts = document.text, [heading.start for heading in document.parsed.headings]
    start = max((other for other in starts if other <= chunk.start), default=document.parsed.body_start)
    end = min((other for other in starts if other > chunk.start), default=len(text))
    section = text[start:end].strip()
    if len(section) <= MAX_PART_CHARS:
        return section
    heading = text[start:].lstrip().partition("\n")[0].strip()
    has_heading = not chunk.headings or chunk.text.startswith(heading)
    return chunk.text if has_heading else f"{heading}{OMISSION}{chunk.text}"
