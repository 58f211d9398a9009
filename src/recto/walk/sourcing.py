"""Sourcing: what goes into the windows of one turn besides the conversation: the session's sources, and those that
this very message needs. Decides and gathers; a failure is a note, and the turn goes on."""

import asyncio
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from recto.agents.agent import Agent
from recto.chat.blocks import ToolCall
from recto.chat.message import Message, now
from recto.choice.choosing import Candidate, Choice, Chooser, Limits, Past
from recto.errors import RectoError
from recto.servers.servers import Offer, Servers
from recto.settings import ToolSettings
from recto.sources.included import Included, Offered, Sources, in_session
from recto.sources.mentions import besides_mentions, mentioned
from recto.sources.pick import Pick
from recto.sources.session import Listing, Session, session_from_json
from recto.sources.source import KINDS, OWN, Kind, Source, SourceId, Tool, Written
from recto.sources.tools import RECALL, Remote, Runnable
from recto.store.clerk import Clerk
from recto.store.store import Store
from recto.walk.libraries import Libraries
from recto.walk.offering import MOST_TOOLS, Sieve, built_in, can_call, configured, size_of, weights
from recto.walk.reaching import TOOL
from recto.walk.setup import Footing
from recto.walk.standing import Before, Standing, before

KEY = "sources"
"""Where a conversation keeps its session."""
# So many messages back a tool counts as recently used; so many earlier turns are learned from.
LATELY, LEARNED_FROM = 40, 200
STAYS = "chosen for an earlier message; it stays until the next compaction"


