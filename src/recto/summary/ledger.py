"""Ledger: what a summary lost, quoted in lines by message number: `#57: the budget is 12,000 € · never on weekends`.

An item is a part of its message, word for word on one line; only its end may be cut. What it answers stands before it:
`#2 assistant: How large is the hall? → #3: 640 m²`. A value that was corrected is left out. Which entries go into a
ledger is decided in `ledger_selection`.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from recto.summary.corrections import CORRECTION_TERMS, corrects, find_corrections
from recto.summary.decisions import content_terms, find_decisions
from recto.summary.facts import Fact, find_facts
from recto.summary.machine_output import PROSE, is_row
from recto.summary.pasted_dialogue import is_labelled
from recto.summary.people import introductions, is_introduction
from recto.summary.prohibitions import has_prohibition
from recto.summary.quotation import SEPARATOR as ITEM_SEPARATOR
from recto.summary.sentences import terms
from recto.summary.settled import lifted_prohibitions, outbid_offers, tells_asked
from recto.summary.source_lines import ScoredSentence
from recto.summary.statements import asks_politely, leaves_open, says_little
from recto.summary.term_weights import CALENDAR, TermWeights
from recto.summary.worth import is_worth_telling, needs_context, reports
from recto.text import text_cache

_LINE = re.compile(r"#(\d+)(?: (assistant|tool))?: (.+)")
ANSWER_SIGN = " → "
_ANSWER_MARK = re.compile(r" → #\d")
_ANSWERED = re.compile(r"#(\d+)(?: (assistant|tool))?: (.+?) → (#\d+: .+)")
_PLACE = re.compile(r"(assistant|tool): (.+)")
# As ledgers were written before; an item had no semicolon.
_OLD_LINE, _OLD_SEPARATOR = re.compile(r"#(\d+) (.+)"), "; "
# A decision binds later turns; a row was pasted with many like it.
_KIND_RANKS = {
    "decision": 3.0,
    "question": 3.0,
    "request": 3.0,
    "command": 2.5,
    "name": 1.0,
    "quote": 1.0,
    "statement": 0.0,
    "row": -1.0,
}
_BINDING_RANK, _USUAL_RANK = 3.0, 2.0
# What the user forbids comes before what he asks, and before answers with their questions.
_PROHIBITION_RANK = 1.0
_ROLE_RANKS = {"user": 1, "assistant": 0, "tool": -1}
# An item of the former ledger has won its place before, and yields only to clearly better ones.
_LISTED_WEIGHT = 1.2
# The share of the room that one message may take before all others have had theirs; what binds may take more.
_MESSAGE_SHARE, _BINDING_SHARE = 0.25, 0.4
_MAX_DISTANCE = 2
# A name that is said so often is a topic of the conversation; a full name is given to be remembered.
_OFTEN = 4
FIGURES = ("number", "date", "time")
VALUE_KINDS = (*FIGURES, "version")
CORRECTABLE = (*VALUE_KINDS, "name")
"""What weighs more in a correction."""
_MAX_ANSWER, _MAX_ANSWER_WORDS = 80, 3
UNLISTED = 3
"""By how many ranks that is lowered which no ledger lists."""
# Of an assistant, these are listed as they are.
_SPECIFIC = ("path", "url", "command", "error", "version")


class AskedQuestion(NamedTuple):
    """A question that a short answer needs to be understood, or what a bare change changes; and the number of its
    message."""

    number: int
    text: str
    role: str = "assistant"


class LedgerEntry(Struct, frozen=True, gc=False):
    """A fact that may go into the ledger."""

    fact: Fact
    text: str
    """The item that quotes it. Several facts may share one."""
    number: int
    """The number of the message that it quotes."""
    mentions: int = 1
    role: str = "assistant"
    is_listed: bool = False
    """Whether it is in the former ledger."""
    question: AskedQuestion | None = None
    is_correction: bool = False
    short: str = ""
    """The part of the item that is enough where room is scarce."""
    lowered: int = 0
    """By how many ranks: it only comes up in a question or in a long text, or was pasted."""
    is_settled: bool = False
    """Whether the user asked it and got it: it is left out."""

    @property
    def key(self) -> tuple[str, str]:
        """The same for all mentions. A number is another fact where it tells something else."""
        kind, normal = self.fact.key
        return (kind, f"{normal} {' '.join(sorted(topic_terms(self.text)))}") if kind in FIGURES else (kind, normal)

    def merge(self, other: "LedgerEntry") -> "LedgerEntry":
        """The same fact said twice: in a wording that tells it, the user's before others', the latest of those."""
        is_same = (self.number, self.text) == (other.number, other.text)
        newer = max(self, other, key=lambda entry: (not entry.is_settled or is_same, -entry.lowered, *entry.said))
        return replace(
            newer,
            is_settled=is_same and (self.is_settled or other.is_settled),
            mentions=self.mentions + other.mentions,
            is_listed=self.is_listed or other.is_listed,
        )

    @property
    def said(self) -> tuple[int, int]:
        """How much who says it weighs, and when."""
        return _ROLE_RANKS.get(self.role, 0), self.number

    @property
    def place(self) -> str:
        """The item, and who says it if that is not the user."""
        return self.text if self.role == "user" else f"{self.role}: {self.text}"

    @property
    def rank(self) -> float:
        """Entries of a higher rank go first, whatever they cost."""
        return self.weight + _ROLE_RANKS.get(self.role, 0)

    @property
    def weight(self) -> float:
        """The rank without who says it."""
        kind = _KIND_RANKS.get(self.fact.kind, _USUAL_RANK)
        if self.fact.kind == "identifier" and not any(char.isdigit() for char in self.fact.text):
            kind -= 1
        if self.fact.kind == "name":
            is_full = " " in self.fact.text or is_introduction(self.fact.text)
            kind += is_full or self.mentions >= _OFTEN
        is_own = self.role == "user" and self.lowered <= 0  # and not pasted
        if self.fact.kind == "decision" and is_own and has_prohibition(self.text):
            kind += _PROHIBITION_RANK
        return kind + self.is_correction + bool(self.question) - self.lowered

    @property
    def lasts(self) -> bool:
        """Whether it outlives the request that it came up in."""
        return self.fact.kind in _LASTING and not self.text.endswith(("?", "？"))

    @property
    def is_open(self) -> bool:
        """Whether somebody waits for it."""
        return self.fact.kind in ("question", "request")

    @property
    def share(self) -> float:
        """The share of the room that its message may take while others wait."""
        return _BINDING_SHARE if _KIND_RANKS.get(self.fact.kind) == _BINDING_RANK else _MESSAGE_SHARE

    def score(self, newest: int) -> float:
        recency = 0.8 + 0.4 * min(1.0, self.number / max(1, newest))
        frequency = 1 + 0.25 * math.log2(self.mentions)
        return recency * frequency * (_LISTED_WEIGHT if self.is_listed else 1)


# -- lines


def ledger_items(lines: Iterable[str]) -> list[tuple[int, str]]:
    """The items of a ledger's lines, each with the number of its message."""
    return [(number, item) for number, _, item in ledger_quotations(lines)]


