"""Verification of a summary against the messages it covers: which facts it keeps, which it loses, which it invents.

Unsupported facts are marked in the text. Lost ones go into the ledger, as far as there is room. No I/O.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from msgspec import Struct, field

from recto.chat.blocks import Compaction, File, Text, ToolCall, ToolResult
from recto.chat.message import Message
from recto.summary.asked import AskedBefore, asked_in
from recto.summary.decisions import find_decisions
from recto.summary.entities import LETTER
from recto.summary.evidence import Assertion, Evidence, assertions_of
from recto.summary.facts import Fact, facts_on_lines, find_facts, normalize_fact_text
from recto.summary.ledger import LedgerEntry, ledger_items, mark_corrections, parse_ledger, parse_place
from recto.summary.ledger_entries import entries_of_output, entries_of_prose, entries_settled, has_entries
from recto.summary.machine_output import MACHINE, PROSE, classify_lines, readable_output
from recto.summary.quotation import fact_end
from recto.summary.sentences import sentence_positions
from recto.summary.tool_use import readable_arguments

MARK = " [unverified]"
_MARKS = re.compile(r"^\[unverified\]\n| ?\[unverified\]", re.MULTILINE)
# Stands for the words of a mark where they are a quotation.
_QUOTED_MARK, _WORDS_BEFORE = "\ue0f7\ue0f8", 3
_REST_OF_WORD = re.compile(rf"(?:['’.@:/\\-]?[{LETTER}])*+")
# Kinds of facts that may contain others.
_OUTER_KINDS = ("quote", "command", "url", "path", "error")
# Characters of one text that are searched for facts; its words are all read, however long it is.
_MAX_SEARCHED = 400_000
_MAX_ENTRIES, _MAX_PLACES = 20_000, 400
# So many characters wait until somebody asks for evidence: a summary of sentences of the originals needs none.
_MAX_WAITING = 1_000_000


class CoveredFacts(Struct):
    """The covered messages as evidence, and the facts in them that a summary may lose."""

    entries: dict[tuple[str, str], LedgerEntry] = field(default_factory=dict)
    dropped: int = 0
    """How many entries were beyond the limit."""
    with_marks: list[str] = field(default_factory=list)
    """Texts of the user that have the words of a mark themselves."""
    _before: AskedBefore | None = None
    _evidence: Evidence = field(default_factory=Evidence)
    _waiting: list[tuple[str, list[Fact] | None]] = field(default_factory=list)
    """Texts with their facts, where these were needed."""
    _waiting_size: int = 0

    @property
    def evidence(self) -> Evidence:
        for text, facts in self._waiting:
            self._evidence.add(text, facts)
        self._waiting, self._waiting_size = [], 0
        return self._evidence

    def add(self, messages: Iterable[Message]) -> None:
        for message in messages:
            for text, author in _texts_of(message):
                self._add_text(text, author, message)
                if message.role == "user" and MARK.strip() in text:
                    self.with_marks.append(text)
        if len(self.entries) > _MAX_ENTRIES:
            self._drop_worst()

    def _add_text(self, text: str, author: str, message: Message) -> None:
        is_long = len(text) > _MAX_SEARCHED
        searched = f"{text[: _MAX_SEARCHED // 2]}\n{text[-_MAX_SEARCHED // 2 :]}" if is_long else text
        lines = classify_lines(searched, author=author)
        if author != MACHINE and message.role == "assistant" and not has_entries(searched, lines):
            self._wait(text, None)
            found = list(entries_settled(searched, message, self._before))
        else:
            facts = facts_on_lines(searched, lines)
            self._wait(text, facts)
            if author == MACHINE:
                found = list(entries_of_output(searched, facts, message))
            else:
                found = list(entries_of_prose(searched, facts, lines, message, self._before))
        if author != MACHINE:
            self._before = asked_in(searched, message, found)
        for entry in found:
            _merge_entry(self.entries, entry)

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

    @property
    def entries(self) -> list[LedgerEntry]:
        """The facts in its ledger, and those in its summary."""
        in_summary = (parse_place(place, number) for place, number in self.places.items())
        return [*parse_ledger(self.ledger), *chain.from_iterable(in_summary)]


def former_summary(block: Compaction | None) -> FormerSummary:
    if block is None:
        return FormerSummary()
    has_marks = block.checks.get("invented") != 0
    return FormerSummary(block.summary, block.ledger, block.places, block.checks.get("facts"), has_marks)


class VerifiedSummary(Struct, frozen=True):
    """A summary with its marks, and the facts that it keeps and loses."""

    text: str
    kept: tuple[LedgerEntry, ...]
    lost: tuple[LedgerEntry, ...]
    invented: int
    facts: int
    """How many facts are covered in all, as far as is known."""

    def counts(self, ledger: Sequence[str]) -> dict[str, int]:
        """How many facts are in the summary, in the ledger besides, only in the archive, and invented."""
        in_ledger = len(_listed(ledger) - {entry.key for entry in self.kept})
        total = max(self.facts, len(self.kept) + in_ledger)
        return _counts(total, len(self.kept), in_ledger, self.invented)

    @property
    def items(self) -> set[tuple[int, str]]:
        """What a ledger with room for everything would list."""
        return {(entry.number, entry.text) for entry in self.lost}

    @property
    def places(self) -> dict[str, int]:
        """The facts in the summary, with the numbers of their messages; the latest if there are many."""
        latest = sorted(self.kept, key=lambda entry: entry.number)[-_MAX_PLACES:]
        return {entry.place: entry.number for entry in latest}


def verify_summary(
    text: str, covered: CoveredFacts, former: FormerSummary, allowed: Iterable[str] = (), *, mark: bool = True
) -> VerifiedSummary:
    """`allowed` texts may be used as well: the user's wish, messages still sent. Without `mark` the text is trusted,
    because it consists of sentences of the originals."""
    parsed = _parse_marks(former.summary) if former.has_marks else _ParsedMarks(former.summary)
    text = _quote_marks(text, covered.with_marks if former.has_marks else [*covered.with_marks, former.summary])
    invented = count_marks(text)
    if mark:
        known = Evidence()
        for other in (parsed.verified, *former.ledger, *former.places, *allowed):
            known.add(other)
        text, unsupported = mark_unsupported(text, (covered.evidence, known), parsed.unverified)
        invented = len(unsupported)
    text = text.replace(_QUOTED_MARK, MARK.strip())
    former_entries = former.entries
    entries = _merge_entries(former_entries, covered.entries.values())
    current = mark_corrections(entries)
    kept, lost = _split_stated(text, current)
    before = max(len(former_entries), former.facts or 0)
    added = len(entries) - len(former_entries) + covered.dropped
    return VerifiedSummary(text, tuple(kept), tuple(lost), invented, before + added)


def recount_facts(text: str, block: Compaction) -> dict[str, int]:
    """The counts of a Compaction after the user rewrote its summary: which known facts the text states now, and which
    its ledger lists besides."""
    former = former_summary(block)
    entries = _merge_entries(former.entries)
    kept = {entry.key for entry in _split_stated(text, entries)[0]}
    listed = _listed(former.ledger) - kept
    total = max(former.facts or 0, len(entries))
    own = [] if former.has_marks else [former.summary]
    return block.checks | _counts(total, len(kept), len(listed), count_marks(_quote_marks(text, own)))


def only_archived(block: Compaction, covered: CoveredFacts) -> list[tuple[int, str]]:
    """What neither the summary nor the ledger of a Compaction tells, each with its message, in order of time."""
    told = "\n".join([block.summary, *(item for _, item in ledger_items(block.ledger))])
    _, lost = _split_stated(told, covered.entries.values())
    found = {(entry.number, entry.text) for entry in lost if (entry.short or entry.text) not in told}
    of_message: dict[int, list[str]] = {}
    for number, item in found:
        of_message.setdefault(number, []).append(item)
    return sorted(
        (number, item) for number, item in found if not any(item in other != item for other in of_message[number])
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
    plain = strip_marks(text)
    evidence = Evidence()
    evidence.add(plain, find_facts(plain, author=PROSE))
    stated: list[LedgerEntry] = []
    missing: list[LedgerEntry] = []
    for entry in entries:
        if entry.text in plain or evidence.states(entry.fact):
            stated.append(entry)
        else:
            is_asked = entry.question is not None and entry.question.text in plain  # nothing is told twice
            missing.append(entry._replace(question=None) if is_asked else entry)
    return stated, missing


def _merge_entries(*groups: Iterable[LedgerEntry]) -> list[LedgerEntry]:
    """Each fact once, as the user says it last, or else the assistant, or else a tool."""
    merged: dict[tuple[str, str], LedgerEntry] = {}
    for entry in chain(*groups):
        _merge_entry(merged, entry)
    return list(merged.values())


def _merge_entry(entries: dict[tuple[str, str], LedgerEntry], entry: LedgerEntry) -> None:
    key = entry.key
    entries[key] = entry.merge(entries[key]) if key in entries else entry


# -- marks


def strip_marks(text: str) -> str:
    return _MARKS.sub("", text)


def count_marks(text: str) -> int:
    return len(_MARKS.findall(text))


def _quote_marks(text: str, sources: Sequence[str]) -> str:
    """The text with another sign for each mark that is the user's own, by the words before it."""
    if MARK.strip() not in text or not sources:
        return text
    said = [normalize_fact_text(source) for source in sources]

    def sign(match: re.Match[str]) -> str:
        before = text[text.rfind("\n", 0, match.start()) + 1 : match.start()].split()[-_WORDS_BEFORE:]
        quoted = normalize_fact_text(" ".join([*before, MARK]))
        return match[0].replace(MARK.strip(), _QUOTED_MARK) if any(quoted in each for each in said) else match[0]

    return _MARKS.sub(sign, text)