@dataclass(slots=True)
class Sourcing:
    store: Store
    clerk: Clerk
    settings: ToolSettings
    servers: Servers
    chooser: Chooser
    libraries: Libraries
    project: Path | None

    async def gather(
        self,
        standing: Standing,
        footing: Footing,
        message: Message | None = None,
        recall: Runnable | None = None,
        *,
        keeps: bool = True,
    ) -> Sources:
        """For this message, or for none; `keeps`: what it mentions is added to the session for good."""
        session, number = await self.clerk.do(self._known, standing)
        session, notes = await self._mentioned(session, standing, footing.agent, message, keeps=keeps)
        able, more = await self._callable(standing, footing)
        gone = session.missing(footing.agent.written)
        forbidden = tuple(each for each in able if each.approval == "deny")
        able = [each for each in able if each not in forbidden]
        offered = [Offered(each, in_session(session.listed(each.tool))) for each in able if session.mode(each.tool)]
        written = [session.listed(each) for each in footing.agent.written]
        text = besides_mentions(message.text) if message else ""
        candidates = _candidates(session, footing.agent, able)
        choice = await self._choose(footing, text, candidates)
        offered += await self._chosen_tools(standing, choice, able, candidates, number)
        offered, sieve = await self._sieved(standing, footing, text, offered, number)
        sent = {each.included.id for each in offered}
        return Sources(
            rules=tuple(in_session(each) for each in written if each.mode and each.source.kind == "rule"),
            references=tuple(in_session(each) for each in written if each.mode and each.source.kind == "reference"),
            tools=tuple(offered),
            forbidden=forbidden,
            recall=self._recall(footing, session, recall),
            chosen=tuple(_included(each) for each in choice.chosen if isinstance(each.source, Written)),
            passed=(*(_passed(each) for each in choice.passed if each.source.id not in sent), *sieve.passed),
            session=session,
            compaction=number,
            notes=tuple(filter(None, (*footing.agent.notes, *notes, *more, *gone, choice.note, sieve.note))),
        )

    # -- the session

    def _known(self, standing: Standing) -> tuple[Session, int | None]:
        """What was done by hand, and the number of the Compaction in force."""
        newest = self.store.tree.compaction(standing.head) if standing.head else None
        block = newest.compaction if newest else None
        return self.session(standing.conversation), block.compaction_number if block else None

    async def _mentioned(
        self, session: Session, standing: Standing, agent: Agent, message: Message | None, *, keeps: bool
    ) -> tuple[Session, list[str]]:
        """The session with what this message names."""
        found, notes = mentioned(message.text, (*agent.rules, *agent.references)) if message else ([], [])
        fresh = [each for each in found if session.mode(each) is None]
        if fresh and keeps and standing.conversation:
            session = await self.clerk.do(self.amend, standing.conversation, lambda known: _with(known, fresh))
        elif fresh:
            session = _with(session, fresh)
        return session, notes

    def session(self, conversation: str) -> Session:
        """What was done by hand in a conversation."""
        if not conversation:
            return Session()
        return session_from_json(self.store.tree.conversation(conversation).details.get(KEY))

    def amend(self, conversation: str, change: Callable[[Session], Session]) -> Session:
        """Changes it in one step: another process may change it too."""
        with self.store.database.write():
            changed = change(self.session(conversation))
            self.store.tree.change(conversation, details={KEY: changed.to_json()})
        return changed

    async def listing(
        self, standing: Standing, agent: Agent, kinds: Collection[Kind] = KINDS, *, fresh: bool = False
    ) -> Listing:
        """The sources of an agent as this conversation has them; whether its model can call tools does not matter. No
        server is asked where no tools are wanted."""
        session = await self.clerk.do(self.session, standing.conversation)
        able, notes = await self._able(standing, agent, fresh=fresh) if "tool" in kinds else ([], [])
        sources: list[Source] = [*agent.rules, *agent.references]
        written = [session.listed(each) for each in sources if each.kind in kinds]
        recall = await self.clerk.do(self._recalls, standing, agent) if "tool" in kinds else []
        tools = [session.listed(each.tool, each.approval) for each in (*able, *recall)]
        return Listing((*written, *tools), (*agent.notes, *notes))

    def _recalls(self, standing: Standing, agent: Agent) -> list[Runnable]:
        """The tool that recalls, as it is listed: once something is archived, or its agent says something about it."""
        config = agent.server(OWN)
        is_said = config is not None and RECALL in config.tools
        if not is_said and self._known(standing)[1] is None:
            return []
        recall = configured(Runnable(TOOL, lambda given: ""), config)
        return [recall] if recall.tool.enabled else []

    # -- tools

    async def _callable(self, standing: Standing, footing: Footing) -> tuple[list[Runnable | Remote], list[str]]:
        """What this model can be offered."""
        if can_call(footing, self.settings):
            return await self._able(standing, footing.agent)
        servers = [each.name for each in footing.agent.servers if each.name != OWN and each.enabled]
        if servers and self.settings.enabled:
            return [], [f"{footing.model.name} cannot call tools: those of {', '.join(servers)} are not offered"]
        return [], []

    async def _able(
        self, standing: Standing, agent: Agent, *, fresh: bool = False
    ) -> tuple[list[Runnable | Remote], list[str]]:
        """All tools that there are, and what the user should know of those that are missing."""
        ours = built_in(self.settings, standing.vault, self.libraries, agent.server(OWN))
        configs = [each for each in agent.servers if each.name != OWN and each.enabled]
        if not configs:
            return list(ours), []
        try:
            offer = await self.servers.offer(configs, self.project, fresh=fresh)
        except RectoError as why:
            offer = Offer((), (f"the tools of MCP servers are missing: {why.message}",))
        except Exception as why:  # a chat never ends because of a tool that it might have called
            offer = Offer((), (f"the tools of MCP servers are missing ({type(why).__name__}: {why})",))
        return [*ours, *(each for each in offer.tools if each.tool.enabled)], list(offer.notes)

    def _recall(self, footing: Footing, session: Session, recall: Runnable | None) -> Runnable | None:
        """Once something is archived any message may need it: chosen means offered then."""
        if recall is None or not can_call(footing, self.settings) or not footing.context.recall_ratio:
            return None
        recall = configured(recall, footing.agent.server(OWN))
        is_chosen = recall.tool.include == "agent" and not session.removes(recall.tool)
        return recall if recall.tool.enabled and (session.mode(recall.tool) or is_chosen) else None

    async def _chosen_tools(
        self,
        standing: Standing,
        choice: Choice,
        able: Sequence[Runnable | Remote],
        candidates: Sequence[Source],
        number: int | None,
    ) -> list[Offered]:
        """Those that were chosen before, as long as no compaction came, then those for this message: what was sent
        stays where it was."""
        fresh = {each.source.id: _included(each) for each in choice.chosen if isinstance(each.source, Tool)}
        wanted = {each.id for each in candidates}
        by_id = {each.tool.id: each for each in able if each.tool.id in wanted}
        earlier = (await self._before(standing, number)).chosen if by_id else ()
        stays = {id: Included(by_id[id].tool, "agent", STAYS) for id in earlier if id in by_id}
        return [Offered(by_id[id], each, lasts=id in fresh) for id, each in (stays | fresh).items()]

    async def _before(self, standing: Standing, number: int | None) -> Before:
        """The tools of the last request, if no compaction has come since."""
        if standing.offered is None:
            standing.offered = await self.clerk.do(self._recorded, standing)
        return standing.offered if standing.offered.compaction == number else Before(number)

    def _recorded(self, standing: Standing) -> Before:
        last = standing.request or (self.store.records.latest(standing.conversation) if standing.conversation else None)
        account = self.store.records.record(last).account if last else {}
        picks = [pick for section in account.get("sections", ()) for pick in section["picks"]]
        tools = [pick for pick in picks if pick["kind"] == "tool"]
        ids = ((SourceId("tool", pick["name"], pick.get("server", OWN)), pick["mode"]) for pick in tools)
        return before(account.get("compaction"), ids)

    async def _sieved(
        self, standing: Standing, footing: Footing, text: str, offered: list[Offered], number: int | None
    ) -> tuple[list[Offered], Sieve]:
        """Only where they take more than their share is anybody asked which of them bear on the message."""
        share = footing.room * footing.context.budgets.tools
        # a token is a byte at least: where that is few enough, nothing has to be counted
        is_much = size_of(offered) > share or len(offered) > MOST_TOOLS
        tokens = await weights(footing, offered) if is_much else {}
        if sum(tokens.values()) <= share and len(offered) <= MOST_TOOLS:
            return offered, Sieve(footing, {}, (), ())
        always = [each.runnable.tool for each in offered if each.included.mode == "always"]
        scores = await self._scores(text, always)
        recent = await self.clerk.do(self._recent, standing)
        sieve = Sieve(footing, scores, recent, (await self._before(standing, number)).others)
        return sieve.stay(offered, tokens), sieve

    async def _scores(self, text: str, tools: Sequence[Source]) -> dict[SourceId, float]:
        """Where nobody can tell how much they bear on the message, none does, and all are offered."""
        if not text.strip():
            return {}
        with suppress(Exception):  # a chat never ends because of a tool that it might have called
            return (await asyncio.to_thread(self.chooser.scores, text, tools))[0]
        return {}

    def _recent(self, standing: Standing) -> frozenset[str]:
        latest = self.store.tree.page(standing.head, most=LATELY) if standing.head else []
        return frozenset(block.name for message in latest for block in message.blocks if isinstance(block, ToolCall))

    # -- the choice

    async def _choose(self, footing: Footing, text: str, candidates: Sequence[Source]) -> Choice:
        """A choice that fails chooses nothing, and says so."""
        if not candidates or not text.strip():
            return Choice((), (), "")
        context = footing.context
        limits = Limits(context.top_k, context.top_n, context.include_score, context.min_score)
        try:
            past = await self.clerk.do(self._past, footing.agent.name) if context.learn else []
            return await asyncio.to_thread(self.chooser.choose, text, candidates, limits, past)
        except RectoError as why:
            return Choice((), (), f"nothing was chosen for this message: {why.message}")
        except Exception as why:  # a chat never ends because of what it might have been told
            return Choice((), (), f"nothing was chosen for this message ({type(why).__name__}: {why})")

    def _past(self, agent: str) -> Sequence[Past]:
        return [Past(question, used) for question, used in self.store.sourced.past(agent, LEARNED_FROM)]


def _with(session: Session, fresh: Sequence[Source]) -> Session:
    for each in fresh:
        if session.mode(each) is None:
            session = session.add(each, now())
    return session


def _candidates(session: Session, agent: Agent, able: Sequence[Runnable | Remote]) -> list[Source]:
    """What may be chosen: of mode `agent`, and neither in the session nor taken out of it by hand."""
    sources: list[Source] = [*agent.rules, *agent.references, *(each.tool for each in able)]
    return [
        each
        for each in sources
        if each.enabled and each.include == "agent" and session.mode(each) is None and not session.removes(each)
    ]


def _included(each: Candidate) -> Included:
    return Included(each.source, "agent", each.because, round(each.score, 2), best=each.part)


def _passed(each: Candidate) -> Pick:
    return replace(_included(each).pick, because=each.because)
