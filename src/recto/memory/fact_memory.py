"""FactMemory: facts as they are learned, found and changed. Joins the rows of the store with a search index of them.

The index is a file that can be thrown away. It follows the facts by their revisions: the first search after a change
brings it up to date. Everything here is synchronous and may be called from any thread.
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
    full_names,
    guessed_kind,
    is_about_others,
    may_contradict,
    may_share_subject,
    says_same,
)
from recto.search.finder import Hit, Query
from recto.search.hybrid_index import HybridIndex, OpenEmbedder, Progress
from recto.search.keyword_index import IndexItem, Passage
from recto.search.passages import split_sentences
from recto.search.terms import COMMON_WORDS, STOP_WORDS, stem_word, topic_words, word_forms, words
from recto.store.fact import USER, EarlierText, FactKind, MemoryFact, NoteReference, checked_text
from recto.store.store import Store
from recto.vault.decoding import decode_text

log = logging.getLogger(__name__)

# How many facts a new one is compared with: those that the search finds for it.
COMPARED = 24
# Two statements with a word in common and this similarity may contradict each other whatever else they share.
CLOSE = 0.6
# Scores that a fact must reach to be relevant, by words or by similarity.
MIN_WORDS, MIN_SIMILARITY, MIN_SHARED = 0.1, 0.32, 0.5
# The share of the best one's score that a fact without such a similarity needs: the rest would be paid for in vain.
MIN_OF_BEST = 0.3
# A statement with this share of its words in one sentence of a document is the document's.
TOLD = 0.8
# How many changed facts are indexed in one transaction, and how many a search waits for.
BATCH, FEW = 2000, 4000
# A fact without a word of the question is found from this similarity on.
FAR_SIMILARITY = 0.3
PARTITION, _REVISION, _USES_SEEN = "facts", "revision", "uses seen"
# How many earlier statements about the same thing there may be. More of them are no contradictions but a list, such as
# that of a harbour's berths.
MOST_OLDER = 3
# How many relevant facts are looked at.
LOOKED_AT = 60
# Letters of a word whose forms the index may confuse with other words.
SHORT = 3
CLOSE_TIMEOUT_S = 1.0


class LearnedFact(Struct, frozen=True):
    fact: MemoryFact
    is_new: bool = True
    """False where a fact that said the same was there."""
    contradicted: tuple[MemoryFact, ...] = ()
    """Older facts that it may contradict."""
    before: str = ""
    """What the known fact said."""


class RelevantFact(Struct, frozen=True):
    fact: MemoryFact
    score: float
    because: str
    older: tuple[MemoryFact, ...] = ()
    """What was said of the same thing before: shown after it, with its date."""
    reasons: Mapping[int, str] = field(default_factory=dict)
    """By number, why each of them is told."""


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
        """Remembers a statement. One that says the same as a known fact becomes its newer text."""
        text = checked_text(text)
        with self._learning:
            said = (kind or guessed_kind(text), created, learned_by, conversation, message)
            fact = MemoryFact(0, text, *said, confidence=confidence)
            disputed = list[MemoryFact]()
            if replaces is not None:
                replaced = self._facts.fact(replaces)  # NotFound before anything is stored
                if replaced.is_confirmed and not fact.is_confirmed:  # both hold until the user decides
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
        """The fact that says the same, unless only a model has said it so far."""
        found = _same(text, self._near(text))
        return found if found and found.is_confirmed else None

    def _near(self, text: str) -> list[tuple[MemoryFact, Hit]]:
        hits, _ = self._find(text, COMPARED)
        facts = self._facts.some([hit.passage.item for hit in hits])
        return [(facts[hit.passage.item], hit) for hit in hits if hit.passage.item in facts]

    def _confirm(self, known: MemoryFact, said: MemoryFact) -> MemoryFact:
        """Said again: the newer words count, the older are kept. A model changes no words that it did not write; what
        it wrote becomes the words of the user or document that says it too."""
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
        """A text that the user gives to what a model noted makes it the user's."""
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
        """From now on only the newer of two facts is sent. Raises Invalid where that would go round in a circle."""
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
        """The fact as it was. None of its words stays among the facts or in their index; old requests keep it."""
        known = self._facts.forget(number)
        self._start_over()
        self._worker.wake()
        return known

    # -- files

    def import_file(self, file: Path, kind: FactKind | None = None) -> list[LearnedFact]:
        """Learns the facts of a Markdown or JSON file. Raises Invalid before any is learned, if one is none."""
        try:
            raw = read_ordinary_file(file)
        except OSError as why:
            raise Invalid(f"cannot read {file}: {why.strerror}", path=str(file)) from why
        found = parse_fact_file(decode_text(raw, str(file)), file.name)
        if not found:
            raise Invalid(f"{file} holds no facts: write one on each line, after a dash", path=str(file))
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
        """All facts, the oldest first."""
        facts = self._facts.all()[::-1]
        if format not in ("markdown", "json"):
            raise Invalid(f"facts are written as markdown or json, not as {shown(format)}")
        if format == "markdown":
            return facts_to_markdown(facts)
        return json.dumps(facts_to_json(facts), ensure_ascii=False, indent=1) + "\n"

    # -- finding

    def fact(self, number: int) -> MemoryFact:
        return self._facts.fact(number)

    def facts(
        self, kind: FactKind | None = None, *, replaced: bool = True, limit: int | None = None
    ) -> list[MemoryFact]:
        """The newest first."""
        return self._facts.all(kind, replaced=replaced, limit=limit)

    @property
    def count(self) -> int:
        return self._facts.count()

    def about(self, fact: MemoryFact) -> Sequence[MemoryFact]:
        """The facts in force about the same thing, the newest first."""
        return self._facts.of_topics([fact.topic]) if fact.topic else [fact]

    def search(self, text: str, limit: int = 10) -> tuple[list[RelevantFact], str]:
        """Facts that match a text, the best first, and a note on what limits the result."""
        hits, note = self._find(text, max(limit, COMPARED))
        facts = self._facts.some([hit.passage.item for hit in hits])
        found = [
            RelevantFact(fact, round(hit.score, 2), hit.because)
            for hit in hits
            if (fact := facts.get(hit.passage.item)) and (hit.similarity or _holds_one_of(text, fact.text))
        ]
        return found[:limit], note

    def relevant(self, text: str) -> tuple[list[RelevantFact], str]:
        """What a window should tell for a message, the best first. A fact never comes without the newer ones that may
        contradict it: those come first, and it below them with its date. What only a model said yields to others."""
        hits, note = self._find(text, LOOKED_AT)
        facts = self._facts.some([hit.passage.item for hit in hits])
        rare = frozenset(stem_word(word) for word in topic_words(text) - COMMON_WORDS)
        stems = rare or fact_stems(text)
        names = full_names(text)
        near = [
            (fact, hit)
            for hit in hits
            if (fact := facts.get(hit.passage.item))
            and _is_near(hit, stems, fact)
            and not is_about_others(fact.text, names)
        ]
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
        """Of a fact about a note, what is missing of the note."""
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
        """Brings the index up to date; after so many facts the rest waits. Returns whether any do."""
        with self._filling:
            done = 0
            if self._reached > self._facts.revision:  # of another store, or of a newer one
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
        # all in one step: another process may have done the same meanwhile
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
        """The revision up to which facts are indexed."""
        return self._index.keywords.parsed_mark(_REVISION, int, 0)

    def _start_over(self) -> None:
        """Words cannot be taken out of the index one by one: it is filled again from nothing."""
        self._index.keywords.clear((), {_REVISION: ""}, forgotten_prefix=_REVISION)

    @property
    def uses_seen(self) -> int:
        """How many uses of notes were looked at to find those that are used often."""
        return self._index.keywords.parsed_mark(_USES_SEEN, int, 0)

    @uses_seen.setter
    def uses_seen(self, number: int) -> None:
        self._index.keywords.add({}, {_USES_SEEN: str(number)})

    def index(self, progress: Progress | None = None) -> None:
        """Brings the index up to date now, with all vectors."""
        self._fill()
        self._index.make_vectors(progress)

    def _some(self) -> bool:
        """One step of background work. Never raises: the next search reports what is wrong."""
        try:
            vectors = self._index.vectors
            return self._fill(BATCH) or (vectors is not None and vectors.make_batch() > 0)
        except RectoError:
            log.info("the index of facts could not be brought up to date", exc_info=True)
        except Exception:
            log.exception("the index of facts could not be brought up to date")
        return False

    def close(self) -> None:
        self._worker.close(CLOSE_TIMEOUT_S)
        with suppress(StoreError):  # it can be thrown away
            self._index.close()


