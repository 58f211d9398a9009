"""VaultSearch: searches the sections of a vault's notes by words and meaning, in an index outside the notes.

The index holds no text and can be rebuilt from the notes. A few changed notes are added before a search, many in the
background.
"""

import logging
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

from msgspec import Struct

from recto.base.background import BackgroundWorker
from recto.base.locations import CATALOG_FILE, GISTS_FILE, SEARCH_FILE, vault_folder
from recto.base.text import counted
from recto.errors import Invalid, NotFound, RectoError
from recto.search.dates import Day, named_days
from recto.search.finder import Hit, Query, SearchResult
from recto.search.hybrid_index import THREADS, HybridIndex, OpenEmbedder
from recto.search.vector_index import ReadTexts
from recto.vault.catalog import Progress
from recto.vault.document import Document, note_name
from recto.vault.document_summary import DocumentSummaries
from recto.vault.folder import is_note
from recto.vault.indexer import PARTITION, IndexedState, VaultIndexer
from recto.vault.links import Link
from recto.vault.note_chunks import NoteChunk, chunks_by_hash, line_number
from recto.vault.vault import Vault

log = logging.getLogger(__name__)

# Changed notes added before a search, per background step, and per step of `fill`.
UPDATE_BEFORE_SEARCH, BACKGROUND_BATCH, FILL_BATCH = 50, 64, 512
# How long a search waits for the first scan of the vault, and for another thread that is adding notes.
SCAN_TIMEOUT_S, LOCK_TIMEOUT_S = 1.0, 0.2
# The least number of passages read, in all and per hit: a note that contains a word everywhere is only one hit.
MIN_PASSAGES, PASSAGES_PER_HIT = 80, 4
MAX_NAME_CHARS = 200
# Sharing words with neighbours finds more: for 50 of 57 questions the note is among the first three instead of 47, with
# vectors 55 instead of 52. In larger indexes it takes too long: at this size half as long again.
MAX_SPREAD_PASSAGES = 6_000
# The similarity that a passage without a matching word needs: nonsense reaches 0.18, a paraphrased answer 0.24.
MIN_SIMILARITY = 0.2
# What each further passage adds to a note's score, with its decay.
EXTRA_PASSAGE_SHARE, EXTRA_PASSAGE_DECAY = 0.1, 0.7
CLOSE_TIMEOUT_S = 1.0
# How long a question in another language waits for the word vectors of the notes, the first time, at least.
TRANSLATION_S = 3.0
BEING_BUILT = "the search index of the vault is being built"
# Up to this many missing vectors, a command waits as long as allowed: such vaults need no indexing command.
FEW_VECTORS = 2000

T = TypeVar("T")


class VaultHits(NamedTuple, Generic[T]):
    hits: tuple[T, ...]
    warning: str = ""
    """Why hits may be missing: an index under construction, no vectors, or not yet."""


class FoundDocument(Struct, frozen=True):
    path: str
    title: str
    score: float
    """Between 0 and 1."""
    because: str


class Excerpt(Struct, frozen=True):
    """A part of a note, verbatim: the text from `start` to `end`."""

    path: str
    title: str
    heading: str
    """The heading of its section; empty above the first one."""
    line: int
    start: int
    end: int
    text: str
    score: float
    because: str
    similarity: float | None = None
    """By the embedder, if there are vectors."""


class VaultIndexStatus(Struct, frozen=True):
    indexed: int
    left: int
    """Notes to be indexed, without unreadable ones."""
    passages: int
    vectors: int
    waiting: int
    embedder: str | None
    why: str = ""
    """Why there is no embedder, or why it failed."""


