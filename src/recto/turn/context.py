"""The values that stay the same through all requests of a turn.

CallOptions: the options of one call. ResolvedModel: the model that answers, known before anything is picked.
TurnContext: the same with the picks: preamble, tools and budget."""

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

# In a large window a plain share would be the size of a book.
LONGEST_SUMMARY = 4096
LARGEST_SUMMARY = 0.3
# A smaller room gets the summary of this one, as far as possible: the decisions of a chat take no less space there. Not
# if important messages are still sent in full.
SMALL_ROOM = 5120
# Sentences of the originals take more room than a model's words. Low water still leaves this to the latest messages.
SMALL_ROOM_OF_SENTENCES, LARGEST_OF_SENTENCES, LATEST = 8192, 0.4, 448
TIGHTER = 0.75
# The recall tool is not worth a larger share: in a small window everything is recent anyway.
LARGEST_TOOL = 0.04
# With fewer archived messages, the relevant ones are recalled anyway.
WORTH_A_TOOL = 16
STRATEGY = "context.strategy"

Summarizer = Callable[[list[dict[str, Any]]], Awaitable[str]]
"""Takes the messages of a summary request as they would be sent, and returns the summary."""


class CallOptions(Struct, frozen=True):
    """Unset options follow the conversation, its agent and the settings."""

    model: str | None = None
    strategy: str | None = None
    parameters: Parameters = Parameters()
    """Fields that are not None override the settings."""
    tools: tuple[Tool, ...] = ()
    """Tools that the caller runs: their calls are handed back, and the next message carries the results."""
    window: int | None = None
    """For previews: a window size in place of the model's own."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """For previews: context settings by key, overriding all others."""
    system: str | None = None
    """Overrides the instructions of agent and settings."""
    runs_tools: bool = True
    """False: only the caller's tools are offered."""
    may_send: bool = True
    """False: the caller sends the request, and no model is called."""
    summarizer: Summarizer | None = None
    """Writes summaries in place of a model."""
    notes: tuple[str, ...] = ()
    """For the record of this call."""


NO_OPTIONS = CallOptions()


class ResolvedModel(Struct, frozen=True):
    provider: Provider
    token_cache: TokenCache
    parameters: Parameters
    settings: ContextSettings
    agent: Agent
    prompt: str
    notes: tuple[str, ...] = ()
    spend: SpendSettings = SpendSettings()
    tools: ToolSettings = ToolSettings()
    runs_tools: bool = True
    """False if the caller sends the request: then nobody would run our tools."""
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
        return bool(self.model.window or self.settings.max_prompt_tokens)


class Preambles(Struct, frozen=True):
    """The beginnings of a window, without and with the recall tool."""

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
    """True if a cut is kept as a Compaction; otherwise each request leaves out what does not fit."""
    preambles: Preambles
    after_compaction: Preambles
    """For use after a compaction, which drops tools chosen for earlier messages."""
    compaction: int | None = None
    """The number of the Compaction in force when the turn began."""
    tightened: int = 0
    """How often the provider rejected the window as too long in this turn."""

    def at(self, view: View) -> "TurnContext":
        """The context for this view. Only a compaction, which breaks the prefix anyway, changes the preamble: it adds
        the recall tool and drops tools chosen for earlier messages."""
        number = view.compaction.compaction_number if view.compaction else None
        preamble = (self.preambles if number == self.compaction else self.after_compaction).at(view)
        return replace(self, preamble=preamble, budget=replace(self.budget, tools=preamble.for_tools))

    @property
    def may_offer_recall(self) -> bool:
        return self.preambles.with_recall is not None

    def without_recall_tool(self) -> "TurnContext":
        """The recall tool is dropped first when room is short."""
        return replace(
            self, preambles=Preambles(self.preambles.plain), after_compaction=Preambles(self.after_compaction.plain)
        )

    def without_tool_calls(self) -> "TurnContext":
        """The tools stay for the sake of the prefix, but may not be called: an answer is wanted now."""
        parameters = replace(self.parameters, tool_choice="none" if self.preamble.tools else None)
        return replace(self, parameters=parameters)

    def tighter(self) -> "TurnContext":
        """A smaller window: the provider counts more tokens than we do."""
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
        return STRATEGIES[self.settings.strategy]

    @property
    def strategy(self) -> Strategy:
        """The strategy in force; like `discard` if nothing is compacted."""
        return self.chosen_strategy if self.compacts else DISCARD

    @property
    def reader(self) -> str | None:
        """The tool that reads documents, if the model has it."""
        return READ_DOCUMENT if any(tool.name == READ_DOCUMENT for tool, _ in self.preamble.tools) else None

    @property
    def free(self) -> int:
        """The room left by the preamble."""
        return self.budget.room - self.preamble.count.tokens


async def build_context(resolved: ResolvedModel, stable: StablePicks, compaction: int | None = None) -> TurnContext:
    """`compaction`: the number of the Compaction in force, for which the tools were picked."""
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
        # of the room, not of the limit: if the reserve is half of a small window, every turn would cut again
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
    """The limit in tokens as sent: the length asked for, but at most 30 % of the window, and at least enough to be
    useful."""
    whole, most = room, LARGEST_SUMMARY * room
    if not STRATEGIES[context.strategy].bands:
        whole = max(room, SMALL_ROOM if has_writer else SMALL_ROOM_OF_SENTENCES)
        of_sentences = min(LARGEST_OF_SENTENCES * room, context.low_water * room - LATEST)
        most = most if has_writer else min(LARGEST_SUMMARY * limit, max(most, of_sentences))
    asked = context.summary_tokens or min(int(whole * context.summary_ratio), LONGEST_SUMMARY)
    return max(SMALLEST_SUMMARY, min(asked, int(most)))
