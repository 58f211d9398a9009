"""Picking: which of the found documents enter the window with this message: whole, in part, or by a tool, and why."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from recto.chat.blocks import Text
from recto.sources.documents import UNREADABLE, Finding, fenced
from recto.sources.included import FITTING, Included, told
from recto.sources.pick import Pick
from recto.sources.reading import READ
from recto.vault.document import Document
from recto.vault.relevant import relevant, shown
from recto.walk.scale import Scale
from recto.walk.turn import Picked
from recto.window.request import Entry

# Of the unused room: a model that can read for itself gets small documents at once and larger ones through its tool.
SHARE_WITH_TOOLS = 0.20
# What was chosen and not named comes before documents, and must leave them something.
SHARE_OF_SOURCES = 0.25
SHARE_WITHOUT_TOOLS = 0.60
# Tokens of a letter, about, to choose sections by; what is chosen is counted.
PER_LETTER = 0.3
LEAST = 60


@dataclass(frozen=True, slots=True)
class Room:
    """What documents may take."""

    unused: int
    """What the window has left, the message and all that is said included."""
    reads: bool
    """The model can read documents for itself."""

    @property
    def left(self) -> int:
        return int(self.unused * (SHARE_WITH_TOOLS if self.reads else SHARE_WITHOUT_TOOLS))


async def pick_documents(
    scale: Scale, findings: Sequence[Finding], question: str, room: Room
) -> tuple[list[Picked], list[str]]:
    """The documents that go in, and what the user should know about the others."""
    picked: list[Picked] = []
    notes = [finding.problem for finding in findings if finding.problem]
    left = room.left
    for finding in findings:
        if finding.path is None:
            continue
        whole = fenced(finding.path, finding.text)
        tokens = await _tokens(scale, whole)
        if tokens <= left or finding.text == UNREADABLE:
            picked.append(_picked(finding, whole, _because(finding)))
            left -= tokens
        elif room.reads:
            large = f"{finding.path} takes {tokens} tokens, more than documents may"
            notes.append(f"{large}: the model can read it with {READ}")
        elif part := await _relevant(scale, finding, question, left):
            text, of = part
            picked.append(_picked(finding, text, f"{_because(finding)}; {of}"))
            notes.append(f"{finding.path} does not fit whole ({tokens} tokens): the model sees {of}")
            left -= await _tokens(scale, text)
        else:
            notes.append(f"{finding.path} does not fit in the window and was left out")
    return picked, notes


async def pick_sources(scale: Scale, chosen: Sequence[Included], room: int) -> tuple[list[Picked], list[Pick]]:
    """The rules and references that were chosen for the message, whole or by their best section, and what did not
    fit."""
    kept: list[Included] = []
    passed: list[Pick] = []
    weights: list[int] = []
    for each in chosen:
        for version in (each, *([replace(each, part=each.best)] if each.best else ())):
            tokens = await _tokens(scale, told(FITTING, [version]))
            if tokens <= room:
                kept.append(version)
                weights.append(tokens)
                room -= tokens
                break
        else:
            why = f"takes {tokens} tokens, and {room} are left for what is chosen"
            passed.append(replace(each.pick, because=f"{why}; {each.because}"))
    picks = tuple(replace(each.pick, tokens=tokens) for each, tokens in zip(kept, weights, strict=True))
    texts = tuple(each.text for each in kept)
    return ([Picked("sources", told(FITTING, kept), picks, texts)] if kept else []), passed


async def pick_current(scale: Scale, document: Document, room: int) -> Picked | None:
    """The document that the user has open: as much of its beginning as fits."""
    whole = fenced(document.path, document.text)
    tokens = await _tokens(scale, whole)
    text, because = whole, "the document that is open"
    while tokens > room:
        # a tenth less than in proportion: counts do not run evenly through a text
        keep = int(len(document.text) * room / tokens * 0.9) if tokens else 0
        if room < LEAST or keep < LEAST:
            return None
        document = Document(document.path, document.text[:keep])
        text, because = fenced(document.path, document.text + "\n[cut here]"), "the document that is open; cut to fit"
        tokens = await _tokens(scale, text)
    pick = Pick("document", document.path, because, mode="manual", sha256=_digest(text))
    return Picked("documents", text, (pick,))


def _because(finding: Finding) -> str:
    how = "named as" if finding.wikilink.startswith("@") else "linked as"
    return f"{how} {finding.wikilink}" + (", that part of it" if finding.part is not None else "")


def _picked(finding: Finding, text: str, because: str) -> Picked:
    pick = Pick("document", finding.path or finding.wikilink, because, mode="manual", sha256=_digest(text))
    return Picked("documents", text, (pick,))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


async def _relevant(scale: Scale, finding: Finding, question: str, room: int) -> tuple[str, str] | None:
    """The sections that bear on the question, as many as fit, and what they are of the whole."""
    document = Document(finding.path or "", finding.text)
    aim = room
    for _ in range(3):
        chosen = relevant(document, question, room=aim, count=lambda text: int(len(text) * PER_LETTER) + 1)
        if not chosen:
            return None
        text = fenced(document.path, shown(document, chosen))
        tokens = await _tokens(scale, text)
        if tokens <= room:
            return text, f"{len(chosen)} relevant part{'s' * (len(chosen) > 1)} of it"
        aim = int(aim * room / tokens * 0.95)
    return None


async def _tokens(scale: Scale, text: str) -> int:
    weighed = await scale.weigh([Entry("user", (Text(text),))])
    return weighed[0].count.tokens
