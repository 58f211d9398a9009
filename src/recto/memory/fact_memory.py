"""FactMemory: learns, finds and changes facts. Combines the rows of the store with a search index.

The index is a disposable file. It follows the facts by their revisions: the first search after a change updates it.
Everything here is synchronous and may be called from any thread.
"""

import json
import logging
import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct, field

from recto.base.background import BackgroundWorker
from recto.base.text import shown
from recto.base.toml_file import read_ordinary_file
from recto.chat.message import now
from recto.errors import Invalid, RectoError, StoreError
from recto.memory.fact_files import facts_to_json, facts_to_markdown, parse_fact_file
from recto.memory.statements import (
    fact_stems,
    guessed_kind,
    may_contradict,
    may_share_subject,
    says_same,
)
from recto.search.finder import Hit, Query
from recto.search.hybrid_index import HybridIndex, OpenEmbedder, Progress
from recto.search.keyword_index import IndexItem, Passage
from recto.search.passages import split_sentences
from recto.search.terms import COMMON_WORDS, stem_word, topic_words
from recto.store.fact import USER, EarlierText, FactKind, MemoryFact, NoteReference, checked_text
from recto.store.store import Store
from recto.vault.decoding import decode_text

log = logging.getLogger(__name__)

# Search results that a new fact is compared with.
COMPARED = 24
# Statements with a word in common and this similarity may contradict each other whatever else they share.
CLOSE = 0.6
# Minimum scores for a fact to be relevant, by words or by similarity.
MIN_WORDS, MIN_SIMILARITY, MIN_SHARED = 0.1, 0.32, 0.5
# The share of the best score that a fact below MIN_SIMILARITY needs: others are not worth their tokens.
MIN_OF_BEST = 0.3
# A statement with this share of its words in one sentence of a document comes from the document.
TOLD = 0.8
# The number of changed facts indexed per transaction, and the most that a search waits for.
BATCH, FEW = 2000, 4000
# From this similarity on, a fact is found without a word of the question.
FAR_SIMILARITY = 0.3
PARTITION, _REVISION, _USES_SEEN = "facts", "revision", "uses seen"
# The most earlier statements about the same thing. More than these are a list, such as a harbour's berths, not
# contradictions.
MOST_OLDER = 3
LOOKED_AT = 60
CLOSE_TIMEOUT_S = 1.0


class LearnedFact(Struct, frozen=True):
    fact: MemoryFact
    is_new: bool = True
    """False if a fact that said the same existed."""
    contradicted: tuple[MemoryFact, ...] = ()
    """Older facts that it may contradict."""
    before: str = ""


class RelevantFact(Struct, frozen=True):
    fact: MemoryFact
    score: float
    because: str
    older: tuple[MemoryFact, ...] = ()
    """Earlier statements about the same thing, shown after it with their dates."""
    reasons: Mapping[int, str] = field(default_factory=dict)


