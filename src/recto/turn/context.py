"""What stays the same through all requests of a turn.

CallOptions: what one call asks for besides its message. ResolvedModel: the model that answers, known before anything is
picked. TurnContext: the same with what was picked: preamble, tools and budget.
"""

import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from recto.agents.agent import Agent
from recto.chat.conversation import View
from recto.providers.model import ASSUMED_WINDOW, Model, Provider, ReplyLimit
from recto.settings.settings import ContextSettings, SpendSettings, ToolSettings
from recto.settings.strategy import DISCARD, STRATEGIES, Strategy
from recto.sources.selection import OfferedTool, StablePicks
from recto.sources.source import Tool
from recto.sources.tools import Toolbox
from recto.sources.vault_tools import READ_DOCUMENT
from recto.turn.preamble import Instructions, Preamble, build_preamble, with_tools
from recto.turn.token_cache import TokenCache
from recto.window.compaction_block import PASSING, has_archive
from recto.window.count import SMALLEST_SUMMARY
from recto.window.plan import Budget, Shares, limit_of, reserve_of
from recto.window.request import Parameters

# A share of a large window would be a book; nobody writes or reads one between two messages.
LONGEST_SUMMARY = 4096
LARGEST_SUMMARY = 0.3
# A smaller room gets the summary of this one, as far as it may: what a chat has decided takes no less to tell. Not
# where messages that matter are still sent in full: they need the room.
SMALL_ROOM = 5120
# Sentences of the originals take more than a model's own words. Low water still leaves this to the latest messages.
SMALL_ROOM_OF_SENTENCES, LARGEST_OF_SENTENCES, LATEST = 8192, 0.4, 448
TIGHTER = 0.75
# The recall tool is not worth a larger share of the room: in a small window everything is near anyway.
LARGEST_TOOL = 0.04
# Of fewer archived messages those that matter come back by themselves.
WORTH_A_TOOL = 16
STRATEGY = "context.strategy"

Summarizer = Callable[[list[dict[str, Any]]], Awaitable[str]]
"""Gets the messages of a request for a summary, as they would be sent, and gives the summary."""


class CallOptions(Struct, frozen=True):
    """What is left out follows the conversation, its agent and the settings."""

    model: str | None = None
    strategy: str | None = None
    parameters: Parameters = Parameters()
    """Fields that are not None are sent in place of the settings' own."""
    tools: tuple[Tool, ...] = ()
    """Tools that the caller runs: their calls are handed back, and the next message carries the results."""
    window: int | None = None
    """To see what would be sent: the size of the window in place of the model's own."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """To see what would be sent: settings of context, by key, over all others."""
    system: str | None = None
    """Instructions in place of those of agent and settings."""
    runs_tools: bool = True
    """False: only the caller's tools are offered."""
    may_send: bool = True
    """False: the caller sends the request, and no model is asked meanwhile."""
    summarizer: Summarizer | None = None
    """Writes summaries in place of a model."""
    notes: tuple[str, ...] = ()
    """What the record should say about this call."""


NO_OPTIONS = CallOptions()


class ResolvedModel(Struct, frozen=True):
    """The model that answers, as which agent, how it counts, what is asked of it."""

    provider: Provider
    token_cache: TokenCache
    parameters: Parameters
    settings: ContextSettings
    """In force for this model, agent, conversation and call."""
    agent: Agent
    prompt: str
    notes: tuple[str, ...] = ()
    spend: SpendSettings = SpendSettings()
    tools: ToolSettings = ToolSettings()
    runs_tools: bool = True
    """False where the caller sends the reply on: nobody would run a tool of ours."""
    reply_limit: ReplyLimit = ReplyLimit()

    @property
    def model(self) -> Model:
        return self.token_cache.model

    @property
    def limit(self) -> int:
        return limit_of(self.model.window, self.settings.max_prompt_tokens, ASSUMED_WINDOW)

    @property
    def reserve(self) -> int:
        return reserve_of(self.limit, self.settings.reserved_response_tokens, self.parameters.max_tokens)

    @property
    def room(self) -> int:
        return self.limit - self.reserve

    @property
    def has_summary_writer(self) -> bool:
        """False: summaries consist of sentences of the originals."""
        return self.model.summarizes or bool(self.settings.summary_model)

    @property
    def is_known(self) -> bool:
        """Whether the size of the window is known."""
        return bool(self.model.window or self.settings.max_prompt_tokens)


class Preambles(Struct, frozen=True):
    """What a window may start with: without the recall tool, and with it."""

    plain: Preamble
    with_recall: Preamble | None = None
    """Used once enough is archived, or a text is sent as an excerpt."""

    def at(self, view: View) -> Preamble:
        block = view.compaction
        is_far = block is not None and has_archive(block) and block.messages_archived >= WORTH_A_TOOL
        is_condensed = block is not None and bool(block.excerpts) and block.action != PASSING
        return self.with_recall if self.with_recall and (is_far or is_condensed) else self.plain


