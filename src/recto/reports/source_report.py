"""Reports on sources: how replies used them, what that suggests, and the context data of every reply.

Statistics over the documents that conversations use: by document, by conversation, by month. Pure.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from recto.agents.agents import Agents
from recto.errors import Altered
from recto.sources.advice import Advice, SourceStats, advise
from recto.sources.source import SOURCE_KINDS, Pick, SourceId
from recto.store.records import Record
from recto.store.source_uses import DocumentUse
from recto.store.store import Store

# Sections that every window has and nobody chooses.
NOT_CHOSEN = ("system", "summary", "history", "message")


@dataclass(frozen=True, slots=True)
class SourceReport:
    stats: tuple[SourceStats, ...]
    advice: tuple[Advice, ...]

    def advice_for(self, stat: SourceStats) -> list[Advice]:
        return [each for each in self.advice if (each.id, each.agent) == (stat.id, stat.agent)]


@dataclass(frozen=True, slots=True)
class ReplyContext:
    """What was picked for one reply, and the signs that the reply used it."""

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
        """With the sign of use; None where nobody looked for one."""
        return pick.to_json() | ({"sign": self.signs.get(pick.source)} if pick.kind in SOURCE_KINDS else {})


def source_report(store: Store, agents: Agents, agent: str | None, since: str | None) -> SourceReport:
    """NotFound for an agent that has neither a folder nor a conversation."""
    check_agent(store, agents, agent)
    stats = store.source_uses.stats(agent, since)
    advice = advise(stats, store.source_uses.totals(agent, since), _text_in(agents))
    return SourceReport(tuple(stats), tuple(advice))


def reply_contexts(store: Store, agent: str | None, since: str | None) -> Iterator[ReplyContext | Altered]:
    """A reply whose record can no longer be read gives the error instead."""
    for reply in store.source_uses.replies(agent, since):
        try:
            record = store.records.record(reply.request)
        except Altered as why:
            yield why
            continue
        signs = {each.id: each.sign for each in store.source_uses.of(reply.request)}
        yield ReplyContext(record, reply.agent, signs)


def check_agent(store: Store, agents: Agents, agent: str | None) -> None:
    """NotFound for an agent that has neither a folder nor a conversation."""
    if agent is not None and all(each.agent != agent for each in store.tree.conversations(limit=sys.maxsize)):
        agents.check(agent)


def _text_in(agents: Agents) -> Callable[[SourceStats], str]:
    """Gives the text of a rule as its file says today; nothing for one that is gone."""

    def text(stat: SourceStats) -> str:
        source = agents.read_or_last(stat.agent).find(stat.id)
        return source.text if source else ""

    return text


Grouping = Literal["document", "conversation", "month"]


@dataclass(frozen=True, slots=True)
class DocumentTally:
    """Uses of one document, in one conversation or in one month."""

    name: str
    uses: int = 0
    direct: int = 0
    search: int = 0
    documents: int = 0
    conversations: int = 0
    last: str | None = None

    @classmethod
    def of(cls, name: str, uses: Sequence[DocumentUse]) -> "DocumentTally":
        direct = sum(use.reference_type == "direct" for use in uses)
        documents = len({use.path for use in uses})
        conversations = len({use.conversation for use in uses})
        last = max(use.created for use in uses)
        return cls(name, len(uses), direct, len(uses) - direct, documents, conversations, last)


def _month(use: DocumentUse) -> str:
    """On the user's clock."""
    return datetime.fromisoformat(use.created).astimezone().strftime("%Y-%m")


GROUPINGS: dict[Grouping, Callable[[DocumentUse], str]] = {
    "document": lambda use: use.path or use.wikilink,
    "conversation": lambda use: use.conversation,
    "month": _month,
}


def tally_documents(uses: Iterable[DocumentUse], by: Grouping = "document") -> list[DocumentTally]:
    """The most used first; months from the latest back. Broken links do not count."""
    groups: dict[str, list[DocumentUse]] = {}
    for use in uses:
        if use.path is not None:
            groups.setdefault(GROUPINGS[by](use), []).append(use)
    tallies = [DocumentTally.of(name, group) for name, group in groups.items()]
    if by == "month":
        return sorted(tallies, key=lambda tally: tally.name, reverse=True)
    return sorted(sorted(tallies, key=lambda tally: tally.last or "", reverse=True), key=lambda tally: -tally.uses)


def unnamed_documents(uses: Sequence[DocumentUse], notes: Iterable[str]) -> list[DocumentTally]:
    """Documents that tools found or read and nobody named, the most often first; then those without any use."""
    found = [tally for tally in tally_documents(uses) if not tally.direct]
    used = {use.path for use in uses}
    return [*found, *(DocumentTally(path) for path in notes if path not in used)]
