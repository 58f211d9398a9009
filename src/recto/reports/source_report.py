"""Reports on sources: how replies used them, suggestions, and the context data of every reply."""

import sys
from collections.abc import Callable, Iterator
from typing import Any

from msgspec import Struct

from recto.agents.agents import Agents
from recto.errors import Altered
from recto.sources.advice import Advice, SourceStats, advise
from recto.sources.source import SOURCE_KINDS, Pick, SourceId
from recto.store.records import Record
from recto.store.store import Store

# Sections that every window has and nobody chooses.
NOT_CHOSEN = ("system", "summary", "history", "message")


class SourceReport(Struct, frozen=True):
    stats: tuple[SourceStats, ...]
    advice: tuple[Advice, ...]

    def advice_for(self, stat: SourceStats) -> list[Advice]:
        return [each for each in self.advice if (each.id, each.agent) == (stat.id, stat.agent)]


class ReplyContext(Struct, frozen=True):
    """The picks for a reply, and the evidence that it used them."""

    record: Record
    agent: str
    signs: dict[SourceId, Any]

    def to_json(self) -> dict[str, Any]:
        record, account = self.record, self.record.account
        sections = [each for each in account.sections or () if each.name not in NOT_CHOSEN]
        picks = [{"section": section.name, **self._signed(pick)} for section in sections for pick in section.picks]
        return {
            "request": record.id,
            "conversation": record.conversation,
            "message": record.message,
            "reply": record.outcome.get("reply"),
            "agent": self.agent,
            "model": account.model,
            "created": record.created,
            "picks": picks,
            "not_picked": [pick.to_json() for pick in account.not_picked],
        }

    def _signed(self, pick: Pick) -> dict[str, Any]:
        """The pick with its evidence of use; None if it was not looked for."""
        return pick.to_json() | ({"sign": self.signs.get(pick.source)} if pick.kind in SOURCE_KINDS else {})


def source_report(store: Store, agents: Agents, agent: str | None, since: str | None) -> SourceReport:
    """Raises NotFound for an agent that has neither a folder nor a conversation."""
    check_agent(store, agents, agent)
    stats = store.source_uses.stats(agent, since)
    advice = advise(stats, _text_in(agents))
    return SourceReport(tuple(stats), tuple(advice))


def reply_contexts(store: Store, agent: str | None, since: str | None) -> Iterator[ReplyContext | Altered]:
    """Yields the error of a record that can no longer be read."""
    for reply in store.source_uses.replies(agent, since):
        try:
            record = store.records.record(reply.request)
        except Altered as why:
            yield why
            continue
        signs = {each.id: each.sign for each in store.source_uses.of(reply.request)}
        yield ReplyContext(record, reply.agent, signs)


def check_agent(store: Store, agents: Agents, agent: str | None) -> None:
    """Raises NotFound for an agent that has neither a folder nor a conversation."""
    if agent is not None and all(each.agent != agent for each in store.tree.conversations(limit=sys.maxsize)):
        agents.check(agent)


def _text_in(agents: Agents) -> Callable[[SourceStats], str]:
    """Returns a rule's text from the current files; empty if it is gone."""

    def text(stat: SourceStats) -> str:
        source = agents.read_or_last(stat.agent).find(stat.id)
        return source.text if source else ""

    return text