def ledger_rows(lines: Iterable[str]) -> Iterator[tuple[int, str, str]]:
    """As `ledger_quotations`, for people to read: an answer has its question before it, in one row."""
    for line in lines:
        match = _ANSWERED.fullmatch(line)
        for at, (number, role, item) in enumerate(ledger_quotations([match[4] if match else line])):
            yield number, role, f"{match[3]}{ANSWER_SIGN}{item}" if match and not at else item


def has_marks_of_lines(item: str) -> bool:
    """Whether an item would be read as several."""
    return _ANSWER_MARK.search(item) is not None


def ledger_quotations(lines: Iterable[str]) -> Iterator[tuple[int, str, str]]:
    """The number of a message, who says it, and an item of it."""
    for line in lines:
        if match := _ANSWERED.fullmatch(line):
            yield int(match[1]), match[2] or "user", match[3]
            yield from ledger_quotations([match[4]])
        elif match := _LINE.fullmatch(line):
            for item in match[3].split(ITEM_SEPARATOR):
                yield int(match[1]), match[2] or "user", item
        elif match := _OLD_LINE.fullmatch(line):
            for item in match[2].split(_OLD_SEPARATOR):
                yield int(match[1]), "assistant", item


def parse_ledger(lines: Iterable[str]) -> list[LedgerEntry]:
    """The facts in a ledger's lines."""
    plain: list[str] = []
    found: list[LedgerEntry] = []
    for line in lines:
        if match := _ANSWERED.fullmatch(line):
            asked = AskedQuestion(int(match[1]), match[3], match[2] or "user")
            for at, (number, role, item) in enumerate(ledger_quotations([match[4]])):
                entries = parse_item(item, number, role)
                found += entries if at else [replace(entry, question=asked) for entry in entries]
        else:
            plain.append(line)
    return [*found, *_parse_plain(plain)]