def mark_unsupported(text: str, known: Sequence[Evidence], unverified: Sequence[Fact] = ()) -> tuple[str, list[Fact]]:
    """The text with a mark after the first mention of each fact that no `known` evidence supports, and those facts.
    Facts that were `unverified` before are searched for by their words, wherever they are."""
    plain = strip_marks(text)
    unsupported = _find_unsupported(plain, known, unverified)
    lines = classify_lines(plain, author=PROSE)
    ends = set()
    for fact in unsupported:
        fence = lines.fence_at(fact.start)
        ends.add(_mark_position(plain, fact) if fence is None else fence[1])
    for end in sorted(ends, reverse=True):
        is_line_start = end and plain[end - 1] == "\n"
        plain = plain[:end] + (MARK.strip() + "\n" if is_line_start else MARK) + plain[end:]
    return plain, unsupported


def _find_unsupported(plain: str, known: Sequence[Evidence], unverified: Sequence[Fact]) -> list[Fact]:
    """Each fact once. A quotation or a path stands for the facts inside it; facts inside a decision stand for it."""
    found: dict[tuple[str, str], Fact] = {}
    for fact in (*find_facts(plain, author=PROSE), *find_decisions(plain), *_find_again(plain, unverified)):
        is_cut = "…" in plain[max(0, fact.start - 1) : fact.start] + plain[fact.end : fact.end + 1]
        if not fact.is_significant or is_cut or fact.key in found:
            continue
        if not any(evidence.supports(fact) for evidence in known):
            found[fact.key] = fact
    facts = [*found.values(), *(fact for fact in _find_assertions(plain) if _is_reversed(fact, known))]
    outer = [fact for fact in facts if fact.kind in _OUTER_KINDS]
    inner = [fact for fact in facts if fact.kind != "decision" and not any(_is_inside(fact, other) for other in outer)]
    decisions = [fact for fact in facts if fact.kind == "decision" and not any(_is_inside(one, fact) for one in inner)]
    return [*inner, *decisions]