class VaultSearch:
    def __init__(self, vault: Vault, index: Path, embedder: OpenEmbedder, *, timeout_s: float = 2.0) -> None:
        self._vault, self._timeout_s = vault, timeout_s
        read: ReadTexts = lambda passages: self._indexer.texts(passages)  # noqa: E731  the indexer needs the index
        self._index = HybridIndex(index, embedder, read, timeout_s=timeout_s, keeps_texts=True)
        self._indexer = VaultIndexer(vault, self._index.keywords)
        self._problem = ""
        self._worker = BackgroundWorker(self._work, "recto-library")
        self._scanned = threading.Event()
        self._searching = threading.Lock()

    # -- searching

    def find_documents(self, text: str, limit: int = 3) -> VaultHits[FoundDocument]:
        hits, warning = self._find(text, limit)
        return VaultHits(tuple(islice(self._documents(text, hits), max(0, limit))), warning)

    def find_excerpts(self, text: str, limit: int = 8) -> VaultHits[Excerpt]:
        outdated = set[str]()
        for _ in range(2):
            hits, warning = self._find(text, limit)
            found = tuple(islice(self._excerpts(hits, outdated), max(0, limit)))
            if not outdated:
                break
            self._vault.mark_changed(outdated)  # saved a moment ago, before the folder was read again
            outdated = set()
        return VaultHits(found, warning)

    def similarities(self, question: str, texts: Sequence[str]) -> list[float]:
        """The similarity of texts to a question in any language, by the multilingual encoder; empty without it."""
        return self._index.similarities(question, texts)

    def translations(self, words: Sequence[str], likely: Sequence[str]) -> dict[str, str]:
        """Words of the notes with the same meaning in their language; empty without the multilingual encoder."""
        return self._index.translations(words, likely, max(TRANSLATION_S, self._timeout_s))

    def find_dated(self, days: Sequence[Day], limit: int = 8) -> list[str]:
        """Paths of the notes with one of these days in their names, latest first."""
        if not days or not self._scanned.is_set():
            return []
        try:
            paths = list(self._vault.hashes())
        except RectoError:  # the folder is gone, which the search itself reports
            return []
        dated = [path for path in paths if any(day.holds(told) for day in days for told in named_days(note_name(path)))]
        return sorted(dated, reverse=True)[: max(0, limit)]

    def _documents(self, text: str, hits: Sequence[tuple[str, Hit]]) -> Iterator[FoundDocument]:
        by_path: dict[str, list[Hit]] = {}
        for path, hit in hits:
            by_path.setdefault(path, []).append(hit)
        scores = {path: _document_score(own) for path, own in by_path.items()}
        most = max([1.0, *scores.values()])
        named = self._named(text)
        if named is not None:
            scores[named] = most
        for path in sorted(scores, key=lambda path: (path == named, scores[path]), reverse=True):
            if note := self._indexer.read(path):
                because = "has this name" if path == named else by_path[path][0].because
                yield FoundDocument(path, note.title, round(scores[path] / most, 4), because)

    def _named(self, text: str) -> str | None:
        name = text.strip().strip("[]")
        if not self._scanned.is_set() or not name or len(name) > MAX_NAME_CHARS or "\n" in name:
            return None
        try:
            path = self._vault.resolve(Link(f"[[{name}]]", name))
        except RectoError:
            return None
        return path if path and is_note(path) else None

    def _excerpts(self, hits: Sequence[tuple[str, Hit]], outdated: set[str]) -> Iterator[Excerpt]:
        """Adds to `outdated` the notes that no longer contain their passage."""
        notes = dict[str, tuple[Document, dict[bytes, list[NoteChunk]]] | None]()
        for path, hit in hits:
            if path not in notes:
                document = self._indexer.read(path)
                notes[path] = (document, chunks_by_hash(document)) if document else None
            if not (note := notes[path]) or not (same := note[1].get(hit.passage.sha)):
                outdated.add(path)
                continue
            chunk = _nearest(same, hit.passage.position)
            if chunk.text:
                heading = chunk.headings[-1] if chunk.headings else ""
                where = (path, note[0].title, heading, line_number(note[0], chunk.start), chunk.start, chunk.end)
                yield Excerpt(*where, chunk.text, hit.score, hit.because, hit.similarity)

    def _find(self, text: str, limit: int) -> tuple[list[tuple[str, Hit]], str]:
        with self._searching:
            before = self._index.rebuild_reason

            def find() -> tuple[list[tuple[str, Hit]], str]:
                warning, (found, state) = self._prepare(), self._search(text, limit)
                with self._index.keywords.file.interpreting():
                    return _with_paths(found, state), warning or found.warning

            hits, warning = self._index.keywords.file.run(find)
        rebuilt = "" if self._index.rebuild_reason == before else self._index.rebuild_reason
        return hits, warning or rebuilt

    def _search(self, text: str, limit: int) -> tuple[SearchResult, IndexedState]:
        state = self._indexer.state()
        query = Query(
            text,
            PARTITION,
            branches=state.paths,  # each version of a note is a branch: earlier ones are in the index too
            spreads=state.passages <= MAX_SPREAD_PASSAGES,
            limit=max(MIN_PASSAGES, PASSAGES_PER_HIT * limit),
        )
        return self._index.finder.find(query), state

    def _prepare(self) -> str:
        """Adds a few changed notes, or leaves many to the background. Returns a warning."""
        vectors = self._index.vectors
        if not self._scanned.is_set():
            # not by the worker: it yields to the turn that waits here
            threading.Thread(target=self._scan, name="recto-scan", daemon=True).start()
            if not self._scanned.wait(SCAN_TIMEOUT_S):  # the scan of a large vault takes longer than a search may
                self.wake()
                return BEING_BUILT
        try:
            left = self._indexer.update(UPDATE_BEFORE_SEARCH, LOCK_TIMEOUT_S)
        except (Invalid, NotFound) as why:  # the folder is gone; the index can still be searched
            return why.message
        if left or (vectors and vectors.waiting):
            self.wake()
        if left:
            return f"{BEING_BUILT}: {counted(left, 'note')} {'is' if left == 1 else 'are'} not in it yet"
        return self._problem or self._index.problem

    # -- filling

    def wake(self) -> None:
        self._worker.wake()

    def _scan(self) -> None:
        """The first scan of the notes. The search itself reports problems."""
        with suppress(RectoError):
            self._vault.hashes()
        self._scanned.set()

    def fill(self, progress: Progress | None = None, *, vectors: bool = False) -> None:
        self._vault.refresh(progress)
        self._scanned.set()
        self._indexer.clear_if_stale()
        total = len(self._indexer.pending()[0])
        while left := self._indexer.update(FILL_BATCH):
            if progress:
                progress(total - left, total)
        self._indexer.merge_if_many()
        if vectors:
            self._index.make_vectors(progress)

    def settle(self, within_s: float, progress: Progress | None = None) -> None:
        """Embeds in the background; waits briefly unless too many vectors are missing."""
        until, first = time.monotonic() + within_s, self.status.waiting
        self.wake()
        while 0 < (status := self.status).waiting <= FEW_VECTORS and not status.why and time.monotonic() < until:
            if progress:
                progress(max(0, first - status.waiting), first)
            time.sleep(0.02)

    @property
    def status(self) -> VaultIndexStatus:
        counts, vectors = (*self._indexer.counts(), self._indexer.state().passages), self._index.vectors
        if vectors is None:
            return VaultIndexStatus(*counts, 0, 0, None, self._problem or self._index.problem)
        problem = vectors.problem or self._problem
        return VaultIndexStatus(*counts, vectors.count, vectors.waiting, vectors.name, problem)

    @property
    def rebuild_reason(self) -> str:
        return self._index.rebuild_reason

    def close(self) -> None:
        self._worker.close(timeout_s=0)
        self._index.stop()
        self._worker.close(CLOSE_TIMEOUT_S)
        self._index.close()

    def _work(self) -> bool:
        """One step in the background; returns True if there is more to do. Never raises: the next search reports
        errors."""
        try:
            vectors = self._index.vectors
            self._indexer.clear_if_stale()
            is_left = self._indexer.update(BACKGROUND_BATCH) > 0
            if not is_left:
                self._indexer.merge_if_many()
                is_left = vectors is not None and vectors.make_batch(THREADS) > 0
            self._problem = ""
            return is_left
        except RectoError as why:
            self._problem = why.message
        except Exception as why:
            log.exception("the search index of the vault could not be updated")
            self._problem = f"the search index could not be brought up to date ({type(why).__name__}: {why})"
        finally:
            self._scanned.set()
        return False


