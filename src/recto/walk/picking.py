"""Picking: which of the found documents enter the window with this message, whole or cut, and why."""

import hashlib
from collections.abc import Sequence

from recto.chat.blocks import Text
from recto.sources.documents import Finding, fenced
from recto.sources.pick import Pick
from recto.vault.vault import Document
from recto.walk.scale import Scale
from recto.walk.turn import Picked
from recto.window.request import Entry

# A model that can read for itself gets small documents at once and larger ones through its tool.
SHARE_WITH_TOOLS = 0.20
SHARE_WITHOUT_TOOLS = 0.60


async def pick_documents(scale: Scale, findings: Sequence[Finding], room: int) -> tuple[list[Picked], list[str]]:
    """The documents that go in, and what the user should know about the others."""
    picked: list[Picked] = []
    notes = [finding.problem for finding in findings if finding.problem]
    left = int(room * (SHARE_WITH_TOOLS if scale.model.tools else SHARE_WITHOUT_TOOLS))
    for finding in findings:
        if finding.document is None:
            continue
        whole = fenced(finding.document, finding.document.text)
        tokens = await _tokens(scale, whole)
        if tokens <= left:
            picked.append(_picked(finding.document, whole, f"linked as {finding.wikilink}"))
            left -= tokens
        elif scale.model.tools:
            notes.append(f"{finding.document.path} is large ({tokens} tokens): the model can read it with a tool")
        elif cut := _cut(finding.document, left, tokens):
            picked.append(_picked(finding.document, cut, f"linked as {finding.wikilink}; cut to fit"))
            notes.append(f"{finding.document.path} does not fit whole: the model sees its beginning")
            left = 0
        else:
            notes.append(f"{finding.document.path} does not fit in the window and was left out")
    return picked, notes


def _picked(document: Document, text: str, because: str) -> Picked:
    digest = hashlib.sha256(text.encode()).hexdigest()
    pick = Pick("document", document.path, because, mode="manual", sha256=digest)
    return Picked("documents", text, (pick,))


def _cut(document: Document, room: int, tokens: int) -> str | None:
    """The beginning, in proportion to the room and a tenth less: counts do not run evenly through a text."""
    keep = int(len(document.text) * room / tokens * 0.9)
    return fenced(document, document.text[:keep] + "\n[cut here]") if keep > 200 else None


async def _tokens(scale: Scale, text: str) -> int:
    weighed = await scale.weigh([Entry("user", (Text(text),))])
    return weighed[0].count.tokens
