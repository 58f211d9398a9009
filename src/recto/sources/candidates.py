"""Candidates: the sources that may be chosen for a message, split into chunks; and the score of each chunk by words
and by meaning. Kept in memory only.

A tool is one chunk, from its name, description and parameters; a text has one chunk for its name and one for each
section.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from heapq import nlargest
from itertools import accumulate, islice
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from recto.search.passages import MAX_PASSAGE_CHARS, MIN_PASSAGE_CHARS, split_sentences
from recto.search.terms import COMMON_WORDS, STOP_WORDS, stem_word, words
from recto.search.text_vectors import HashedTexts
from recto.sentences.words import tables
from recto.sources.source import Source, SourceId, TextSource, Tool
from recto.vault.document import Document
from recto.vault.note_chunks import NoteChunk, note_chunks, question_words

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from recto.search.vector_table import Row

    Rows = NDArray[np.float64]

# Most parameters of a tool that are read, and their depth: schemas may be endless.
MAX_PARAMETERS, MAX_SCHEMA_DEPTH = 40, 3
# A text up to this length is one chunk; one with headings covers several topics sooner.
MAX_SINGLE_CHUNK, MAX_SINGLE_CHUNK_WITH_HEADINGS = MAX_PASSAGE_CHARS + MIN_PASSAGE_CHARS, 400
# A section up to this length is sent whole, a longer one in part.
MAX_PART_CHARS = 4000
TYPICAL_CHUNK_WORDS = 30
# Added to the number of chunks: among three sources no word is really common or rare.
SMOOTHING_CHUNKS = 100
# The weight of one rare word: a message with less has no topic that a source could share.
MIN_QUERY_WEIGHT = 0.8
# Words of any request: they count little.
COMMON_STEMS = frozenset(map(stem_word, COMMON_WORDS))
COMMON_WEIGHT = 0.25
# Unused sources are dropped from the cache once it holds this many more than the candidates.
MAX_UNUSED_SOURCES = 1000
# The evidence that a message has the values a tool works on. `bench pick` has messages over servers of others.
VALUES_WEIGHT = 4.0
URL_NAMES, PATH_NAMES = frozenset({"url", "uri"}), frozenset({"path", "paths", "file", "files", "filename", "folder"})
_VALUES = {
    "numbers": re.compile(r"(?<![\w.,])\d[\d.,]*\b[^\d\n]{1,40}\b\d"),
    "url": re.compile(r"\bhttps?://\w"),
    "path": re.compile(
        r"(?<![\w:/@.])(?:(?:~|\.{1,2})?/\w|\w{4,40}/\w{4})|(?<![\w@.-])[\w-]{2,60}\.[A-Za-z]\w{1,4}\b(?![.@]\w)"
    ),
}
_MAX_QUOTE_CHARS = 60
_MIN_SHOWN_SIMILARITY = 0.2
_WORD_BOUNDARIES = re.compile(r"[\W_]+|(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


# -- chunks


class SourceChunk(Struct, frozen=True):
    texts: tuple[str, ...]
    """The texts to embed; the chunk's vector is the mean."""
    name: frozenset[str]
    stems: frozenset[str]
    """The stems of all its words, including the name."""
    part: str | None = None
    """The section, verbatim with its heading, if the source has several."""
    takes: str = ""
    """The kind of value that a tool works on, if a message shows it by its form."""


def source_chunks(source: Source) -> tuple[SourceChunk, ...]:
    return (_tool_chunk(source),) if isinstance(source, Tool) else tuple(_text_chunks(source))


def split_identifier(name: str) -> str:
    """Split a name into words: `getUserInfo`, `get_user-info` and `get.user.info` are "get user info"."""
    return " ".join(filter(None, _WORD_BOUNDARIES.split(name))).lower()


def text_stems(text: str) -> frozenset[str]:
    return frozenset(stem_word(word) for word in words(text) if word not in STOP_WORDS)


def _tool_chunk(tool: Tool) -> SourceChunk:
    own_name = split_identifier(tool.own_name or tool.name)
    server = split_identifier(tool.server)
    description = " ".join(tool.description.split())
    parameters = [
        f"{split_identifier(name)} {about}" for name, about in islice(_parameters(tool.schema), MAX_PARAMETERS)
    ]
    # a user who does not know the name describes the tool: its first sentence alone counts as much
    texts = (f"{server} {own_name}: {description}"[:MAX_PASSAGE_CHARS], *split_sentences(description)[:1])
    all_words = " ".join([server, own_name, description, *parameters])
    return SourceChunk(texts, text_stems(own_name), text_stems(all_words), takes=_taken(tool.schema))


