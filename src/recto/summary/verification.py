"""Verification of a summary against the messages it covers: which facts it keeps, which it loses, which it invents.

Unsupported facts are marked in the text. Lost ones go into the ledger, as far as there is room. No I/O.
"""

import re
from collections.abc import Iterable, Sequence
from datetime import date
from itertools import chain

from msgspec import Struct, field
from msgspec.structs import replace

from recto.chat.blocks import Compaction, File, Text, ToolCall, ToolResult
from recto.chat.message import Message, Role
from recto.summary.asked import AskedBefore, asked_in, is_impersonal, was_for_practice, with_neighbours
from recto.summary.evidence import Evidence
from recto.summary.facts import Fact, facts_on_lines, find_facts
from recto.summary.ledger import (
    UNLISTED,
    VALUE_KINDS,
    AskedQuestion,
    LedgerEntry,
    ledger_items,
    mark_corrections,
    parse_ledger,
    parse_place,
    topic_terms,
)
from recto.summary.ledger_entries import entries_of_output, entries_of_prose, entries_settled, has_entries
from recto.summary.ledger_worth import without_denied, without_past
from recto.summary.machine_output import MACHINE, PROSE, classify_lines, readable_output
from recto.summary.marks import (
    MARK,
    QUOTED_MARK,
    ParsedMarks,
    count_marks,
    mark_unsupported,
    parse_marks,
    quote_marks,
    strip_marks,
)
from recto.summary.relative_dates import day_of
from recto.summary.sentences import sentence_positions, sentences
from recto.summary.side_questions import Said, find_side_questions
from recto.summary.success import tells_failure, works_now
from recto.summary.tool_use import readable_arguments
from recto.summary.worth import stands_alone
from recto.text import text_cache

# Characters of one text that are searched for facts; its words are all read, however long it is.
_MAX_SEARCHED = 400_000
_MAX_ENTRIES, _MAX_PLACES = 20_000, 400
# An error is past if it works within so many messages, as the beginning of one of them says.
_MAX_UNTIL_WORKS, _MAX_REPORT = 14, 600
# The day that is meant, as a summary adds it to "today".
_ADDED_DATE = re.compile(r" \[\d{4}[\d–-]*\]")
# So many answers that are judged make an exercise of what is asked within so many messages.
_MIN_EXERCISE, _MAX_EXERCISE = 2, 20
# So many characters wait until somebody asks for evidence: a summary of sentences of the originals needs none.
_MAX_WAITING = 1_000_000