def _same(text: str, near: Sequence[tuple[MemoryFact, Hit]]) -> MemoryFact | None:
    return next((fact for fact, _ in near if says_same(text, fact.text)), None)


def _is_near(hit: Hit, question: frozenset[str], fact: MemoryFact) -> bool:
    """By its meaning, or because it holds a word of the question that is not an everyday one, and scores enough or
    holds half of them: words that many facts hold weigh nothing."""
    if (hit.similarity or 0) >= MIN_SIMILARITY:
        return True
    if hit.score < MIN_OF_BEST:
        return False
    shared = len(question & fact_stems(fact.text))
    return shared > 0 and (hit.word_score >= MIN_WORDS or shared >= MIN_SHARED * len(question))


def _holds_instead(one: MemoryFact, other: MemoryFact) -> bool:
    """Whether a fact about the same topic says something else of the same thing, later or with more right."""
    is_later = (one.is_confirmed, one.created, one.number) > (other.is_confirmed, other.created, other.number)
    return is_later and (may_contradict(one.text, other.text) or not _share_little(one.text, other.text))


def _share_little(one: str, other: str) -> bool:
    return not fact_stems(one) & fact_stems(other) or not may_share_subject(one, other)


def _contradicts(text: str, older: MemoryFact, hit: Hit) -> bool:
    if older.note:  # a note is pointed to, nothing is stated
        return False
    if may_contradict(text, older.text):
        return True
    is_close = (hit.similarity or 0) >= CLOSE
    return is_close and not _share_little(text, older.text) and not says_same(text, older.text)


def _holds_one_of(question: str, text: str) -> bool:
    """The index takes "on" for a form of "one": where all words are short, one of them must be there."""
    asked = [word for word in words(question) if word not in STOP_WORDS] or words(question)
    is_short = all(len(word) <= SHORT and word.isascii() for word in asked)
    held = {form for word in words(text) for form in (word, stem_word(word))}
    return not is_short or any(form in held for word in asked for form in word_forms(word))


def missing_note(note: NoteReference) -> str:
    """What is missing of a note: its vault, or the note itself; empty if nothing is."""
    if not os.path.isdir(note.vault):
        return f"the vault {note.vault} is not there"
    return "" if os.path.isfile(os.path.join(note.vault, note.path)) else "the note is not there"


def is_told_by(text: str, sources: Iterable[str]) -> bool:
    """Whether a statement comes from a document, a rule or another memory."""
    stems = fact_stems(text)
    sentences = (sentence for source in sources for sentence in split_sentences(source))
    return bool(stems) and any(len(stems & fact_stems(sentence)) >= TOLD * len(stems) for sentence in sentences)