def _with_paths(found: SearchResult, state: IndexedState) -> list[tuple[str, Hit]]:
    return [
        (state.paths[hit.passage.item], hit)
        for hit in found.hits
        if hit.word_score or (hit.similarity or 0) >= MIN_SIMILARITY
    ]


def _nearest(chunks: Sequence[NoteChunk], position: int) -> NoteChunk:
    """Of chunks with the same text, the one that a passage most likely is."""
    return min(chunks, key=lambda chunk: abs(chunk.start - position))


def _document_score(hits: Sequence[Hit]) -> float:
    """The score of a note's best passage, plus a little for the next five."""
    extra = sum(EXTRA_PASSAGE_SHARE * EXTRA_PASSAGE_DECAY**at * hit.score for at, hit in enumerate(hits[1:6]))
    return hits[0].score + extra


class OpenVaults:
    """The vaults in use, each with its search index and summaries, which are stored outside the notes."""

    def __init__(self, home: Path, embedder: OpenEmbedder, *, timeout_s: float) -> None:
        self._home, self._embedder, self._timeout_s = home, embedder, timeout_s
        self._vaults: dict[Path, Vault] = {}
        self._searches: dict[Path, VaultSearch] = {}
        self._summaries: dict[Path, DocumentSummaries] = {}
        self._lock = threading.Lock()

    def open(self, folder: Path) -> Vault:
        """The vault of a folder. Raises NotFound or Invalid if it cannot be used."""
        with self._lock:
            root = folder.expanduser()
            if root not in self._vaults:
                known = next((vault for vault in self._vaults.values() if vault.root == root), None)
                self._vaults[root] = known or Vault(root, vault_folder(self._home, root) / CATALOG_FILE)
            return self._vaults[root]

    def search(self, vault: Vault) -> VaultSearch:
        """The search of a vault; reads nothing until it is used."""
        with self._lock:
            if vault.root not in self._searches:
                path = vault_folder(self._home, vault.root) / SEARCH_FILE
                self._searches[vault.root] = VaultSearch(vault, path, self._embedder, timeout_s=self._timeout_s)
            return self._searches[vault.root]

    def summaries(self, vault: Vault) -> DocumentSummaries:
        with self._lock:
            if vault.root not in self._summaries:
                self._summaries[vault.root] = DocumentSummaries(vault_folder(self._home, vault.root) / GISTS_FILE)
            return self._summaries[vault.root]

    def close(self) -> None:
        for summaries in self._summaries.values():
            summaries.close()
        for search in self._searches.values():
            search.close()
        for vault in self._vaults.values():
            vault.close()