class FactMemory:
    def __init__(self, store: Store, path: Path, embedder: OpenEmbedder, *, timeout_s: float = 2.0) -> None:
        self._facts = store.facts
        self._index = HybridIndex(path, embedder, self._texts, timeout_s=timeout_s, keeps_texts=True)
        self._worker = BackgroundWorker(self._some, "recto-facts")
        self._learning, self._filling = threading.Lock(), threading.Lock()

    def has_facts(self) -> bool:
        return self._facts.revision > 0

    # -- learning

    def learn(
        self,
        text: str,
        kind: FactKind | None = None,
        *,
        learned_by: str = USER,
        conversation: str | None = None,
        message: str | None = None,
        confidence: float = 1.0,
        replaces: int | None = None,
        created: str = "",
    ) -> LearnedFact:
        """Remember a statement. If it says the same as a known fact, it replaces that fact's text."""
        text = checked_text(text)
        with self._learning:
            said = (kind or guessed_kind(text), created, learned_by, conversation, message)
            fact = MemoryFact(0, text, *said, confidence=confidence)
            disputed = list[MemoryFact]()
            if replaces is not None:
                replaced = self._facts.fact(replaces)  # raises NotFound before anything is stored
                if replaced.is_confirmed and not fact.is_confirmed:  # keep both until the user decides
                    replaces, disputed = None, [replaced]
            near = self._near(text)
            same = _same(text, near)
            if same is not None and replaces is None:
                return LearnedFact(self._confirm(same, fact), is_new=False, before=same.text)
            older = [each for each, hit in near if each.number != replaces and _contradicts(text, each, hit)]
            older = list({each.number: each for each in (*disputed, *older)}.values())
            stored = self._facts.add(fact)
            if older := older if len(older) <= MOST_OLDER else []:
                self._facts.join_topics([stored.number, *(each.number for each in older)])
            if replaces is not None:
                self._facts.change(replaces, replaced_by=stored.number)
        self._worker.wake()
        return LearnedFact(stored, contradicted=tuple(older))

    def known(self, text: str) -> MemoryFact | None:
        """The fact that says the same, unless only a model has stated it so far."""
        found = _same(text, self._near(text))
        return found if found and found.is_confirmed else None

    def _near(self, text: str) -> list[tuple[MemoryFact, Hit]]:
        hits, _ = self._find(text, COMPARED)
        facts = self._facts.some([hit.passage.item for hit in hits])
        return [(facts[hit.passage.item], hit) for hit in hits if hit.passage.item in facts]

    def _confirm(self, known: MemoryFact, said: MemoryFact) -> MemoryFact:
        """Update a repeated fact: the newer words count, the older are kept. A model changes only words that it wrote;
        those are replaced when the user or a document says the same."""
        if known.note or (known.is_confirmed and not said.is_confirmed):
            return known
        changes: dict[str, object] = {}
        if known.text != said.text:
            changes = {"text": said.text, "history": (*known.history, EarlierText(known.text, now()))}
        if said.is_confirmed and not known.is_confirmed:
            changes |= {name: getattr(said, name) for name in ("learned_by", "conversation", "message", "confidence")}
        return self._facts.change(known.number, **changes) if changes else known

    # -- changing

    def edit(self, number: int, text: str | None = None, kind: FactKind | None = None) -> MemoryFact:
        """Text from the user makes a fact noted by a model the user's."""
        known = self._facts.fact(number)
        changes: dict[str, object] = {"kind": kind} if kind else {}
        if text is not None and not known.is_confirmed:
            changes |= {"learned_by": USER, "conversation": None, "message": None}
        if text is not None and (line := checked_text(text)) != known.text:
            changes |= {"text": line, "history": (*known.history, EarlierText(known.text, now()))}
        changed = self._facts.change(number, **changes) if changes else known
        self._worker.wake()
        return changed

    def replace(self, older: int, newer: int) -> MemoryFact:
        """Send only the newer of two facts from now on. Raises Invalid for a cycle."""
        self._facts.fact(older)
        at: int | None = newer
        while at is not None:
            if at == older:
                raise Invalid(f"fact {older} cannot be replaced by {newer}, which it replaces itself")
            at = self._facts.fact(at).replaced_by
        changed = self._facts.change(older, replaced_by=newer)
        self._worker.wake()
        return changed

    def forget(self, number: int) -> MemoryFact:
        """Delete a fact and return it. None of its words stay in the facts or their index; old requests keep them."""
        known = self._facts.forget(number)
        self._start_over()
        self._worker.wake()
        return known

    # -- files

    def import_file(self, file: Path, kind: FactKind | None = None) -> list[LearnedFact]:
        """Learn the facts of a Markdown or JSON file. Raises Invalid, before learning any, if one is not a fact."""
        try:
            raw = read_ordinary_file(file)
        except OSError as why:
            raise Invalid(f"cannot read {file}: {why.strerror}", path=str(file)) from why
        found = parse_fact_file(decode_text(raw, str(file)), file.name)
        if not found:
            raise Invalid(f"{file} contains no facts: write one per line, after a dash", path=str(file))
        return [
            self.learn(
                each.text,
                kind or each.kind,
                learned_by=each.learned_by or f"file {file.name}",
                created=each.created,
                confidence=each.confidence,
            )
            for each in found
        ]

    def export(self, format: str = "markdown") -> str:
        facts = self._facts.all()[::-1]
        if format not in ("markdown", "json"):
            raise Invalid(f"unknown format {shown(format)}: use markdown or json")
        if format == "markdown":
            return facts_to_markdown(facts)
        return json.dumps(facts_to_json(facts), ensure_ascii=False, indent=1) + "\n"

    # -- finding

    def fact(self, number: int) -> MemoryFact:
        return self._facts.fact(number)

    def facts(
        self, kind: FactKind | None = None, *, replaced: bool = True, limit: int | None = None
    ) -> list[MemoryFact]:
        return self._facts.all(kind, replaced=replaced, limit=limit)

    @property
    def count(self) -> int:
        return self._facts.count()

    def about(self, fact: MemoryFact) -> Sequence[MemoryFact]:
        """Newest first."""
        return self._facts.of_topics([fact.topic]) if fact.topic else [fact]

    def search(self, text: str, limit: int = 10) -> tuple[list[RelevantFact], str]:
        """The facts that match a text, best first, and a note on what limits the result."""
        hits, note = self._find(text, max(limit, COMPARED))
        facts = self._facts.some([hit.passage.item for hit in hits])
        found = [
            RelevantFact(fact, round(hit.score, 2), hit.because)
            for hit in hits
            if (fact := facts.get(hit.passage.item))
        ]
        return found[:limit], note

    def relevant(self, text: str) -> tuple[list[RelevantFact], str]:
        """The facts to send with a message, best first. A fact always follows the newer ones that may contradict it,
        with its date. Facts that only a model stated yield to others."""
        hits, note = self._find(text, LOOKED_AT)
        facts = self._facts.some([hit.passage.item for hit in hits])
        rare = frozenset(stem_word(word) for word in topic_words(text) - COMMON_WORDS)
        stems = rare or fact_stems(text)
        near = [(fact, hit) for hit in hits if (fact := facts.get(hit.passage.item)) and _is_near(hit, stems, fact)]
        topics = {fact.topic for fact, _ in near if fact.topic}
        about: dict[int, list[MemoryFact]] = {}
        for fact in self._facts.of_topics(topics) if topics else ():
            about.setdefault(fact.topic or 0, []).append(fact)
        told: dict[int, RelevantFact] = {}
        seen: set[int] = set()
        for fact, hit in near:
            if fact.number in seen:
                continue
            newer = [each for each in about.get(fact.topic or 0, ()) if _holds_instead(each, fact)]
            newest, *older = [*newer[:MOST_OLDER], fact]
            known = told.get(newest.number)
            older = [*(known.older if known else ()), *(each for each in older if each.number not in seen)]
            reasons = dict(known.reasons) if known else {}
            reasons |= {each.number: f"counts before fact {fact.number}, about the same" for each in newer[:MOST_OLDER]}
            reasons[fact.number] = hit.because
            score = known.score if known else round(hit.score, 2)
            told[newest.number] = RelevantFact(newest, score, reasons[newest.number], tuple(older), reasons)
            seen |= {newest.number, *(each.number for each in older)}
        return list(told.values()), note

    def missing(self, fact: MemoryFact) -> str:
        """Describe a fact's missing note or vault; empty if none is missing."""
        return missing_note(fact.note) if fact.note else ""

    # -- the index

    def _find(self, text: str, limit: int) -> tuple[list[Hit], str]:
        """The best passage of each fact, and a note on what limits the result."""
        self._index.open()
        before = self._index.rebuild_reason
        query = Query(text, PARTITION, spreads=False, limit=limit)
        is_behind, found = self._index.keywords.file.run(lambda: (self._fill(FEW), self._index.finder.find(query)))
        best: dict[int, Hit] = {}
        for hit in found.hits:
            if hit.word_score or (hit.similarity or 0) >= FAR_SIMILARITY:
                best.setdefault(hit.passage.item, hit)
        if is_behind:
            return list(best.values()), "not all facts are in the index yet"
        is_rebuilt = self._index.rebuild_reason != before
        return list(best.values()), found.warning or (self._index.rebuild_reason if is_rebuilt else "")

    def _fill(self, most: int | None = None) -> bool:
        """Index up to `most` changed facts. Returns True if more remain."""
        with self._filling:
            done = 0
            if self._reached > self._facts.revision:  # the index of another or a newer store
                self._start_over()
            while most is None or done < most:
                reached = self._reached
                changed, revision = self._facts.changed_since(reached, BATCH)
                if not changed:
                    return False
                self._put(reached, changed, revision)
                done += len(changed)
            return True

    def _put(self, reached: int, changed: Sequence[tuple[int, MemoryFact | None]], revision: int) -> None:
        items = [
            IndexItem(number, fact.text, position=number, time=fact.created)
            for number, fact in changed
            if fact is not None and fact.replaced_by is None
        ]
        # in one step: another process may have done the same meanwhile
        self._index.keywords.add(
            {PARTITION: items},
            {_REVISION: str(revision)},
            expected={_REVISION: str(reached) if reached else ""},
            removed=[number for number, _ in changed] if reached else (),
        )

    def _texts(self, passages: Sequence[Passage]) -> dict[int, str]:
        facts = self._facts.some([passage.item for passage in passages])
        return {
            passage.number: facts[passage.item].text[passage.start : passage.end]
            for passage in passages
            if passage.item in facts
        }

    @property
    def _reached(self) -> int:
        return self._index.keywords.parsed_mark(_REVISION, int, 0)

    def _start_over(self) -> None:
        """Refill the index, since words cannot be removed from it one by one."""
        self._index.keywords.clear((), {_REVISION: ""}, forgotten_prefix=_REVISION)

    @property
    def uses_seen(self) -> int:
        """The number of uses of notes examined so far for frequent ones."""
        return self._index.keywords.parsed_mark(_USES_SEEN, int, 0)

    @uses_seen.setter
    def uses_seen(self, number: int) -> None:
        self._index.keywords.add({}, {_USES_SEEN: str(number)})

    def index(self, progress: Progress | None = None) -> None:
        """Update the index now, with all vectors."""
        self._fill()
        self._index.make_vectors(progress)

    def _some(self) -> bool:
        """Do one step of background work. Never raises: the next search reports the problem."""
        try:
            vectors = self._index.vectors
            return self._fill(BATCH) or (vectors is not None and vectors.make_batch() > 0)
        except RectoError:
            log.info("could not update the index of facts", exc_info=True)
        except Exception:
            log.exception("could not update the index of facts")
        return False

    def close(self) -> None:
        self._worker.close(CLOSE_TIMEOUT_S)
        with suppress(StoreError):  # the file is disposable
            self._index.close()