def _taken(schema: Mapping[str, Any]) -> str:
    """The values that a tool takes: numbers if it requires two or more, a URL, or a path; by names and types alone."""
    required, properties = schema.get("required"), dict(_properties(schema))
    kinds = [properties.get(name, {}).get("type") for name in required] if isinstance(required, list) else []
    if sum(kind in ("number", "integer") for kind in kinds) >= 2:
        return "numbers"
    named = {word for name in properties for word in split_identifier(name).split()}
    if named & URL_NAMES or any(each.get("format") == "uri" for each in properties.values()):
        return "url"
    return "path" if named & PATH_NAMES else ""


def values_in(message: str) -> frozenset[str]:
    """The kinds of values in a message that tools could work on."""
    found = {kind for kind, pattern in _VALUES.items() if pattern.search(message)}
    return frozenset(found - {"path"} if "url" in found else found)


def _properties(schema: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    properties = schema.get("properties")
    for name, parameter in properties.items() if isinstance(properties, Mapping) else ():
        if isinstance(parameter, Mapping):
            yield str(name), parameter


def _parameters(schema: Mapping[str, Any], depth: int = MAX_SCHEMA_DEPTH) -> Iterator[tuple[str, str]]:
    """Names and descriptions; none for an invalid schema."""
    for name, parameter in _properties(schema):
        description, items = parameter.get("description"), parameter.get("items")
        yield name, description if isinstance(description, str) else ""
        if depth:
            yield from _parameters(items if isinstance(items, Mapping) else parameter, depth - 1)


def _text_chunks(source: TextSource) -> Iterator[SourceChunk]:
    title = split_identifier(source.name)
    head = f"{title}: {source.description}" if source.description else title
    name = text_stems(f"{title} {source.description}")
    document = Document(f"{source.name}.md", source.text)
    text = source.text.strip()
    longest = MAX_SINGLE_CHUNK_WITH_HEADINGS if "\n#" in source.text else MAX_SINGLE_CHUNK
    sections = [chunk for chunk in note_chunks(document) if chunk.text] if len(text) > longest else []
    if len(sections) < 2:
        whole = f"{head}\n{text}"[:MAX_SINGLE_CHUNK]
        yield SourceChunk((whole,), name, name | text_stems(source.text))
        return
    yield SourceChunk((head,), name, name)
    for section in sections:
        text = f"{head}\n{section.text}"
        stems = name | text_stems(f"{' '.join(section.headings)} {text}")
        yield SourceChunk((text,), name, stems, _section_text(document, section))


def _section_text(document: Document, chunk: NoteChunk) -> str:
    """The section that contains a chunk; of a very long one, the chunk."""
    text, starts = document.text, [heading.start for heading in document.parsed.headings]
    start = max((other for other in starts if other <= chunk.start), default=document.parsed.body_start)
    end = min((other for other in starts if other > chunk.start), default=len(text))
    section = text[start:end].strip()
    return section if len(section) <= MAX_PART_CHARS else chunk.text


# -- finding them by words


class ChunkMatch(Struct):
    """The words of a question that a chunk contains, by weight."""

    weight: float = 0.0
    name: float = 0.0
    """The number of words of its source's name in the question."""
    words: list[str] = field(default_factory=list)


@lru_cache(maxsize=1024)  # earlier messages are compared with every new one
def question_stems(question: str) -> Mapping[str, str]:
    """The stems of a question's words, each with its word."""
    stems = question_words(question).stems
    pairs = (pair.split("/") for pair in tables("common_words.toml")["abbreviations"]["en"])
    used = ((short, long) for short, long in pairs if stem_word(short) in stems)
    written_out = ((stem_word(word), short) for short, long in used for word in long.split("_"))
    return dict(stems) | {stem: short for stem, short in written_out if stem not in stems}


@lru_cache(maxsize=16384)
def name_weight(name: frozenset[str]) -> float:
    """The number of words in a name; common ones count less."""
    return sum(COMMON_WEIGHT if stem in COMMON_STEMS else 1.0 for stem in name)


QueryMatches = tuple[Mapping[int, ChunkMatch], float]
"""A query's matches by chunk position, and the weight of all its words."""


# -- weights


class WordOverlap(Struct, frozen=True):
    share: float
    """The share of the query that the chunk contains."""
    name: float
    """The share of its source's name that the query contains."""
    density: float
    """The weight of the shared words, relative to the length of the chunk."""


class RelevanceWeights(Struct, frozen=True):
    similarity: float = 0.0
    share: float = 0.0
    name: float = 0.0
    density: float = 0.0
    scale: float = 1.0
    shape: float = 1.0

    def of_words(self, words: WordOverlap) -> float:
        return self.share * words.share + self.name * words.name + self.density * words.density

    def score(self, evidence: float) -> float:
        """The score, from 0 for no evidence to 1."""
        return round(1 - math.exp(-((evidence / self.scale) ** self.shape)), 4)

    def scores(self, evidence: "Rows") -> "Rows":
        import numpy as np  # takes a tenth of a second

        scores: Rows = np.round(1 - np.exp(-((evidence / self.scale) ** self.shape)), 4)
        return scores


# Fitted by bench/pick_fit.py.
COMBINED_WEIGHTS = RelevanceWeights(similarity=11.86, share=1.04, name=1.50, density=4.03, scale=9.93, shape=1.36)
KEYWORD_WEIGHTS = RelevanceWeights(share=3.02, name=2.70, density=5.52, scale=8.27, shape=1.42)
SIMILARITY_WEIGHTS = RelevanceWeights(similarity=18.29, scale=9.15, shape=1.93)


def word_overlap(match: ChunkMatch, query_weight: float, chunk: SourceChunk) -> WordOverlap:
    return WordOverlap(
        match.weight / max(query_weight, MIN_QUERY_WEIGHT),
        match.name / max(1.0, name_weight(chunk.name)),
        match.weight / (1 + len(chunk.stems) / TYPICAL_CHUNK_WORDS),
    )


# -- candidates


class ChunkedSource(Struct, frozen=True):
    source: Source
    chunks: tuple[SourceChunk, ...]
    texts: tuple[HashedTexts, ...]


class Candidates:
    """Sources with their chunks, ordered by source id. A chunk is identified by its position."""

    def __init__(self, entries: Sequence[ChunkedSource]) -> None:
        self.chunks = [(entry.source, chunk) for entry in entries for chunk in entry.chunks]
        self._postings: dict[str, set[int]] = {}
        self.by_source: dict[SourceId, list[int]] = {}
        for position, (source, chunk) in enumerate(self.chunks):
            self.by_source.setdefault(source.id, []).append(position)
            for stem in chunk.stems:
                self._postings.setdefault(stem, set()).add(position)
        texts = [each for entry in entries for each in entry.texts]
        self.texts = HashedTexts.join(texts)
        self.sizes = [len(each) for each in texts]
        self.starts = [0, *accumulate(self.sizes)][:-1]

    def match(self, query: str) -> QueryMatches:
        by_word: dict[str, list[str]] = {}
        for stem, word in question_stems(query).items():
            by_word.setdefault(word, []).append(stem)
        matches: dict[int, ChunkMatch] = {}
        total = 0.0
        size = len(self.chunks) + SMOOTHING_CHUNKS
        for word, stems in by_word.items():
            matching = set().union(*(self._postings.get(stem, ()) for stem in stems))
            commonness = COMMON_WEIGHT if any(stem in COMMON_STEMS for stem in stems) else 1.0
            # the fewer chunks contain a word, the more it weighs
            weight = math.log(size / (len(matching) + 1)) / math.log(size) * commonness
            total += weight
            for position in matching:
                match = matches.setdefault(position, ChunkMatch())
                match.weight += weight
                match.words.append(word)
                match.name += commonness * len(self.chunks[position][1].name.intersection(stems))
        return matches, total

    def best_weight(self, sentence: str) -> float:
        """The weight of a sentence's best match: how much it is about these sources."""
        return max((match.weight for match in self.match(sentence)[0].values()), default=0.0)


class CandidateCache:
    """Splits each source only once, and keeps the latest candidates."""

    def __init__(self) -> None:
        self._entries: dict[SourceId, ChunkedSource] = {}
        # by object identity: hashing five hundred texts per message would take longer than choosing
        self._latest: tuple[Sequence[Source], Candidates] = ((), Candidates(()))

    def get(self, sources: Sequence[Source]) -> Candidates:
        known, candidates = self._latest
        if len(known) != len(sources) or any(one is not other for one, other in zip(known, sources, strict=True)):
            if len(self._entries) > 2 * len(sources) + MAX_UNUSED_SOURCES:
                self._entries.clear()
            candidates = Candidates([self._entry(source) for source in sorted(sources, key=lambda source: source.id)])
            self._latest = (tuple(sources), candidates)
        return candidates

    def _entry(self, source: Source) -> ChunkedSource:
        known = self._entries.get(source.id)
        if known is None or known.source != source:
            chunks = source_chunks(source)
            known = ChunkedSource(source, chunks, tuple(HashedTexts.of(chunk.texts) for chunk in chunks))
            self._entries[source.id] = known
        return known


# -- scores


class ChunkScore(Struct, frozen=True):
    source: Source
    part: str | None
    """The best matching section, if the source has several."""
    score: float
    query: str
    similarity: float | None = None
    words: tuple[str, ...] = ()
    has_values: bool = False

    @property
    def because(self) -> str:
        reasons = []
        if self.similarity is not None and self.similarity >= _MIN_SHOWN_SIMILARITY:
            is_short = len(self.query) <= _MAX_QUOTE_CHARS
            quote = self.query if is_short else f"{self.query[:_MAX_QUOTE_CHARS].rstrip()}…"
            reasons.append(f"near in meaning ({self.similarity:.2f}) to '{quote}'")
        if self.has_values:
            reasons.append("its arguments are in the message")
        if self.words:
            reasons.append(f"holds {', '.join(sorted(self.words))}")
        return "; ".join(reasons) or "has little in common with the message"


class ChunkScores:
    """The score of each chunk of the candidates, by its position."""

    def __init__(self, candidates: Candidates, queries: Sequence[str], matches: Sequence[QueryMatches]) -> None:
        self._candidates, self._queries, self._matches = candidates, queries, matches
        self.scores: dict[int, float] = {}
        """Scores of the chunks that have anything in common with the message."""
        self._best_query: dict[int, int] = {}
        self._similarity: dict[int, float] = {}
        values = values_in("\n".join(queries))
        self._with_values = [at for at, (_, chunk) in enumerate(candidates.chunks) if chunk.takes in values]

    def ranked(self, limit: int | None = None) -> list[int]:
        """Best first; ties in source order."""
        positions = sorted(self.scores)
        if limit is None:
            return sorted(positions, key=self.scores.__getitem__, reverse=True)
        return nlargest(limit, positions, key=self.scores.__getitem__)

    def source(self, position: int) -> Source:
        return self._candidates.chunks[position][0]

    def chunk_score(self, position: int) -> ChunkScore:
        chunks, query = self._candidates.chunks, self._best_query[position]
        source, chunk = chunks[position]
        match = self._matches[query][0].get(position)
        part = chunk.part
        if part is None:  # it matches by name: take the best section, the first among equals
            parts = [each for each in self._candidates.by_source[source.id] if chunks[each][1].part]
            best = max(parts, key=lambda each: (self.scores.get(each, 0.0), -each), default=position)
            part = chunks[best][1].part
        words, similarity = tuple(match.words) if match else (), self._similarity.get(position)
        has_values = position in self._with_values
        return ChunkScore(source, part, self.scores[position], self._queries[query], similarity, words, has_values)

    def score_by_words(self) -> None:
        best: dict[int, float] = {}
        for query, (matches, query_weight) in enumerate(self._matches):
            for position, match in matches.items():
                overlap = word_overlap(match, query_weight, self._candidates.chunks[position][1])
                evidence = KEYWORD_WEIGHTS.of_words(overlap) + VALUES_WEIGHT * (position in self._with_values)
                if evidence > best.get(position, -1e9):
                    best[position], self._best_query[position] = evidence, query
        self.scores = {position: KEYWORD_WEIGHTS.score(evidence) for position, evidence in best.items()}

    def score_by_words_and_meaning(self, cosines: "Row") -> None:
        """`cosines` has a row for each text and a column for each query."""
        import numpy as np  # takes a tenth of a second

        candidates = self._candidates
        mean = np.add.reduceat(cosines, candidates.starts, axis=0) / np.asarray(candidates.sizes, np.float32)[:, None]
        similarity, rows = np.maximum(mean, 0.0).astype(np.float64), np.arange(len(mean))
        evidence: Rows = COMBINED_WEIGHTS.similarity * similarity
        for query, (matches, query_weight) in enumerate(self._matches):
            evidence[[*matches], query] += [
                COMBINED_WEIGHTS.of_words(word_overlap(match, query_weight, candidates.chunks[position][1]))
                for position, match in matches.items()
            ]
        evidence[self._with_values] += VALUES_WEIGHT
        best, nearest = evidence.argmax(1), similarity.argmax(1)
        combined = COMBINED_WEIGHTS.scores(evidence[rows, best])
        alone = SIMILARITY_WEIGHTS.scores(SIMILARITY_WEIGHTS.similarity * similarity[rows, nearest])
        # a chunk that is near enough needs no shared words
        best = np.where(alone > combined, nearest, best)
        self.scores = dict(enumerate(np.maximum(combined, alone).tolist()))
        self._best_query = dict(enumerate(best.tolist()))
        self._similarity = dict(enumerate(mean[rows, best].tolist()))
