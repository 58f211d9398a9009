"""Chooser: chooses sources for a message by words and by meaning, each with a score and a reason.

Knows sources and messages as values; knows no sessions, windows or models.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from recto.search.embedder import LOCAL, MINILM, Embedder
from recto.search.passages import key_sentences, shorten_message
from recto.search.text_vectors import (
    SAMPLE_QUESTIONS,
    SAMPLE_TEXTS,
    Calibration,
    HashedTexts,
    Similarities,
    TextVectors,
    calibrate,
)
from recto.sources.candidates import CandidateCache, ChunkScore, ChunkScores, question_stems
from recto.sources.source import Source, SourceId

if TYPE_CHECKING:
    from recto.search.vector_table import Row

# Lower scores are not recorded.
MIN_RECORDED_SCORE = 0.02
# Messages are similar from here on, by cosine or by shared words.
MIN_SIMILARITY, MIN_WORD_OVERLAP = 0.6, 0.5
# The bonus of one earlier use, and of all of them at most.
BOOST_PER_USE, MAX_BOOST = 0.06, 0.15
# Earlier questions are compared up to this length.
MAX_PAST_CHARS = 600


class ChoiceLimits(Struct, frozen=True):
    top_k: int = 20
    """The number of chunks that compete."""
    top_n: int = 5
    """Most sources chosen, not counting those that reach `include_score`."""
    include_score: float = 0.7
    min_score: float = 0.4


DEFAULT_LIMITS = ChoiceLimits()


class PastTurn(Struct, frozen=True):
    """An earlier message and the sources that its reply used."""

    question: str
    used: frozenset[SourceId]


class ScoredSource(Struct, frozen=True):
    source: Source
    score: float
    because: str
    part: str | None = None
    """The best matching section, verbatim with its heading; None if the source is one chunk."""


class SourceChoice(Struct, frozen=True):
    chosen: tuple[ScoredSource, ...] = ()
    rejected: tuple[ScoredSource, ...] = ()
    """Sources that came close, with the reason in `because`."""
    note: str = ""


Learned = Mapping[SourceId, tuple[float, int]]
"""The sources that similar turns used: the bonus to their scores, and the number of uses."""


class Chooser:
    def __init__(self, path: Path, embedder: Callable[[], Embedder | None], *, timeout_s: float) -> None:
        """`path` is the file of vectors, which can be deleted at any time."""
        self.vectors = TextVectors(path, embedder, timeout_s=timeout_s)
        self._candidates = CandidateCache()
        self._calibration: Calibration | None = None
        self._was_incomplete = False
        self._lock = threading.Lock()

    def choose(
        self,
        message: str,
        candidates: Sequence[Source],
        limits: ChoiceLimits = DEFAULT_LIMITS,
        past: Sequence[PastTurn] = (),
    ) -> SourceChoice:
        """Choose among sources. Never raises: without vectors it uses words only, and `note` says so."""
        chunks, learned, note = self._score(message, candidates, past)
        # the best chunk of each source in the top k or used by similar turns
        best: dict[SourceId, int] = {}
        for rank, position in enumerate(chunks.ranked(None if learned else limits.top_k)):
            id = chunks.source(position).id
            is_candidate = rank < limits.top_k and chunks.scores[position] >= MIN_RECORDED_SCORE
            if is_candidate or (limits.top_k and id in learned):
                best.setdefault(id, position)
        scored = [_boosted(chunks.chunk_score(position), learned.get(id)) for id, position in best.items()]
        scored.sort(key=lambda each: (-each.score, each.source.id))
        return replace(_apply_limits(scored, limits), note=note)

    def scores(self, message: str, sources: Sequence[Source]) -> tuple[dict[SourceId, float], str]:
        """The score of every source, 0 without anything in common; and a note."""
        chunks, _, note = self._score(message, sources, ())
        found = {source.id: 0.0 for source in sources}
        for position, score in chunks.scores.items():
            id = chunks.source(position).id
            found[id] = max(found[id], score)
        return found, note

    def _score(
        self, message: str, sources: Sequence[Source], past: Sequence[PastTurn]
    ) -> tuple[ChunkScores, Learned, str]:
        message = shorten_message(message)
        with self._lock:
            candidates = self._candidates.get(sources)
            sentences = key_sentences(message, candidates.best_weight)
            queries = [*sentences, message] if len(sentences) > 1 else sentences
            chunks = ChunkScores(candidates, queries, list(map(candidates.match, queries)))
        if not sentences or not sources:
            return chunks, {}, ""
        questions = HashedTexts.of(turn.question[:MAX_PAST_CHARS] for turn in past)
        near = self.vectors.compare(sentences, candidates.texts, questions)
        # while some texts have no vectors, only words compare them fairly
        if near.cosines is None or near.missing:
            chunks.score_by_words()
        else:
            chunks.score_by_words_and_meaning(self._calibrate(near.cosines))
        similarities = None if near.others is None else self._calibrate(near.others)[:, -1].tolist()
        learned = _learn(message, past, similarities)
        return chunks, learned, self._note(near, len(candidates.texts))

    def _calibrate(self, cosines: "Row") -> "Row":
        """Convert cosines to MiniLM's scale, on which the weights were fitted."""
        if self.vectors.name in (LOCAL, MINILM):
            return cosines
        if self._calibration is None:
            near = self.vectors.compare(SAMPLE_QUESTIONS, HashedTexts.of(SAMPLE_TEXTS))
            if near.cosines is None or near.missing:
                return cosines
            self._calibration = calibrate(near.cosines)
        return self._calibration.rescale(cosines)

    def _note(self, near: Similarities, size: int) -> str:
        if near.warning:
            return f"{near.warning}: sources were chosen by words alone"
        was_incomplete, self._was_incomplete = self._was_incomplete, bool(near.missing)
        if not near.missing or was_incomplete:
            return ""
        ready = f"{size - near.missing:,} of {size:,}"
        return f"sources are chosen by words only until vectors are ready: {ready}"

    def close(self) -> None:
        self.vectors.close()