def _find_assertions(plain: str) -> Iterator[Fact]:
    """Sentences that assert something."""
    for start, sentence in sentence_positions(plain):
        if found := assertions_of(sentence):
            words = {word for assertion in found for word in assertion.words}
            yield Fact("decision", sentence, " ".join(sorted(words)), start, start + len(sentence))


def _is_reversed(fact: Fact, known: Sequence[Evidence]) -> bool:
    """Whether of something in it the sources say the opposite, and never the same."""
    return any(_is_opposed(assertion, known) for assertion in assertions_of(fact.text))


def _is_opposed(assertion: Assertion, known: Sequence[Evidence]) -> bool:
    is_opposed = False
    for stance in chain.from_iterable(evidence.stances(assertion) for evidence in known):
        if stance:
            return False
        is_opposed = True
    return is_opposed


def _find_again(plain: str, facts: Iterable[Fact]) -> Iterable[Fact]:
    for fact in facts:
        if match := re.search(rf"(?<!\w){re.escape(fact.text)}(?!\w)", plain):
            yield fact._replace(start=match.start(), end=match.end())


def _is_inside(fact: Fact, other: Fact) -> bool:
    return fact is not other and other.start <= fact.start and fact.end <= other.end and fact.text != other.text


def _mark_position(text: str, fact: Fact) -> int:
    """The first position after a fact that is in no word, path or code span."""
    end = fact_end(text, fact)
    rest = _REST_OF_WORD.match(text, end)
    end = rest.end() if rest else end
    line_start = text.rfind("\n", 0, fact.start) + 1
    if text.count("`", line_start, end) % 2:
        closing = text.find("`", end)
        end = closing + 1 if closing >= 0 else end
    return end


class _ParsedMarks(Struct, frozen=True):
    """A marked summary: the text that is verified, and the facts that are not."""

    verified: str
    unverified: tuple[Fact, ...] = ()


def _parse_marks(summary: str) -> _ParsedMarks:
    if MARK.strip() not in summary:
        return _ParsedMarks(summary)
    plain, positions = _strip_and_locate_marks(summary)
    facts = [*find_facts(plain, author=PROSE), *find_decisions(plain), *_find_assertions(plain)]
    keys = {fact.key for fact in facts if _mark_position(plain, fact) in positions}
    unverified = [fact for fact in facts if fact.key in keys]
    verified, end = "", 0
    for fact in sorted(unverified, key=lambda fact: fact.start):
        verified += plain[end : fact.start] + " … " if fact.start >= end else ""
        end = max(end, fact.end)
    return _ParsedMarks(verified + plain[end:], tuple(unverified))


def _strip_and_locate_marks(summary: str) -> tuple[str, set[int]]:
    """The text without its marks, and where they were in it."""
    plain, positions, end = "", set(), 0
    for match in _MARKS.finditer(summary):
        plain += summary[end : match.start()]
        positions.add(len(plain))
        end = match.end()
    return plain + summary[end:], positions
