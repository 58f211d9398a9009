"""Check: a summary against what it stands for: what it kept, what it lost, what nobody said. Pure.

What nobody said is marked in the text, right behind it. What was lost goes into the ledger, as far as there is room.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from recto.chat.blocks import Compaction, File, Text, ToolCall, ToolResult
from recto.chat.message import Message
from recto.summary import ledger
from recto.summary.bindings import answers, decisions
from recto.summary.facts import Fact, facts
from recto.summary.ground import Ground
from recto.summary.items import item
from recto.summary.layout import MACHINE, PROSE
from recto.summary.ledger import Lead
from recto.summary.marks import Known, doubted, marked, marks_in, unmarked
from recto.summary.sentences import placed
from recto.summary.stances import content
from recto.summary.turned import KIND, Voices

# Of one text that is read for facts; its words are all taken in, however long it is.
_READ = 400_000
# Facts of one kind that a single output of a machine may put forward, and leads that are held at once.
_OF_ONE_KIND, _MOST_LEADS, _MOST_PLACES = 8, 20_000, 400


@dataclass(slots=True)
class Covered:
    """What the covered messages say: all of it as ground, and the facts that may be missed."""

    ground: Ground = field(default_factory=Ground)
    voices: Voices = field(default_factory=Voices)
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
        self.voices.add(text, said=message.said, refutes=by != MACHINE)
        if by != MACHINE and message.role in ("user", "assistant"):
            found = [*found, *decisions(text), *answers(text, message.role)]
        of_kind: dict[str, int] = {}
        for fact in found:
            if fact.counts and (by != MACHINE or _takes(of_kind, fact)):
                said = item(fact, text)
                # a bare figure that nothing is said of tells a reader nothing
                if not said.isdigit():
                    self._put(Lead(fact, said, message.said, by=message.role))

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
    wrong: list[Fact] = []
    invented = marks_in(text)
    if marks:
        text, strange = marked(text, _known(covered, former, before.sure, [*beside]), before.facts)
        invented, wrong = len(strange), [fact for fact in strange if fact.kind == KIND]
    told = _told(text, wrong)
    leads = _together(former.leads, covered.leads.values())
    kept = [lead for lead in leads if told.tells(lead.fact)]
    lost = [_missed(lead, wrong) for lead in leads if not told.tells(lead.fact)]
    old = len(former.leads)
    new = len(leads) - old + covered.dropped
    return Checked(text, tuple(kept), tuple(lost), invented, max(old, former.facts or 0) + new)


def _missed(lead: Lead, wrong: Sequence[Fact]) -> Lead:
    if lead.fact.kind != "decision" or not wrong:
        return lead
    words = content(lead.fact.text)
    return replace(lead, is_turned=any(words.issuperset(fact.normal[1:].split()) for fact in wrong))


def recounted(text: str, block: Compaction) -> dict[str, int]:
    """The counts of a Compaction whose summary the user has written anew: what of the facts that are known the text
    tells now, and what its ledger holds besides."""
    former, told = former_of(block), _told(text, ())
    leads = _together(former.leads)
    kept = {lead.fact.key for lead in leads if told.tells(lead.fact)}
    beside = {lead.fact.key for lead in ledger.read(former.ledger)} - kept
    total = max(former.facts or 0, len(leads))
    archive = total - len(kept) - len(beside)
    counts = {"facts": total, "kept": len(kept), "ledger": len(beside), "archive": archive, "invented": marks_in(text)}
    return block.checks | counts


def _known(covered: Covered, former: Former, sure: str, beside: Sequence[str]) -> Known:
    ground, voices = Ground(), Voices()
    for text in (sure, *former.ledger, *former.places, *beside):
        ground.add(text)
    for text in (sure, *(lead.item for lead in former.leads)):
        voices.add(text, refutes=True)
    for text in beside:
        voices.add(text)
    return Known((covered.ground, ground), voices.with_others(covered.voices))


def _told(text: str, wrong: Sequence[Fact]) -> Ground:
    """What a summary says; a decision that it turns round it does not tell."""
    plain = unmarked(text)
    for start, sentence in reversed([*placed(plain)] if wrong else []):
        if any(start <= fact.start < start + len(sentence) for fact in wrong):
            plain = plain[:start] + plain[start + len(sentence) :]
    ground = Ground()
    ground.add(plain, facts(plain, by=PROSE))
    return ground


def _together(*known: Iterable[Lead]) -> list[Lead]:
    """Each fact once, with the number of the message that said it last."""
    found: dict[tuple[str, str], Lead] = {}
    for lead in chain(*known):
        key = lead.fact.key
        found[key] = lead.again(found[key]) if key in found else lead
    return list(found.values())
