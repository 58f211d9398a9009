"""Check: a summary against what it stands for: what it kept, what it lost, what nobody said. Pure.

What nobody said is marked in the text, right behind it. What was lost goes into the ledger, as far as there is room.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from recto.chat.blocks import Compaction, File, Text, ToolCall, ToolResult
from recto.chat.message import Message
from recto.summary import ledger
from recto.summary.bindings import answers, decisions
from recto.summary.facts import Fact, facts
from recto.summary.figures import LETTER
from recto.summary.ground import Ground
from recto.summary.layout import MACHINE, PROSE, layout
from recto.summary.ledger import Lead

MARK = " [unverified]"
_MARKS = re.compile(r"^\[unverified\]\n| ?\[unverified\]", re.MULTILINE)
_WORD_GOES_ON = re.compile(rf"(?:['’.@:/\\-]?[{LETTER}])*+")
_OUTER = ("quote", "command", "url", "path", "error")
# Of one text that is read for facts; its words are all taken in, however long it is.
_READ = 400_000
# Facts of one kind that a single output of a machine may put forward, and leads that are held at once.
_OF_ONE_KIND, _MOST_LEADS, _MOST_PLACES = 8, 20_000, 400


@dataclass(slots=True)
class Covered:
    """What the covered messages say: all of it as ground, and the facts that may be missed."""

    ground: Ground = field(default_factory=Ground)
    leads: dict[tuple[str, str], Lead] = field(default_factory=dict)
    dropped: int = 0
    """Leads that were too many to hold."""

    def add(self, messages: Iterable[Message]) -> None:
        for message in messages:
            for text, by in _texts(message):
                self._read(text, by, message)
        if len(self.leads) > _MOST_LEADS:
            self._thin_out()

    def _read(self, text: str, by: str, message: Message) -> None:
        found = facts(text if len(text) <= _READ else f"{text[: _READ // 2]}\n{text[-_READ // 2 :]}", by=by)
        self.ground.add(text, found)
        if by != MACHINE and message.role in ("user", "assistant"):
            found = [*found, *decisions(text), *answers(text, message.role)]
        of_kind: dict[str, int] = {}
        for fact in found:
            if fact.counts and (by != MACHINE or _takes(of_kind, fact)):
                item = ledger.item(fact, text)
                # a bare figure that nothing is said of tells a reader nothing
                if not item.isdigit():
                    self._put(Lead(fact, item, message.said, by=message.role))

    def _put(self, lead: Lead) -> None:
        key = lead.fact.key
        self.leads[key] = lead.again(self.leads[key]) if key in self.leads else lead

    def _thin_out(self) -> None:
        newest = max(lead.said for lead in self.leads.values())
        best = sorted(self.leads.values(), key=lambda lead: -lead.worth(newest))[: _MOST_LEADS // 2]
        self.dropped += len(self.leads) - len(best)
        self.leads = {lead.fact.key: lead for lead in best}


def _takes(of_kind: dict[str, int], fact: Fact) -> bool:
    of_kind[fact.kind] = of_kind.get(fact.kind, 0) + 1
    return of_kind[fact.kind] <= _OF_ONE_KIND


def _texts(message: Message) -> list[tuple[str, str]]:
    """The texts of a message, and which of them a machine wrote."""
    found: list[tuple[str, str]] = []
    for block in message.blocks:
        match block:
            case Text():
                found.append((block.text, MACHINE if message.role == "tool" else ""))
            case ToolCall():
                found.append((f"{block.name} {block.arguments}", MACHINE))
            case ToolResult() | File():
                found.append((f"{block.name}\n{block.text}", MACHINE))
    return found


@dataclass(frozen=True, slots=True)
class Checked:
    """A summary with its marks, and what can still be put beside it."""

    text: str
    kept: tuple[Lead, ...]
    lost: tuple[Lead, ...]
    invented: int
    facts: int
    """How many there are in all that is covered, as far as is known."""

    def counts(self, lines: Sequence[str]) -> dict[str, int]:
        """Kept in the summary, in the ledger besides, only in the archive, and what nobody said."""
        in_ledger = sum(line.count(ledger.BETWEEN) + 1 for line in lines)
        total, kept = max(self.facts, len(self.kept) + in_ledger), len(self.kept)
        archive = total - kept - in_ledger
        return {"facts": total, "kept": kept, "ledger": in_ledger, "archive": archive, "invented": self.invented}

    @property
    def places(self) -> dict[str, int]:
        """Where the facts were said that the summary tells; the latest, where they are many."""
        latest = sorted(self.kept, key=lambda lead: lead.said)[-_MOST_PLACES:]
        return {lead.item: lead.said for lead in latest}


@dataclass(frozen=True, slots=True)
class Former:
    """What stood for the conversation until now."""

    summary: str = ""
    ledger: tuple[str, ...] = ()
    places: dict[str, int] = field(default_factory=dict)
    facts: int | None = None
    """How many there were; None when nobody has counted them."""

    @property
    def leads(self) -> list[Lead]:
        """What its ledger holds, and what its summary tells."""
        return [*ledger.read(self.ledger), *(ledger.held(item, said) for item, said in self.places.items())]


def former_of(block: Compaction | None) -> Former:
    return Former(block.summary, block.ledger, block.places, block.checks.get("facts")) if block else Former()


def check(text: str, covered: Covered, former: Former, beside: Iterable[str] = (), *, marks: bool = True) -> Checked:
    """`beside` is what else may be told: the user's wish, messages still sent. Without `marks` the text is trusted: it
    is made of sentences of the originals."""
    before = doubted(former.summary)
    if marks:
        known = _ground([before.sure, *former.ledger, *former.places, *beside])
        text, invented = marked(text, (covered.ground, known), before.facts)
    else:
        invented = len(_MARKS.findall(text))
    plain = _MARKS.sub("", text)
    told = Ground()
    told.add(plain, facts(plain, by=PROSE))
    leads = _together(former.leads, covered.leads.values())
    kept = [lead for lead in leads if told.tells(lead.fact)]
    lost = [lead for lead in leads if not told.tells(lead.fact)]
    old = len(former.leads)
    new = len(leads) - old + covered.dropped
    return Checked(text, tuple(kept), tuple(lost), invented, max(old, former.facts or 0) + new)


def _ground(texts: Iterable[str]) -> Ground:
    ground = Ground()
    for text in texts:
        ground.add(text)
    return ground


def _together(*known: Iterable[Lead]) -> list[Lead]:
    """Each fact once, with the number of the message that said it last."""
    found: dict[tuple[str, str], Lead] = {}
    for lead in chain(*known):
        key = lead.fact.key
        found[key] = lead.again(found[key]) if key in found else lead
    return list(found.values())


def marked(text: str, grounds: Sequence[Ground], before: Iterable[Fact] = ()) -> tuple[str, int]:
    """The text with a mark behind the first mention of each fact that none of the grounds holds. What was marked
    `before` is looked for by its words, wherever it stands."""
    plain = _MARKS.sub("", text)
    strange = _invented(plain, grounds, before)
    lines = layout(plain, by=PROSE)
    places = []
    for fact in strange:
        fence = lines.fence_around(fact.start)
        places.append(_behind(plain, fact) if fence is None else fence[1])
    for place in sorted(set(places), reverse=True):
        at_line = place and plain[place - 1] == "\n"
        mark = MARK.strip() + "\n" if at_line else MARK
        plain = plain[:place] + mark + plain[place:]
    return plain, len(strange)


def _invented(plain: str, grounds: Sequence[Ground], before: Iterable[Fact]) -> list[Fact]:
    """Each once, the smaller one where a sentence holds another, the larger where a quotation does."""
    found: dict[tuple[str, str], Fact] = {}
    for fact in (*facts(plain, by=PROSE), *decisions(plain), *_again(plain, before)):
        is_cut = "…" in plain[max(0, fact.start - 1) : fact.start] + plain[fact.end : fact.end + 1]
        if fact.counts and not is_cut and fact.key not in found and not any(ground.holds(fact) for ground in grounds):
            found[fact.key] = fact
    every = list(found.values())
    outer = [fact for fact in every if fact.kind in _OUTER]
    inner = [fact for fact in every if fact.kind != "decision" and not any(_is_in(fact, other) for other in outer)]
    rest = [fact for fact in every if fact.kind == "decision" and not any(_is_in(other, fact) for other in inner)]
    return [*inner, *rest]


def _again(plain: str, before: Iterable[Fact]) -> Iterable[Fact]:
    for fact in before:
        if match := re.search(rf"(?<!\w){re.escape(fact.text)}(?!\w)", plain):
            yield replace(fact, start=match.start(), end=match.end())


def _is_in(fact: Fact, other: Fact) -> bool:
    return fact is not other and other.start <= fact.start and fact.end <= other.end and fact.text != other.text


def _behind(text: str, fact: Fact) -> int:
    """The first place behind a fact that is in no word, path or span of code."""
    noun = ledger.noun_behind(text, fact)
    end = fact.end + (1 + len(noun) if noun else 0)
    going_on = _WORD_GOES_ON.match(text, end)
    end = going_on.end() if going_on else end
    line = text.rfind("\n", 0, fact.start) + 1
    if text.count("`", line, end) % 2:
        closing = text.find("`", end)
        end = closing + 1 if closing >= 0 else end
    return end


@dataclass(frozen=True, slots=True)
class Doubted:
    """A summary taken apart: what it says for sure, and the facts that were marked in it."""

    sure: str
    facts: tuple[Fact, ...] = ()


def doubted(summary: str) -> Doubted:
    if MARK.strip() not in summary:
        return Doubted(summary)
    plain, ends = _unmarked(summary)
    found = [*facts(plain, by=PROSE), *decisions(plain)]
    keys = {fact.key for fact in found if _behind(plain, fact) in ends}
    bad = [fact for fact in found if fact.key in keys]
    sure, place = "", 0
    for fact in sorted(bad, key=lambda fact: fact.start):
        sure += plain[place : fact.start] + " … " if fact.start >= place else ""
        place = max(place, fact.end)
    return Doubted(sure + plain[place:], tuple(bad))


def _unmarked(summary: str) -> tuple[str, set[int]]:
    """The text without its marks, and where they stood in it."""
    plain, ends, place = "", set(), 0
    for match in _MARKS.finditer(summary):
        plain += summary[place : match.start()]
        ends.add(len(plain))
        place = match.end()
    return plain + summary[place:], ends