def _same(text: str, near: Sequence[tuple[MemoryFact, Hit]]) -> MemoryFact | None:
    return next((fact for fact, _ in near if says_same(text, fact.text)), None)


def _is_near(hit: Hit, question: frozenset[str], fact: MemoryFact) -> bool:
    """True if near by meaning, or if it shares an uncommon word with the question, and scores enough or has half of
    its words. Words of many facts weigh nothing."""
    if (hit.similarity or 0) >= MIN_SIMILARITY:
        return True
    if hit.score < MIN_OF_BEST:
        return False
    shared = len(question & fact_stems(fact.text))
    return shared > 0 and (hit.word_score >= MIN_WORDS or shared >= MIN_SHARED * len(question))


def _holds_instead(one: MemoryFact, other: MemoryFact) -> bool:
    """True if a fact on the same topic says something else about the same thing and is later or better confirmed."""
    is_later = (one.is_confirmed, one.created, one.number) > (other.is_confirmed, other.created, other.number)
    return is_later and (may_contradict(one.text, other.text) or not _share_little(one.text, other.text))


def _share_little(one: str, other: str) -> bool:
    return not fact_stems(one) & fact_stems(other) or not may_share_subject(one, other)


def _contradicts(text: str, older: MemoryFact, hit: Hit) -> bool:
    if older.note:  # a note is a pointer and states nothing
        return False
    if may_contradict(text, older.text):
        return True
    is_close = (hit.similarity or 0) >= CLOSE
    return is_close and not _share_little(text, older.text) and not says_same(text, older.text)


def missing_note(note: NoteReference) -> str:
    """Describe a missing vault or note; empty if both exist."""
    if not os.path.isdir(note.vault):
        return f"the vault {note.vault} no longer exists"
    return "" if os.path.isfile(os.path.join(note.vault, note.path)) else "the note no longer exists"


def is_told_by(text: str, sources: Iterable[str]) -> bool:
    """True if a statement comes from a document, a rule or another memory."""
    stems = fact_stems(text)
    sentences = (sentence for source in sources for sentence in split_sentences(source))
    return bool(stems) and any(len(stems & fact_stems(sentence)) >= TOLD * len(stems) for sentence in sentences)