class TurnContext(ResolvedModel, frozen=True, kw_only=True):
    stable: StablePicks
    toolbox: Toolbox
    preamble: Preamble
    budget: Budget
    compacts: bool
    """Whether a cut is kept as a Compaction; else each request leaves out what does not fit."""
    preambles: Preambles
    after_compaction: Preambles
    """After a compaction, which drops the tools that were chosen for earlier messages."""
    compaction: int | None = None
    """The number of the Compaction that was in force when the turn began."""
    tightened: int = 0
    """How often the provider has said in this turn that the window is too long."""

    def at(self, view: View) -> "TurnContext":
        """For this view. A compaction breaks the prefix in any case, so that is when the preamble changes: the recall
        tool comes in, and what was chosen for earlier messages goes."""
        number = view.compaction.compaction_number if view.compaction else None
        preamble = (self.preambles if number == self.compaction else self.after_compaction).at(view)
        return replace(self, preamble=preamble, budget=replace(self.budget, tools=preamble.for_tools))

    @property
    def may_offer_recall(self) -> bool:
        return self.preambles.with_recall is not None

    def without_recall_tool(self) -> "TurnContext":
        """Where room is short the recall tool is the first to go."""
        return replace(
            self, preambles=Preambles(self.preambles.plain), after_compaction=Preambles(self.after_compaction.plain)
        )

    def without_tool_calls(self) -> "TurnContext":
        """The tools stay where the prefix has them, but the model may no longer call one: an answer is wanted now."""
        parameters = replace(self.parameters, tool_choice="none" if self.preamble.tools else None)
        return replace(self, parameters=parameters)

    def tighter(self) -> "TurnContext":
        """The same with a smaller window: its provider counts more than we do."""
        budget = self.budget
        limit = int(budget.limit * TIGHTER)
        budget = replace(
            budget,
            limit=limit,
            reserve=min(budget.reserve, limit // 2),
            low_water=int(budget.low_water * TIGHTER),
            summary=int(budget.summary * TIGHTER),
            trigger=int(budget.trigger * TIGHTER) if budget.trigger else None,
        )
        return replace(self, budget=budget, tightened=self.tightened + 1)

    @property
    def chosen_strategy(self) -> Strategy:
        """What settings, agent, conversation and call ask for."""
        return STRATEGIES[self.settings.strategy]

    @property
    def strategy(self) -> Strategy:
        """The one in force: where nothing is compacted, what does not fit is left out as `discard` does."""
        return self.chosen_strategy if self.compacts else DISCARD

    @property
    def reader(self) -> str | None:
        """The tool that reads documents, where the model has it."""
        return READ_DOCUMENT if any(tool.name == READ_DOCUMENT for tool, _ in self.preamble.tools) else None

    @property
    def free(self) -> int:
        """The room that the preamble leaves."""
        return self.budget.room - self.preamble.count.tokens


async def build_context(resolved: ResolvedModel, stable: StablePicks, compaction: int | None = None) -> TurnContext:
    """`compaction` is the number of the Compaction in force, for which the tools were picked."""
    instructions = Instructions(resolved.prompt, stable.rules, stable.references, stable.memory)
    base = await build_preamble(resolved.token_cache, resolved.parameters, instructions)
    lasting = tuple(each for each in stable.tools if each.lasts)
    preambles = after = await _preambles(resolved, base, stable.tools)
    if len(lasting) < len(stable.tools):
        after = await _preambles(resolved, base, lasting)
    compacts, tools = resolved.settings.enabled and resolved.is_known, resolved.tools
    known = {name: getattr(resolved, name) for name in ResolvedModel.__struct_fields__}
    return TurnContext(
        **known | {"notes": (*resolved.notes, *stable.notes)},
        stable=stable,
        toolbox=Toolbox(stable.runnables, timeout_s=tools.timeout_s, longest=tools.result_characters),
        preamble=preambles.plain,
        budget=_budget(resolved, preambles.plain, compacts=compacts),
        compacts=compacts,
        preambles=preambles,
        after_compaction=after,
        compaction=compaction,
    )


async def _preambles(resolved: ResolvedModel, base: Preamble, tools: Sequence[OfferedTool]) -> Preambles:
    """Without the tools that need an archive, and with them where they are worth their place."""
    add = partial(with_tools, base, resolved.token_cache, resolved.parameters)
    plain = await add([each.selection for each in tools if not each.needs_archive])
    if not any(each.needs_archive for each in tools):
        return Preambles(plain)
    more = await add([each.selection for each in tools])
    is_worth_it = more.for_tools - plain.for_tools <= resolved.room * LARGEST_TOOL
    return Preambles(plain, more if is_worth_it else None)


def _budget(resolved: ResolvedModel, preamble: Preamble, *, compacts: bool) -> Budget:
    settings, limit, room, shares = resolved.settings, resolved.limit, resolved.room, resolved.settings.budgets
    return Budget(
        limit,
        resolved.reserve,
        # of the room, not of the limit: where the reserve is half of a small window, the next turn would cut again
        low_water=int(room * settings.low_water),
        trigger=math.ceil(limit * settings.threshold - 1e-9) if compacts else None,
        summary=longest_summary(limit, room, settings, has_writer=resolved.has_summary_writer),
        recent=settings.recent_messages_to_keep,
        least_recent=settings.min_recent_messages_to_keep,
        shares=Shares(shares.system, shares.tools, shares.messages),
        instructions=preamble.instructions.tokens,
        written=(preamble.rules + preamble.references).tokens,
        tools=preamble.for_tools,
    )


def longest_summary(limit: int, room: int, context: ContextSettings, *, has_writer: bool) -> int:
    """In tokens as sent: what is asked for, no more than 30 % of the window, and enough to say something."""
    whole, most = room, LARGEST_SUMMARY * room
    if not STRATEGIES[context.strategy].bands:
        whole = max(room, SMALL_ROOM if has_writer else SMALL_ROOM_OF_SENTENCES)
        of_sentences = min(LARGEST_OF_SENTENCES * room, context.low_water * room - LATEST)
        most = most if has_writer else min(LARGEST_SUMMARY * limit, max(most, of_sentences))
    asked = context.summary_tokens or min(int(whole * context.summary_ratio), LONGEST_SUMMARY)
    return max(SMALLEST_SUMMARY, min(asked, int(most)))