# -- deciding


def _boosted(chunk: ChunkScore, learned: tuple[float, int] | None) -> ScoredSource:
    if learned is None:
        return ScoredSource(chunk.source, chunk.score, chunk.because, chunk.part)
    boost, times = learned
    often = {1: "once", 2: "twice"}.get(times, f"{times} times")
    score = round(min(1.0, chunk.score + boost), 4)
    return ScoredSource(chunk.source, score, f"{chunk.because}; similar messages used it {often}", chunk.part)


def _apply_limits(scored: Sequence[ScoredSource], limits: ChoiceLimits) -> SourceChoice:
    """`scored` is sorted, best first."""
    chosen, rejected = list[ScoredSource](), list[ScoredSource]()
    for rank, each in enumerate(scored):
        if each.score >= limits.include_score or (rank < limits.top_n and each.score >= limits.min_score):
            chosen.append(each)
            continue
        if each.score < limits.min_score:
            reason = f"score {each.score:.2f} is below min_score {limits.min_score:g}"
        else:
            others = "1 other is" if rank == 1 else f"{rank} others are"
            reason = f"{others} better, and top_n is {limits.top_n}"
        rejected.append(replace(each, because=f"{reason}; {each.because}"))
    return SourceChoice(tuple(chosen), tuple(rejected))


# -- learning


def _learn(message: str, past: Sequence[PastTurn], similarities: Sequence[float] | None) -> Learned:
    """Raise scores by the use in similar turns, and lower none."""
    if not past:
        return {}
    stems = question_stems(message)
    found: dict[SourceId, tuple[float, int]] = {}
    for index, turn in enumerate(past):
        likeness = _likeness(stems, turn.question, similarities[index] if similarities is not None else None)
        for id in turn.used if likeness > 0 else ():
            boost, times = found.get(id, (0.0, 0))
            found[id] = min(MAX_BOOST, boost + BOOST_PER_USE * likeness), times + 1
    return found


def _likeness(stems: Mapping[str, str], question: str, similarity: float | None) -> float:
    """The similarity of two messages, from 0 to 1."""
    if similarity is not None and similarity == similarity:  # NaN: the vector is not ready yet
        scaled = (similarity - MIN_SIMILARITY) / (1 - MIN_SIMILARITY)
        return scaled * 0.5 + 0.5 if similarity >= MIN_SIMILARITY else 0.0
    other = question_stems(question)
    union = stems.keys() | other.keys()
    share = len(stems.keys() & other.keys()) / len(union) if union else 0.0
    return share if share >= MIN_WORD_OVERLAP else 0.0
