"""The sources that a request included, recorded with it, and those that its reply shows signs of using."""

import hashlib
import logging
from collections.abc import Iterator

from recto.sources.source import SENT_KINDS
from recto.sources.tools import has_run
from recto.sources.use_detection import SentSource, UseEvidence, detect_uses
from recto.store.source_uses import SourceUse
from recto.store.store import Store
from recto.turn.planned_request import PlannedRequest
from recto.turn.session import LastTools, last_tools

log = logging.getLogger(__name__)

# How many characters of the conversation are searched for other origins of a reply.
LOOKED_AT = 20_000


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


def find_uses(planned: PlannedRequest, reply: str) -> list[UseEvidence]:
    """The signs that a reply shows of the sources of its request. A failure is only logged: the reply is complete."""
    if not (given := tuple(_sent(planned))):
        return []
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
    ran = {each.call_id for message in view.rounds for each in message.results if has_run(each)}
    called = frozenset(call.name for message in view.rounds for call in message.calls if call.id in ran)
    try:
        return detect_uses(reply, called, given, known)
    except Exception:
        log.exception("the sources that a reply used could not be detected")
        return []