def _parse_plain(lines: Iterable[str]) -> list[LedgerEntry]:
    """Lines of which one may ask what the next answers, as ledgers were written before."""
    found: list[LedgerEntry] = []
    asked: AskedQuestion | None = None
    said: AskedQuestion | None = None
    for number, role, item in ledger_quotations(lines):
        if role == "user" and said and said.number == number - 1 and says_little(item):
            asked, said = asked or said, None
        elif role == "assistant":
            said = AskedQuestion(number, item)
        is_answer = asked is not None and asked.number < number <= asked.number + _MAX_DISTANCE
        if asked and not (is_answer and role == "user" and len(item) <= _MAX_ANSWER):
            found += parse_item(asked.text, asked.number)
            asked = None
        if item.endswith(("?", "？")) and role == "assistant":
            asked = AskedQuestion(number, item)
            continue
        found += [replace(entry, question=asked) for entry in parse_item(item, number, role)]
        asked = None
    return [*found, *parse_item(asked.text, asked.number)] if asked else found


def parse_item(item: str, number: int, role: str = "assistant") -> list[LedgerEntry]:
    """The facts in an item."""
    found = _item_facts(item, role)
    return [LedgerEntry(fact, item, number, role=role, is_listed=True, lowered=lowered) for fact, lowered in found]


@text_cache(8192)  # every compaction reads the ledger and the places of the one before
def _item_facts(item: str, role: str) -> tuple[tuple[Fact, int], ...]:
    """Each with the number of ranks by which it is lowered."""
    if is_row(item):
        return ((Fact("row", item, item.lower(), 0, len(item)), 0),)
    facts = [fact for fact in find_facts(item, author=PROSE) if fact.is_significant]
    asked = _asked(item) if role == "user" else []
    rest = "statement" if len(item.split()) > _MAX_ANSWER_WORDS else "quote"
    facts += introductions(item) if role == "user" else ()
    found = [*find_decisions(item), *asked, *facts] or [Fact(rest, item, item.lower(), 0, len(item))]
    lowered = int(item.endswith(("?", "？")) and not asked) + 2 * is_labelled(item)
    raised = role == "user" and corrects(item)  # as when it was said

    def lowered_by(fact: Fact) -> int:
        is_known = role == "assistant" and not is_reported(fact.kind, item)
        return lowered - (raised and fact.kind in CORRECTABLE) + UNLISTED * is_known

    return tuple((fact, lowered_by(fact)) for fact in found)


def is_reported(kind: str, sentence: str) -> bool:
    """Whether an assistant's fact can be looked up, or is one that it reports rather than knows."""
    return kind in _SPECIFIC or reports(sentence)


def _asked(item: str) -> list[Fact]:
    """What the user asks in an item of a former ledger, which is still open."""
    is_open = item.endswith(("?", "？")) or leaves_open(item)
    kind = "question" if is_open else "request" if asks_politely(item) else ""
    return [Fact(kind, item, item.lower(), 0, len(item))] if kind else []


