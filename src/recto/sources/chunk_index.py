"""ChunkIndex: chunks of sources in memory, found by the words of a question. Stores nothing on disk.

SourceChunk: a part of a source as search sees it. A tool is one chunk, from its name, description and parameters; a
text has one chunk for its name and one for each section. Knows no question.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import chain, islice
from typing import Any

from msgspec import Struct, field

from recto.search.passages import MAX_PASSAGE_CHARS, MIN_PASSAGE_CHARS, split_sentences
from recto.search.terms import COMMON_WORDS, STOP_WORDS, stem_word, words
from recto.sources.source import Source, TextSource, Tool
from recto.vault.document import Document
from recto.vault.note_chunks import NoteChunk, note_chunks, question_words

# How many parameters of a tool are read, and how deep: schemas may be endless.
MAX_PARAMETERS, MAX_SCHEMA_DEPTH = 40, 3
# A text up to this length is one chunk; one with headings covers several topics sooner.
MAX_SINGLE_CHUNK, MAX_SINGLE_CHUNK_WITH_HEADINGS = MAX_PASSAGE_CHARS + MIN_PASSAGE_CHARS, 400
# A section up to this length is sent whole; of a longer one, what fits best.
MAX_PART_CHARS = 4000
OMISSION = "\n\n…\n\n"

_WORD_BOUNDARIES = re.compile(r"[\W_]+|(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


class SourceChunk(Struct, frozen=True):
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


# Added to the number of chunks: among three sources no word is common or rare.
SMOOTHING_CHUNKS = 100
# Words of any request: they count, but little.
COMMON_STEMS = frozenset(map(stem_word, COMMON_WORDS))
COMMON_WEIGHT = 0.25
# Short forms of words that names and descriptions write out.
_ABBREVIATIONS = {
    "repo": "repository", "repos": "repositories", "pr": "pull request", "prs": "pull requests", "db": "database",
    "mail": "email", "mails": "emails", "k8s": "kubernetes", "msg": "message", "dm": "direct message",
    "dir": "directory", "folder": "directory", "doc": "document", "docs": "documents", "config": "configuration",
    "env": "environment", "pic": "image", "picture": "image", "ticket": "issue", "website": "page", "site": "page",
    "ls": "list", "rm": "delete remove", "mkdir": "create directory", "ci": "workflow", "auth": "authentication",
    "login": "authentication", "pwd": "password", "vm": "machine", "todo": "task", "app": "application",
}  # fmt: skip


class QuestionStems(Struct, frozen=True):
    """The words of a question: each stem with its word."""

    stems: Mapping[str, str]


class ChunkMatch(Struct):
    """The words of a question that a chunk contains, by weight."""

    weight: float = 0.0
    name: float = 0.0
    """How many words of its source's name the question contains."""
    words: list[str] = field(default_factory=list)


@lru_cache(maxsize=1024)  # earlier messages are compared with every new one
def question_stems(question: str) -> QuestionStems:
    stems = question_words(question).stems
    used = [(short, long) for short, long in _ABBREVIATIONS.items() if stem_word(short) in stems]
    return QuestionStems(
        dict(stems)
        | {stem_word(word): short for short, long in used for word in long.split() if stem_word(word) not in stems}
    )


class ChunkIndex:
    def __init__(self) -> None:
        self._chunks: dict[int, SourceChunk] = {}
        self._postings: dict[str, set[int]] = {}
        self._next = 0

    def __len__(self) -> int:
        return len(self._chunks)

    def __getitem__(self, number: int) -> SourceChunk:
        return self._chunks[number]

    def add(self, chunk: SourceChunk) -> int:
        number, self._next = self._next, self._next + 1
        self._chunks[number] = chunk
        for stem in chunk.stems:
            self._postings.setdefault(stem, set()).add(number)
        return number

    def remove(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            for stem in self._chunks.pop(number).stems:
                numbers_with_stem = self._postings[stem]
                numbers_with_stem.discard(number)
                if not numbers_with_stem:
                    del self._postings[stem]

    def match(self, question: QuestionStems, numbers: set[int]) -> tuple[dict[int, ChunkMatch], float]:
        """The matches among these chunks, and the weight of all words of the question."""
        matches: dict[int, ChunkMatch] = {}
        total = 0.0
        for word, stems in _stems_by_word(question).items():
            matching = set(chain.from_iterable(self._postings.get(stem, ()) for stem in stems)) & numbers
            commonness = _common_factor(stems)
            weight = _rarity(len(matching), len(numbers)) * commonness
            total += weight
            for number in matching:
                match = matches.setdefault(number, ChunkMatch())
                match.weight += weight
                match.words.append(word)
                match.name += commonness * len(self._chunks[number].name.intersection(stems))
        return matches, total


def _stems_by_word(question: QuestionStems) -> dict[str, list[str]]:
    stems: dict[str, list[str]] = {}
    for stem, word in question.stems.items():
        stems.setdefault(word, []).append(stem)
    return stems


def _rarity(matching: int, size: int) -> float:
    """From 0 to 1: the fewer chunks contain a word, the higher."""
    return math.log((size + SMOOTHING_CHUNKS) / (matching + 1)) / math.log(size + SMOOTHING_CHUNKS)


def _common_factor(stems: Iterable[str]) -> float:
    return COMMON_WEIGHT if any(stem in COMMON_STEMS for stem in stems) else 1.0


@lru_cache(maxsize=16384)
def name_weight(name: frozenset[str]) -> float:
    """The number of words in a name; common ones count less."""
    return sum(COMMON_WEIGHT if stem in COMMON_STEMS else 1.0 for stem in name)