class CoveredFacts(Struct):
    """The covered messages as evidence, and the facts in them that a summary may lose."""

    entries: dict[tuple[str, str], LedgerEntry] = field(default_factory=dict)
    dropped: int = 0
    """How many entries were beyond the limit."""
    results: int = 0
    """How many tool results there are: few of their facts are entries."""
    with_marks: list[str] = field(default_factory=list)
    """Texts of the user that have the words of a mark themselves."""
    _before: AskedBefore | None = None
    _failed: list[LedgerEntry] = field(default_factory=list)
    """Errors of the last messages."""
    _answers: list[LedgerEntry] = field(default_factory=list)
    """What the user's last message answers."""
    _practice: set[int] = field(default_factory=set)
    """The numbers of answers that were judged."""
    _evidence: Evidence = field(default_factory=Evidence)
    _waiting: list[tuple[str, list[Fact] | None]] = field(default_factory=list)
    """Texts with their facts, where these were needed."""
    _waiting_size: int = 0
    _said: dict[int, Said] = field(default_factory=dict)
    """The messages so far, by number."""
    days: dict[int, date] = field(default_factory=dict)
    """When each was said."""

    def told(self, known: str = "") -> list[LedgerEntry]:
        """The entries without those of side questions. `known` is what a former summary tells."""
        numbers = sorted(self._said)
        aside = {numbers[at] for at in find_side_questions([self._said[number] for number in numbers], known)}
        return [
            entry
            for entry in self.entries.values()
            if entry.number not in aside and not (entry.question and self._is_exercise(entry.question))
        ]

    def _is_exercise(self, question: AskedQuestion) -> bool:
        """Whether a question is one of several of an exercise, of which not every answer was judged."""
        near = sum(abs(number - question.number) <= _MAX_EXERCISE for number in self._practice)
        return near >= _MIN_EXERCISE and question.role == "assistant" and is_impersonal(question)

    @property
    def evidence(self) -> Evidence:
        for text, facts in self._waiting:
            self._evidence.add(text, facts)
        self._waiting, self._waiting_size = [], 0
        return self._evidence

    def add(self, messages: Iterable[Message]) -> None:
        for message in messages:
            self.results += len(message.results)
            if message.role != "tool" and message.text.strip():
                self._said[message.said] = Said(message.role, message.text, bool(message.calls))
                if day := day_of(message.time):
                    self.days[message.said] = day
            for text, author in _texts_of(message):
                self._add_text(text, author, message)
                if message.role == "user" and MARK.strip() in text:
                    self.with_marks.append(text)
        if len(self.entries) > _MAX_ENTRIES:
            self._drop_worst()

    def _add_text(self, text: str, author: str, message: Message) -> None:
        is_long = len(text) > _MAX_SEARCHED
        searched = f"{text[: _MAX_SEARCHED // 2]}\n{text[-_MAX_SEARCHED // 2 :]}" if is_long else text
        said = (message.role, message.said, message.calls)
        facts, entries = _read_text(searched, author, *said, self._before)
        self._wait(text, facts)
        found = list(entries)
        if author != MACHINE:
            self._before = asked_in(searched, message, found, self._before)
            found += [*self._mended(searched, message.said), *self._practised(searched, message, found)]
        self._failed += [entry for entry in found if entry.fact.kind == "error" or tells_failure(entry.text)]
        for entry in found:
            _merge_entry(self.entries, entry)

    def _mended(self, text: str, number: int) -> list[LedgerEntry]:
        """What failed not long before, where this text says that it works."""
        recent = [entry for entry in self._failed if number - entry.number <= _MAX_UNTIL_WORKS]
        has_worked = bool(recent) and any(map(works_now, sentences(text[:_MAX_REPORT])))
        self._failed = [] if has_worked else recent
        return [replace(entry, is_settled=True) for entry in recent] if has_worked else []

    def _practised(self, text: str, message: Message, found: Sequence[LedgerEntry]) -> list[LedgerEntry]:
        """Answers to questions of an exercise, where this text says whether they are right."""
        before, self._answers = self._answers, [entry for entry in found if entry.question]
        if message.role == "user":
            return []
        judged = [entry for entry in before if entry.question and was_for_practice(entry.question, text)]
        self._practice.update(entry.number for entry in judged)
        return [replace(entry, is_settled=True) for entry in judged]

    def _wait(self, text: str, facts: list[Fact] | None) -> None:
        self._waiting.append((text, facts))
        self._waiting_size += len(text)
        if self._waiting_size > _MAX_WAITING:
            _ = self.evidence

    def _drop_worst(self) -> None:
        newest = max(entry.number for entry in self.entries.values())
        ranked = sorted(self.entries.values(), key=lambda entry: (-entry.rank, -entry.score(newest)))
        best = ranked[: _MAX_ENTRIES // 2]
        self.dropped += len(self.entries) - len(best)
        self.entries = {entry.key: entry for entry in best}


@text_cache(2048)  # a comparison of strategies reads the same messages for each of them
def _read_text(
    text: str, author: str, role: Role, number: int, calls: tuple[ToolCall, ...], before: AskedBefore | None
) -> tuple[list[Fact] | None, tuple[LedgerEntry, ...]]:
    """The facts in a text of a message, where they were needed, and what the message tells."""
    message, lines = Message("", role, calls, said=number), classify_lines(text, author=author)
    if author != MACHINE and role == "assistant" and not has_entries(text, lines):
        return None, tuple(entries_settled(text, message, before))
    facts = facts_on_lines(text, lines)
    if author == MACHINE:
        return facts, tuple(entries_of_output(text, facts, message))
    entries = entries_of_prose(text, facts, lines, message, before)
    return facts, tuple(with_neighbours(entries, text) if role == "user" else entries)


def _texts_of(message: Message) -> list[tuple[str, str]]:
    """The texts of a message, each with MACHINE for machine output and "" for people."""
    found: list[tuple[str, str]] = []
    for block in message.blocks:
        match block:
            case Text():
                found.append((block.text, MACHINE if message.role == "tool" else ""))
            case ToolCall():
                found.append((f"{block.name}\n{readable_arguments(block.arguments)}", MACHINE))
            case ToolResult() | File():
                found.append((f"{block.name}\n{readable_output(block.text)}", MACHINE))
    return found


class FormerSummary(Struct, frozen=True):
    """The summary that covered the conversation before."""

    summary: str = ""
    ledger: tuple[str, ...] = ()
    places: dict[str, int] = field(default_factory=dict)
    """The facts in the summary, with the numbers of their messages."""
    facts: int | None = None
    """How many facts were covered; None if they were not counted."""
    has_marks: bool = True
    """Whether what looks like a mark in it may be one."""
    results: int = 0
    """How many tool results were covered."""

    @property
    def entries(self) -> list[LedgerEntry]:
        """The facts in its ledger, and those in its summary."""
        in_summary = (parse_place(place, number) for place, number in self.places.items())
        return [*parse_ledger(self.ledger), *chain.from_iterable(in_summary)]


def former_summary(block: Compaction | None) -> FormerSummary:
    if block is None:
        return FormerSummary()
    checks = block.checks
    has_marks, results = checks.get("invented") != 0, checks.get("results", 0)
    return FormerSummary(block.summary, block.ledger, block.places, checks.get("facts"), has_marks, results)


class VerifiedSummary(Struct, frozen=True):
    """A summary with its marks, and the facts that it keeps and loses."""

    text: str
    kept: tuple[LedgerEntry, ...]
    lost: tuple[LedgerEntry, ...]
    invented: int
    facts: int
    """How many facts are covered in all, as far as is known."""
    results: int = 0
    """How many tool results are covered in all."""

    def counts(self, ledger: Sequence[str]) -> dict[str, int]:
        """How many facts are in the summary, in the ledger besides, only in the archive, and invented."""
        in_ledger = len(_listed(ledger) - {entry.key for entry in self.kept})
        total = max(self.facts, len(self.kept) + in_ledger)
        results = {"results": self.results} if self.results else {}
        return _counts(total, len(self.kept), in_ledger, self.invented) | results

    @property
    def items(self) -> set[tuple[int, str]]:
        """What a ledger with room for everything would list."""
        return {(entry.number, entry.text) for entry in self.lost}

    @property
    def places(self) -> dict[str, int]:
        """The facts in the summary, with the numbers of their messages; the latest if there are many. Files and
        commands of tools stand in the work log."""
        told = (entry for entry in self.kept if entry.lowered < UNLISTED or entry.fact.kind not in ("path", "command"))
        latest = sorted(told, key=lambda entry: entry.number)[-_MAX_PLACES:]
        return {entry.place: entry.number for entry in latest}


def verify_summary(
    text: str, covered: CoveredFacts, former: FormerSummary, allowed: Iterable[str] = (), *, mark: bool = True
) -> VerifiedSummary:
    """`allowed` texts may be used as well: the user's wish, messages still sent. Without `mark` the text is trusted,
    because it consists of sentences of the originals."""
    parsed = parse_marks(former.summary) if former.has_marks else ParsedMarks(former.summary)
    text = quote_marks(text, covered.with_marks if former.has_marks else [*covered.with_marks, former.summary])
    invented = count_marks(text)
    if mark:
        known = Evidence()
        for other in (parsed.verified, *former.ledger, *former.places, *allowed):
            known.add(other)
        text, unsupported = mark_unsupported(text, (covered.evidence, known), parsed.unverified)
        invented = len(unsupported)
    text = text.replace(QUOTED_MARK, MARK.strip())
    former_entries = former.entries
    entries = _merge_entries(former_entries, covered.told(former.summary))
    current = without_denied(mark_corrections(entries))
    current = without_past(current, covered.days)
    kept, lost = _split_stated(text, current)
    before = max(len(former_entries), former.facts or 0)
    added = len(entries) - len(former_entries) + covered.dropped
    return VerifiedSummary(text, tuple(kept), tuple(lost), invented, before + added, former.results + covered.results)


def recount_facts(text: str, block: Compaction) -> dict[str, int]:
    """The counts of a Compaction after the user rewrote its summary: which known facts the text states now, and which
    its ledger lists besides."""
    former = former_summary(block)
    entries = _merge_entries(former.entries)
    kept = {entry.key for entry in _split_stated(text, entries)[0]}
    listed = _listed(former.ledger) - kept
    total = max(former.facts or 0, len(entries))
    own = [] if former.has_marks else [former.summary]
    return block.checks | _counts(total, len(kept), len(listed), count_marks(quote_marks(text, own)))


def only_archived(block: Compaction, covered: CoveredFacts) -> list[tuple[int, str, str]]:
    """What neither the summary nor the ledger of a Compaction tells, in order of time: the number of the message, the
    role of who said it, and the words."""
    told = "\n".join([block.summary, *(item for _, item in ledger_items(block.ledger))])
    _, lost = _split_stated(told, covered.told())
    found = {(entry.number, entry.role, entry.text) for entry in lost if (entry.short or entry.text) not in told}
    of_message: dict[int, list[str]] = {}
    for number, _, item in found:
        of_message.setdefault(number, []).append(item)
    return sorted(
        (number, role, item)
        for number, role, item in found
        if not any(item in other != item for other in of_message[number])
    )


def count_lost(block: Compaction, archived: Iterable[LedgerEntry]) -> int:
    """How many facts of archived messages neither the summary nor the ledger of a Compaction tells."""
    return len(_split_stated("\n".join([block.summary, *block.ledger]), archived)[1])


def _listed(ledger: Iterable[str]) -> set[tuple[str, str]]:
    return {entry.key for entry in parse_ledger(ledger)}


def _counts(total: int, kept: int, in_ledger: int, invented: int) -> dict[str, int]:
    archive = total - kept - in_ledger
    return {"facts": total, "kept": kept, "ledger": in_ledger, "archive": archive, "invented": invented}


def _split_stated(text: str, entries: Iterable[LedgerEntry]) -> tuple[list[LedgerEntry], list[LedgerEntry]]:
    """The entries that a summary states, and those that it does not."""
    plain = _ADDED_DATE.sub("", strip_marks(text))
    evidence = Evidence()
    evidence.add(plain, find_facts(plain, author=PROSE))
    stated: list[LedgerEntry] = []
    missing: list[LedgerEntry] = []
    for entry in entries:
        if entry.text in plain or (evidence.states(entry.fact) and _names_topic(entry, plain)):
            stated.append(entry)
        else:
            missing.append(_without_told(entry, plain))
    return stated, missing


def _names_topic(entry: LedgerEntry, plain: str) -> bool:
    """Whether a line of a summary that has the value of an entry also has a word of what it is of. A value in another
    spelling is taken for told."""
    if entry.fact.kind not in VALUE_KINDS or not (topic := topic_terms(entry.text.replace(entry.fact.text, " ", 1))):
        return True
    lines = [line for line in plain.splitlines() if entry.fact.text in line]
    return not lines or any(not topic.isdisjoint(topic_terms(line)) for line in lines)


def _without_told(entry: LedgerEntry, plain: str) -> LedgerEntry:
    """The entry without its first sentences where a summary has them, if the rest is understood alone."""
    rest = entry.text
    for start, sentence in sentence_positions(entry.text):
        if entry.text[start:].startswith(sentence) and sentence in plain and entry.fact.text not in sentence:
            rest = entry.text[start + len(sentence) :].lstrip()
        else:
            break
    is_alone = rest != entry.text and entry.fact.text in rest and stands_alone(rest)
    return replace(entry, text=rest, short=rest) if is_alone else entry


def _merge_entries(*groups: Iterable[LedgerEntry]) -> list[LedgerEntry]:
    """Each fact once, as the user says it last, or else the assistant, or else a tool."""
    merged: dict[tuple[str, str], LedgerEntry] = {}
    for entry in chain(*groups):
        _merge_entry(merged, entry)
    return list(merged.values())


def _merge_entry(entries: dict[tuple[str, str], LedgerEntry], entry: LedgerEntry) -> None:
    key = entry.key
    entries[key] = entry.merge(entries[key]) if key in entries else entry