def parse_place(place: str, number: int) -> list[LedgerEntry]:
    """The facts in an item that says who said it."""
    match = _PLACE.fullmatch(place)
    role, item = (match[1], match[2]) if match else ("user", place)
    # a question that a summary told may be settled since; that something is open hardly
    is_open = leaves_open(item)
    found = [entry for entry in parse_item(item, number, role) if entry.fact.kind != "question" or is_open]
    # what stood in a summary for want of better lines is not worth one of the ledger
    is_worth = role == "tool" or (is_worth_telling(item, is_assistant=role == "assistant") and not needs_context(item))
    return found if is_worth else [entry for entry in found if entry.lasts]


# -- corrections

_LASTING = ("decision", "path", "url", "command", "error", "version", "identifier")
_VALUES = ("number", "date", "time", "name", "path", "url", "version", "identifier")
_WEIGHTS = TermWeights()
Place = tuple[int, str]  # the number of a message, and an item of it


def mark_corrections(entries: Iterable[LedgerEntry]) -> list[LedgerEntry]:
    """The entries without those that others correct and what is settled, and with these others marked."""
    ordered = sorted(entries, key=lambda entry: (entry.number, entry.fact.start))
    settled = {(entry.number, entry.text) for entry in ordered if entry.is_settled} | _answered(ordered)
    corrections = _corrections({(entry.number, entry.text): entry.role for entry in ordered})
    said = {(entry.number, entry.text): entry.role for entry in ordered}
    outdated = lifted_prohibitions(place for place, role in said.items() if role == "user")
    outdated |= outbid_offers([place for place, role in said.items() if role != "tool"])
    correcting = {
        later: AskedQuestion(*earlier, said[earlier])
        if said[later] == "user" and _is_bare(earlier[1], later[1])
        else None
        for earlier, later in corrections.items()
    }
    return [
        replace(entry, is_correction=True, question=entry.question or correcting[place])
        if (place := (entry.number, entry.text)) in correcting
        else entry
        for entry in ordered
        if (entry.number, entry.text) not in corrections
        and (entry.number, entry.text) not in outdated
        and not entry.is_settled
        and (entry.lasts or (entry.number, entry.text) not in settled)
    ]


def _is_bare(earlier: str, later: str) -> bool:
    """Whether a change does not say of what: "make it 90"."""
    return topic_terms(earlier).isdisjoint(topic_terms(later))


def _answered(ordered: Sequence[LedgerEntry]) -> set[Place]:
    """Questions of which a later item states what they ask."""
    asked = {(entry.number, entry.text) for entry in ordered if entry.fact.kind == "question"}
    stated = {(entry.number, entry.text, entry.role) for entry in ordered if not entry.is_open}
    contents = [one for one in stated if "?" not in one[1] and one[2] != "tool"] if asked else []
    return {
        (number, text)
        for number, text in asked
        if any(
            later > number + 1 and (role == "user" or "?" in text) and tells_asked(text, stated)
            for later, stated, role in contents
        )
    }


def _corrections(places: Mapping[Place, str]) -> dict[Place, Place]:
    """For each corrected item the latest one that corrects it, of items in order with who says them."""
    texts = list(places)
    pool = [
        ScoredSentence(place[0], at, place[1], terms(place[1]), 0.0)
        for at, place in enumerate(texts)
        if places[place] != "tool"
    ]
    found = find_corrections(pool, _WEIGHTS, {place[0]: role for place, role in places.items()})
    pairs = ((texts[at], texts[later.position]) for (_, at), later in found.items())
    return {one: other for one, other in pairs if other[1] not in one[1] and _has_other_value(one[1], other[1])}


def _has_other_value(earlier: str, later: str) -> bool:
    """Whether the later has a value that the earlier has not, of the same kind."""
    before, after = _values(earlier), _values(later)
    return not {kind for kind, _ in before}.isdisjoint(kind for kind, _ in after - before)


def _values(text: str) -> set[tuple[str, str]]:
    return {fact.key for fact in find_facts(text, author=PROSE) if fact.kind in _VALUES}


@text_cache(4096)
def topic_terms(text: str) -> frozenset[str]:
    """Its content without figures, dates and words of correction."""
    return frozenset(filter(str.isalpha, content_terms(text) - CORRECTION_TERMS - CALENDAR))
