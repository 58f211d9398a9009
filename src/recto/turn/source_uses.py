"""The sources that a request included, recorded with it, and those that its reply shows signs of using."""

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from recto.sources.source import SENT_KINDS
from recto.sources.use_detection import SentSource, UseEvidence, detect_uses
from recto.store.source_uses import SourceUse
from recto.store.store import Store
from recto.turn.planned_request import PlannedRequest
from recto.turn.session import LastTools, last_tools

# How many characters of the conversation are searched for other origins of a reply.
LOOKED_AT = 20_000
# Texts of this length take less than a millisecond to compare.
SHORT = 4_000


def record_sources(store: Store, request: str, planned: PlannedRequest, known: frozenset[str]) -> frozenset[str]:
    """Stores the texts that were sent, by their hash, and a row for each source; `known` are hashes stored before."""
    texts = [planned.preamble.instructed.prompt, *(each.text for each in _sent(planned))]
    fresh = {text for text in texts if hashlib.sha256(text.encode()).hexdigest() not in known}
    if fresh:
        known |= frozenset(store.blobs.put_all([text.encode() for text in sorted(fresh)]))
    picks = [pick for section in planned.window.sections for pick in section.picks if pick.kind in SENT_KINDS]
    if picks:
        rows = [SourceUse(pick.source, pick.mode, pick.tokens, pick.score) for pick in picks]
        store.source_uses.note(request, rows)
    return known


def tools_of(planned: PlannedRequest) -> LastTools:
    block = planned.loaded.view.compaction
    sent = (pick for section, pick in planned.preamble.picks if section == "tools")
    return last_tools(block.compaction_number if block else None, sent, planned.context.stable.passed)


def _sent(planned: PlannedRequest) -> Iterator[SentSource]:
    instructed = planned.preamble.instructed
    for each in (*instructed.rules, *instructed.memory, *instructed.references):
        yield SentSource(each.id, each.text)
    for tool, _ in planned.preamble.tools:
        yield SentSource(tool.id, tool.text, tool.name)
    for item, _ in planned.current.inserts:
        for pick, text in zip(item.picks, item.texts, strict=False):
            yield SentSource(pick.source, text)


class ReplyEvidence(Struct, frozen=True):
    reply: str
    given: tuple[SentSource, ...]
    called: frozenset[str]
    known: str
    """Other text that the reply may draw on: the conversation, documents, tool results."""

    @property
    def is_short(self) -> bool:
        """Comparing takes less time than starting a thread. Tools are not compared."""
        sizes = [len(each.text) for each in self.given if each.id.kind != "tool"]
        return not sizes or len(self.reply) + len(self.known) + sum(sizes) < SHORT

    @property
    def uses(self) -> list[UseEvidence]:
        return detect_uses(self.reply, self.called, self.given, self.known)


def reply_evidence(planned: PlannedRequest, reply: str) -> ReplyEvidence | None:
    """The evidence; None if no source was sent, as in most chats."""
    if not (given := tuple(_sent(planned))):
        return None
    view = planned.loaded.view
    said, left = list[str](), LOOKED_AT
    for message in reversed((*view.still_sent, *view.history)):
        # not earlier replies: they may have used the same source
        if message.role == "user" and left > 0:
            said.insert(0, message.text)
            left -= len(message.text)
    brought = [item.text for item, _ in planned.current.inserts if not item.texts]
    gave = [result.text for message in view.rounds for result in message.results]
    known = "\n".join((*said, *gave, *brought, planned.current.message.text))[-LOOKED_AT:]
    called = frozenset(call.name for message in view.rounds for call in message.calls)
    return ReplyEvidence(reply, given, called, known)


def told_uses(uses: Sequence[UseEvidence]) -> dict[str, Any]:
    used = [asdict(use.id) | {"sign": use.sign, "detail": use.detail} for use in uses if use.sign]
    return {"used": used} if used else {}
